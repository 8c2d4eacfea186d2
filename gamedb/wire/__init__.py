"""Bytes and JSON to values and back: pure functions that know the types of a module, and no I/O."""
