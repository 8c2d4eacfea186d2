from gamedb.query import Matcher
from gamedb.store import ReadTables
def matcher_of(db, catalog): return Matcher(catalog, ReadTables("", db.game_tables))
