"""The client protocol as bytes and JSON: values (BSATN, SATS-JSON), row lists, messages and types.

Pure functions: bytes or JSON in, values out, and back. Servers, clients and generators share this room; it knows no
socket, no store and no query.
"""
