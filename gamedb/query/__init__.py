"""SQL text to plans, plans to answers, and commits to the changes of answers.

`Catalog` reads the text of a query against what a module declares; `Matcher` follows queries and says after each
commit how their answers changed. Uses the store and what describes it; knows no client, no wire and no clock.
"""

from gamedb.query.access import COMMIT_SECONDS_MAX, ROWS_MAX, SECONDS_MAX
from gamedb.query.catalog import SHAPES_MAX, Catalog
from gamedb.query.grammar import CONDITIONS_MAX
from gamedb.query.live import Counters, Delta, LiveQuery
from gamedb.query.matcher import Matcher
from gamedb.query.plan import Query
from gamedb.query.text import NESTING_MAX, PIECES_MAX, TEXT_MAX

__all__ = [
    "COMMIT_SECONDS_MAX",
    "CONDITIONS_MAX",
    "NESTING_MAX",
    "PIECES_MAX",
    "ROWS_MAX",
    "SECONDS_MAX",
    "SHAPES_MAX",
    "TEXT_MAX",
    "Catalog",
    "Counters",
    "Delta",
    "LiveQuery",
    "Matcher",
    "Query",
]
