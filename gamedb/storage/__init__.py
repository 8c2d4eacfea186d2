"""Durable storage: the only room that knows SQLModel, SQLAlchemy and databases.

It opens a database and brings it to a module's schema, loads rows, writes the final state of rows in batches, and
gives SQLModel classes for queries. It knows no reducers and no clients, and is slow to import: import it when a
database is opened, not before.
"""

from gamedb.storage.compare import Plan, Step
from gamedb.storage.migration import MigrationContext
from gamedb.storage.models import Models, models_for
from gamedb.storage.planning import plan
from gamedb.storage.reading import StoredRows, read_stored
from gamedb.storage.storage import Storage, open_storage
from gamedb.storage.writer import Writer

__all__ = [
    "MigrationContext",
    "Models",
    "Plan",
    "Step",
    "Storage",
    "StoredRows",
    "Writer",
    "models_for",
    "open_storage",
    "plan",
    "read_stored",
]
