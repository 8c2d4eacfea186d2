"""The client protocol as bytes: values (BSATN), row lists and messages.

Pure functions: bytes in, values out, and back. Servers and clients share this room; it knows no socket, no database
and no query.
"""
