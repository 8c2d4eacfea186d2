"""What the two writers of codec source have in common: unique names, the values behind them, functions made once."""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable
from typing import Any, Final

from gamedb.columns import ColumnType, ProductType, SumType
from gamedb.wire.layout import HELPERS

INLINE_MAX: Final = 6
"""Types nested deeper than this get a function of their own (Python limits how deep blocks nest)."""


class Source:
    """The functions of one codec: their source, and the values that they use by name."""

    def __init__(self) -> None:
        self.scope: dict[str, Any] = {**HELPERS, "join": b"".join, "pack": struct.pack}
        self.functions: list[str] = []
        self._names: dict[Hashable, str] = {}
        self._count = 0

    def fresh(self, prefix: str) -> str:
        """A name that nothing else has."""
        self._count += 1
        return f"{prefix}{self._count}"

    def bind(self, prefix: str, value: Any) -> str:
        """A name under which the code reaches `value`."""
        name = self.fresh(prefix)
        self.scope[name] = value
        return name

    def function(self, prefix: str, kind: ColumnType, write: Callable[[str], str]) -> str:
        """The name of the function for a type; `write` gives its source, once."""
        key = (prefix, type_key(kind))
        if key not in self._names:
            name = self._names[key] = self.fresh(prefix)
            self.functions.append(write(name))
        return self._names[key]

    def text(self) -> str:
        """All of the source."""
        return "\n".join(self.functions) + "\n"


class Body:
    """The lines of one function."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.indent = 1

    def __call__(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)


def type_key(kind: ColumnType) -> Hashable:
    """The same for types that are written alike."""
    if isinstance(kind, ProductType):
        return kind.cls
    if isinstance(kind, SumType):
        return tuple(variant.cls for variant in kind.variants.values())
    return kind


def struct_of(formats: list[str]) -> struct.Struct:
    """The packer of a run of fields."""
    return struct.Struct("<" + "".join(formats))
