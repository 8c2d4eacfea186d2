"""From the characters of a query to its pieces: names, literals, keywords, symbols, each with its position.

The literals are taken out here, exactly as they are written, so that queries which differ only in them have one
`shape`, and the grammar is worked out once for all of them. It knows no table.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

from gamedb.columns import shown
from gamedb.errors import QueryError

TEXT_MAX: Final = 65_536
"""Characters of a query."""
PIECES_MAX: Final = 16_384
"""Names, literals, keywords and symbols of a query."""
NESTING_MAX: Final = 32
"""Parentheses (and NOTs) around each other, not counting those that change nothing."""

FORM: Final = "SELECT * | t.* FROM t [JOIN u ON t.a = u.b] [WHERE ...]"
"""The form of a query, for messages."""

Kind = Literal["keyword", "name", "symbol", "number", "string", "hex", "bool", "sender"]

LITERALS: Final[frozenset[str]] = frozenset({"number", "string", "hex", "bool", "sender"})


class Piece(NamedTuple):
    """One piece: what it is, what it says (a name or string without its quotes), and the character it begins at."""

    kind: Kind
    value: str
    start: int


Shape = tuple[str | None, ...]
"""What is left of a query without its numbers and texts: equal for queries that differ in nothing else."""

_PIECE: Final = re.compile(
    r"""
    \s*
    (?:
        (?P<quoted>"[^"]*(?:""[^"]*)*")
      | (?P<string>'[^']*(?:''[^']*)*')
      | (?P<hex>0[xX][0-9a-fA-F]*(?!\w)|[xX]'[0-9a-fA-F]*')
      | (?P<number>(?:[-+]\s*)?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?(?![\w.]))
      | (?P<symbol><>|!=|<=|>=|[=<>().,*;])
      | (?P<word>[^\W\d]\w*)
      | (?P<parameter>:\w+)
    )
    """,
    re.VERBOSE,
)

_KEYWORDS: Final = {"SELECT", "FROM", "WHERE", "JOIN", "INNER", "ON", "AS", "AND", "OR", "NOT"}
_CLIENT: Final = "sort and cut the rows in the client, or declare a view"
_WRITE_OR: Final = "write the comparisons out with OR and AND"
_INNER: Final = "only JOIN and INNER JOIN are"
_VIEW: Final = "declare a view for it"
_CALL: Final = "a query only reads; call a reducer to change rows"
_REFUSED: Final = {
    **dict.fromkeys(("ORDER", "LIMIT", "OFFSET", "FETCH"), _CLIENT),
    **dict.fromkeys(("GROUP", "HAVING", "DISTINCT", "UNION", "INTERSECT", "EXCEPT", "CASE", "CAST", "WITH"), _VIEW),
    **dict.fromkeys(("IN", "BETWEEN", "ANY", "ALL", "EXISTS"), _WRITE_OR),
    **dict.fromkeys(("LIKE", "ILIKE", "GLOB", "REGEXP", "SIMILAR"), "compare whole values with ="),
    **dict.fromkeys(("IS", "NULL"), "comparing an optional column matches the rows in which it is present"),
    **dict.fromkeys(("LEFT", "RIGHT", "FULL", "OUTER", "CROSS", "NATURAL", "USING"), _INNER),
    **dict.fromkeys(("INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "ALTER", "TRUNCATE", "SET"), _CALL),
}


class Text(NamedTuple):
    """A query taken apart."""

    pieces: list[Piece]
    shape: Shape


def take_apart(sql: str) -> Text:
    """The pieces of a query; `QueryError` for what cannot stand in any."""
    if not isinstance(sql, str):
        raise QueryError(f"a query is a text, not {shown(sql)}")
    if len(sql) > TEXT_MAX:
        raise QueryError(f"the query has {len(sql)} characters; at most {TEXT_MAX} are allowed", TEXT_MAX)
    pieces: list[Piece] = []
    shape: list[str | None] = []
    at, end, match = 0, len(sql.rstrip()), _PIECE.match
    while at < end:
        found = match(sql, at)
        if found is None:
            raise _unreadable(sql, at + len(sql[at:]) - len(sql[at:].lstrip()))
        group = str(found.lastgroup)
        piece = _piece(group, found[group], found.start(group))
        pieces.append(piece)
        shape.append(None if piece[0] in _FREE else piece[0] + piece[1])
        at = found.end()
    while pieces and pieces[-1][:2] == ("symbol", ";"):
        pieces.pop()
        shape.pop()
    if len(pieces) > PIECES_MAX:
        text = f"the query has {len(pieces)} words, values and symbols; at most {PIECES_MAX} are allowed"
        raise QueryError(text, pieces[PIECES_MAX].start)
    return Text(pieces, tuple(shape))


_FREE: Final = frozenset({"number", "string", "hex"})
"""The literals that may differ between queries of one shape."""


def _piece(group: str, text: str, at: int) -> Piece:
    if group == "symbol":
        return Piece("symbol", "<>" if text == "!=" else text, at)
    if group == "quoted":
        return Piece("name", text[1:-1].replace('""', '"'), at)
    if group == "word":
        upper = text.upper()
        if upper in _KEYWORDS and text.isascii():
            return Piece("keyword", upper, at)
        if upper in ("TRUE", "FALSE") and text.isascii():
            return Piece("bool", upper, at)
        return Piece("name", text, at)
    if group == "number":
        return Piece("number", "".join(text.split()) if text[0] in "+-" else text, at)
    if group == "string":
        return Piece("string", text[1:-1].replace("''", "'"), at)
    if group == "hex":
        return Piece("hex", text[2:-1] if text[1] == "'" else text[2:], at)
    if text != ":sender":
        raise QueryError(f"unknown parameter {shown(text)}; the only one is :sender", at)
    return Piece("sender", text, at)


def _unreadable(sql: str, at: int) -> QueryError:
    character = sql[at]
    if character in "'\"":
        kind = "text" if character == "'" else "name"
        return QueryError(f"this {kind} has no closing {character}", at)
    if sql.startswith(("--", "/*"), at):
        return QueryError("comments are not supported; leave them out", at)
    if character in "-+":
        return QueryError(f"{character!r} may only stand before a number", at)
    if character.isdigit() or character == ".":
        written = re.split(r"[^\w.]", sql[at : at + 80], maxsplit=1)[0]
        return QueryError(f"{shown(written)} is not a number", at)
    if character == ";":
        return QueryError("one query at a time", at)
    return QueryError(f"unexpected {shown(character)}; the form is {FORM}", at)


def refuse_words(pieces: list[Piece]) -> None:
    """Name what other dialects have and this one does not; a name that is written like it has to be quoted."""
    for place, piece in enumerate(pieces):
        if piece.kind == "symbol" and piece.value == ";":
            raise QueryError("one query at a time: only the end may have a ';'", piece.start)
        if piece.kind != "name":
            continue
        before = pieces[place - 1] if place else None
        after = pieces[place + 1] if place + 1 < len(pieces) else None
        if after is not None and after[:2] == ("symbol", "(") and (before is None or before[1] != "."):
            if piece.value.upper() in _REFUSED:
                raise QueryError(
                    f"{piece.value.upper()} is not supported: {_REFUSED[piece.value.upper()]}", piece.start
                )
            raise QueryError(
                f"{shown(piece.value)} is not supported: there are no functions here; {_VIEW}", piece.start
            )
        remedy = _REFUSED.get(piece.value.upper(), "")
        if not remedy or (before and before[:2] == ("symbol", ".")) or (after and after[:2] == ("symbol", ".")):
            continue
        raise QueryError(
            f"{piece.value.upper()} is not supported: {remedy}. A name that is written like that goes in "
            f'double quotes after its table: t."{piece.value}"',
            piece.start,
        )


def without_idle_parentheses(pieces: list[Piece]) -> list[int]:
    """The places of the pieces, less the parentheses that change nothing; `QueryError` when the rest nest too deep.

    Query builders put one around every condition and every step of a chain, so a chain of a hundred ORs comes in a
    hundred parentheses. One is idle when the operators inside bind at least as tightly as those beside it.
    """
    count = len(pieces)
    idle: set[int] = set()
    groups: list[tuple[int, set[str]]] = [(-1, set())]
    for place, (kind, value, start) in enumerate(pieces):
        if kind == "keyword" and value in ("AND", "OR", "NOT"):
            groups[-1][1].add(value)
        elif kind == "symbol" and value == "(":
            groups.append((place, set()))
        elif kind == "symbol" and value == ")":
            if len(groups) == 1:
                raise QueryError("this ')' closes nothing", start)
            opened, inside = groups.pop()
            before = _word(pieces[opened - 1]) if opened else ""
            after = _word(pieces[place + 1]) if place + 1 < count else ""
            if place > opened + 1 and _is_idle(inside, before, after):
                idle |= {opened, place}
                groups[-1][1].update(inside)
    if len(groups) > 1:
        raise QueryError("this '(' is not closed", pieces[groups[-1][0]].start)
    kept = [place for place in range(count) if place not in idle]
    depth = nots = 0
    for place in kept:
        kind, value, start = pieces[place]
        if kind == "symbol" and value in "()":
            depth += 1 if value == "(" else -1
        nots = nots + 1 if kind == "keyword" and value == "NOT" else nots if value == "(" else 0
        if depth + nots > NESTING_MAX:
            raise QueryError(f"the conditions are nested deeper than {NESTING_MAX}; flatten them", start)
    return kept


def _word(piece: Piece) -> str:
    return piece.value if piece.kind in ("keyword", "symbol") else "a name or value"


def _is_idle(inside: set[str], before: str, after: str) -> bool:
    ends = ("", ")", "WHERE")
    if before not in ("WHERE", "ON", "(", "AND", "OR") or after not in ("AND", "OR", *ends):
        return False
    if "OR" not in inside:
        return True
    return "AND" not in (before, after)
