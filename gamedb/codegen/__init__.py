"""What other languages need to know of a module, written from its declarations alone: no function of it ever runs.

`module_def` writes the JSON that SpacetimeDB's own tools read, `typescript` writes bindings for its TypeScript SDK,
`files` puts generated files into a directory. Nothing here opens a database or a socket.
"""
