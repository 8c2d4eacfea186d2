"""Names of columns, functions and types as other languages write them, and what cannot be written there."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from gamedb.errors import SchemaError
from gamedb.schema import snake_case

__all__ = ["camel", "check_distinct", "pascal", "snake"]

_WORDS: Final = re.compile(r"[-_]+")


def camel(name: str) -> str:
    """`team_id` to `teamId`, just as the SDK computes the names of reducers on the client."""
    joined = re.sub(r"_([a-zA-Z0-9])", lambda found: found[1].upper(), _WORDS.sub("_", name))
    return joined[:1].lower() + joined[1:]


def pascal(name: str) -> str:
    """`team_id` and `TEAM_ID` to `TeamId`; `DamageEvent` stays as it is."""
    words = [word for word in re.split(r"[^0-9A-Za-z\x80-\U0010ffff]+", name) if word]
    shouting = len(words) > 1 or len(name) > 1
    return "".join(
        word.capitalize() if shouting and word.isupper() and not _is_class_name(name) else word[:1].upper() + word[1:]
        for word in words
    )


def _is_class_name(name: str) -> bool:
    return bool(re.search("[a-z]", name)) and "_" not in name


def snake(name: str) -> str:
    """`DamageEvent` to `damage_event`: the names of files."""
    return snake_case(_WORDS.sub("_", name)).strip("_")


def check_distinct(where: str, names: Iterable[tuple[str, str]]) -> None:
    """`SchemaError` unless the written names (the second of each pair) are identifiers and differ."""
    seen: dict[str, str] = {}
    for name, written in names:
        if not written.isidentifier():
            raise SchemaError(f"{where}: {name!r} would be written {written!r}, which is no name there; rename it")
        other = seen.setdefault(written, name)
        if other != name:
            raise SchemaError(f"{where}: {other!r} and {name!r} would both be written {written!r}; rename one")
