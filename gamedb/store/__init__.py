"""In-memory tables: rows, indexes, transactions, savepoints, commits. Synchronous, no I/O, no clock."""

from gamedb.store.store import INTERRUPTS, RowChange, Store
from gamedb.store.table import TableData
from gamedb.store.views import ReadTable, ReadTables, Table, Tables

__all__ = ["INTERRUPTS", "ReadTable", "ReadTables", "RowChange", "Store", "Table", "TableData", "Tables"]
