"""Writes the source of a function that reads values of one column type from bytes.

Neighbouring fields of fixed size are read by one `struct` call. Whatever the bytes say, nothing is allocated that they
are too short for, and what comes out is canonical.
"""

from __future__ import annotations

from typing import Any, Final

from gamedb.columns import (
    NESTING_MAX,
    BytesType,
    ColumnType,
    FrozenList,
    ListType,
    OptionType,
    ProductType,
    StrType,
    SumType,
)
from gamedb.errors import WireError
from gamedb.wire.layout import check_variants, fixed_size, scalar, size_min
from gamedb.wire.source import INLINE_MAX, Body, Source, struct_of

ZERO_SIZE_ITEMS_MAX: Final = 1024
"""Items of a list whose items take no bytes: nothing else bounds their number."""


def _cut(needed: int, left: int) -> WireError:
    return WireError(f"{needed} bytes should follow, but only {left} are left")


def _bad_variant(number: int, count: int) -> WireError:
    return WireError(f"there is no variant {number} (0 to {count - 1})")


def _too_deep() -> WireError:
    return WireError(f"values are nested deeper than {NESTING_MAX}")


def _too_many(count: int) -> WireError:
    return WireError(f"a list of {count} items that take no bytes (at most {ZERO_SIZE_ITEMS_MAX})")


HELPERS: Final[dict[str, Any]] = {
    "cut": _cut,
    "bad_variant": _bad_variant,
    "too_deep": _too_deep,
    "too_many": _too_many,
    "FrozenList": FrozenList,
}


def write_decoder(source: Source, name: str, kind: ColumnType) -> str:
    """`def name(data, at, size, depth)` that gives a value and where it ends, as source."""
    reader = _Reader(source)
    body = reader.body
    if isinstance(kind, ProductType) and kind.recursive:
        body(f"if depth >= {NESTING_MAX}:")
        body("    raise too_deep()")
        body("depth += 1")
    if isinstance(kind, SumType):
        reader.read_variants(kind)
    else:
        value = reader.read_parts(kind, 0)
        reader.flush()
        body(f"return {value}, at")
    return "\n".join([f"def {name}(data, at, size, depth):", *body.lines])


class _Reader:
    """Collects the lines that read a value. What has a fixed size waits in a run until `flush`.

    The expressions that are given back may name variables of the run, so they stand after the next flush.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.body = Body()
        self._formats: list[str] = []
        self._names: list[str] = []

    def fixed(self, code: str) -> str:
        name = self.source.fresh("raw")
        self._formats.append(code)
        self._names.append(name)
        return name

    def flush(self) -> None:
        if self._formats:
            layout = struct_of(self._formats)
            unpack = self.source.bind("unpack", layout.unpack_from)
            self.body(f"{', '.join(self._names)}, = {unpack}(data, at)")
            self.body(f"at += {layout.size}")
            self._formats, self._names = [], []

    def _function(self, kind: ColumnType) -> str:
        return self.source.function("decode", kind, lambda name: write_decoder(self.source, name, kind))

    def read(self, kind: ColumnType, depth: int) -> str:
        """Read a value; gives the expression for it."""
        recursive = isinstance(kind, ProductType) and kind.recursive
        deep = depth >= INLINE_MAX and fixed_size(kind) is None and not isinstance(kind, StrType | BytesType)
        if not (recursive or deep or isinstance(kind, SumType)):
            return self.read_parts(kind, depth)
        self.flush()
        value = self.source.fresh("value")
        self.body(f"{value}, at = {self._function(kind)}(data, at, size, depth)")
        return value

    def read_parts(self, kind: ColumnType, depth: int) -> str:
        layout = scalar(kind)
        if layout is not None:
            extra = "" if layout.extra is None else self.source.bind("extra", layout.extra)
            return layout.decode.format(*[self.fixed(code) for code in layout.formats], x=extra)
        if isinstance(kind, ProductType):
            return self._read_product(kind, depth)
        if isinstance(kind, StrType | BytesType):
            return self._read_bytes(isinstance(kind, StrType))
        if isinstance(kind, OptionType):
            return self._read_option(kind, depth)
        if isinstance(kind, ListType):
            return self._read_list(kind, depth)
        raise AssertionError(f"{kind.name} is not of the wire; layout.size_min refuses it")

    def _read_product(self, kind: ProductType, depth: int) -> str:
        fields = [f"{name}={self.read(field, depth + 1)}" for name, field in kind.fields.items()]
        made = f"{self.source.bind('Made', kind.cls)}({', '.join(fields)})"
        if hasattr(kind.cls, "__post_init__"):  # it may leave other values than it was given
            made = f"{self.source.bind('coerce', kind.coerce)}({made}, '')"
        return made

    def _read_bytes(self, text: bool) -> str:
        length = self.fixed("I")
        self.flush()
        body, data = self.body, self.source.fresh("data")
        body(f"if {length} > size - at:")
        body(f"    raise cut({length}, size - at)")
        body(f"{data} = data[at:at + {length}]{'.decode()' if text else ''}")
        body(f"at += {length}")
        return data

    def _read_option(self, kind: OptionType, depth: int) -> str:
        tag = self.fixed("B")
        self.flush()
        body, option = self.body, self.source.fresh("option")
        body(f"if {tag} == 0:")
        body.indent += 1
        value = self.read(kind.inner, depth + 1)
        self.flush()
        body(f"{option} = {value}")
        body.indent -= 1
        body(f"elif {tag} == 1:")
        body(f"    {option} = None")
        body("else:")
        body(f"    raise bad_variant({tag}, 2)")
        return option

    def _read_list(self, kind: ListType, depth: int) -> str:
        count = self.fixed("I")
        self.flush()
        body, items = self.body, self.source.fresh("items")
        smallest, size = size_min(kind.item), fixed_size(kind.item)
        if smallest:
            body(f"if {count} * {smallest} > size - at:")
            body(f"    raise cut({count} * {smallest}, size - at)")
        else:
            body(f"if {count} > {ZERO_SIZE_ITEMS_MAX}:")
            body(f"    raise too_many({count})")
        if size:
            self._read_fixed_items(kind.item, items, count, size, depth)
        else:
            body(f"{items} = []")
            body(f"for _ in range({count}):")
            body.indent += 1
            value = self.read(kind.item, depth + 1)
            self.flush()
            body(f"{items}.append({value})")
            body.indent -= 1
        return f"FrozenList({items})"

    def _read_fixed_items(self, kind: ColumnType, items: str, count: str, size: int, depth: int) -> None:
        value = self.read_parts(kind, depth + 1)  # fixed size: all of it is one run
        unpack = self.source.bind("unpack", struct_of(self._formats).iter_unpack)
        names = ", ".join(self._names)
        self._formats, self._names = [], []
        self.body(f"{items} = [{value} for {names}, in {unpack}(data[at:at + {count} * {size}])]")
        self.body(f"at += {count} * {size}")

    def read_variants(self, kind: SumType) -> None:
        check_variants(kind, len(kind.variants))
        tag = self.fixed("B")
        self.flush()
        body = self.body
        for number, variant in enumerate(kind.variants.values()):
            body(f"if {tag} == {number}:")
            body.indent += 1
            value = self.read(variant, 0)
            self.flush()
            body(f"return {value}, at")
            body.indent -= 1
        body(f"raise bad_variant({tag}, {len(kind.variants)})")
