"""The server: the only room that knows HTTP, websockets and asyncio."""
