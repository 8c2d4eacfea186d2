"""A client of a served game database, for Python: `async with connect("ws://host:port", "arena") as client`.

It speaks the same protocol as the clients of other languages. It knows the wire and nothing of servers.
"""

from gamedb.client.cache import Change
from gamedb.client.client import Client, connect
from gamedb.client.subscription import Subscription
from gamedb.client.tables import Changes, ClientTable

__all__ = ["Change", "Changes", "Client", "ClientTable", "Subscription", "connect"]
