"""Writes the source of a function that turns values of one column type into bytes.

Neighbouring fields of fixed size go through one `struct` call. Values are canonical: nothing is checked again.
"""

from __future__ import annotations

from gamedb.columns import BytesType, ColumnType, ListType, OptionType, ProductType, StrType, SumType
from gamedb.wire.layout import Scalar, check_variants, fixed_size, scalar
from gamedb.wire.source import INLINE_MAX, Body, Source, struct_of


def write_encoder(source: Source, name: str, kind: ColumnType) -> str:
    """`def name(v)` that gives the bytes of a value, as source."""
    body = Body()
    pieces = _Pieces(source)
    if isinstance(kind, SumType):
        _write_variants(source, body, kind)
    else:
        _write_parts(source, body, pieces, kind, "v", 0)
        body(f"return {pieces.joined()}")
    return "\n".join([f"def {name}(v):", *body.lines])


class _Pieces:
    """The expressions whose bytes follow each other; what has a fixed size gathers in a run."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._done: list[str] = []
        self._formats: list[str] = []
        self._values: list[str] = []

    def fixed(self, code: str, value: str) -> None:
        self._formats.append(code)
        self._values.append(value)

    def add(self, piece: str) -> None:
        self._flush()
        self._done.append(piece)

    def _flush(self) -> None:
        if self._formats:
            pack = self._source.bind("pack", struct_of(self._formats).pack)
            self._done.append(f"{pack}({', '.join(self._values)})")
            self._formats, self._values = [], []

    def joined(self) -> str:
        self._flush()
        if not self._done:
            return 'b""'
        return self._done[0] if len(self._done) == 1 else f"join(({', '.join(self._done)}))"


def _function(source: Source, kind: ColumnType) -> str:
    return source.function("encode", kind, lambda name: write_encoder(source, name, kind))


def _write(source: Source, body: Body, pieces: _Pieces, kind: ColumnType, value: str, depth: int) -> None:
    if _is_apart(kind, depth):
        pieces.add(f"{_function(source, kind)}({value})")
    else:
        _write_parts(source, body, pieces, kind, value, depth)


def _is_apart(kind: ColumnType, depth: int) -> bool:
    """Whether the type has a function of its own."""
    if isinstance(kind, SumType):
        return True
    if isinstance(kind, ProductType) and kind.recursive:
        return True
    return depth >= INLINE_MAX and fixed_size(kind) is None and not isinstance(kind, StrType | BytesType)


def _write_parts(source: Source, body: Body, pieces: _Pieces, kind: ColumnType, value: str, depth: int) -> None:
    layout = scalar(kind)
    if layout is not None:
        _write_scalar(source, pieces, layout, value)
    elif isinstance(kind, ProductType):
        for name, field in kind.fields.items():
            _write(source, body, pieces, field, f"{value}.{name}", depth + 1)
    elif isinstance(kind, StrType | BytesType):
        data = source.fresh("data")
        body(f"{data} = {value}{'.encode()' if isinstance(kind, StrType) else ''}")
        pieces.fixed("I", f"len({data})")
        pieces.add(data)
    elif isinstance(kind, OptionType):
        _write_option(source, body, pieces, kind, value, depth)
    elif isinstance(kind, ListType):
        _write_list(source, body, pieces, kind, value, depth)
    else:
        raise AssertionError(f"{kind.name} is not of the wire; layout.size_min refuses it")


def _write_scalar(source: Source, pieces: _Pieces, layout: Scalar, value: str) -> None:
    extra = "" if layout.extra is None else source.bind("extra", layout.extra)
    for code, expression in zip(layout.formats, layout.encode, strict=True):
        pieces.fixed(code, expression.format(v=value, x=extra))


def _write_option(source: Source, body: Body, pieces: _Pieces, kind: OptionType, value: str, depth: int) -> None:
    given, option = source.fresh("given"), source.fresh("option")
    body(f"{given} = {value}")
    body(f"if {given} is None:")
    body(f'    {option} = b"\\1"')
    body("else:")
    body.indent += 1
    inner = _Pieces(source)
    inner.fixed("B", "0")
    _write(source, body, inner, kind.inner, given, depth + 1)
    body(f"{option} = {inner.joined()}")
    body.indent -= 1
    pieces.add(option)


def _write_list(source: Source, body: Body, pieces: _Pieces, kind: ListType, value: str, depth: int) -> None:
    items, item = source.fresh("items"), source.fresh("item")
    body(f"{items} = {value}")
    pieces.fixed("I", f"len({items})")
    layout = scalar(kind.item)
    if layout is not None and layout.encode == ("{v}",):
        code = layout.formats[0]
        pieces.add(f"bytes({items})" if code == "B" else f'pack(f"<{{len({items})}}{code}", *{items})')
    elif _is_apart(kind.item, depth + 1):
        pieces.add(f"join([{_function(source, kind.item)}({item}) for {item} in {items}])")
    elif fixed_size(kind.item) is not None:
        inner = _Pieces(source)
        _write(source, body, inner, kind.item, item, depth + 1)
        pieces.add(f"join([{inner.joined()} for {item} in {items}])")
    else:
        parts = source.fresh("parts")
        body(f"{parts} = []")
        body(f"for {item} in {items}:")
        body.indent += 1
        inner = _Pieces(source)
        _write(source, body, inner, kind.item, item, depth + 1)
        body(f"{parts}.append({inner.joined()})")
        body.indent -= 1
        pieces.add(f"join({parts})")


def _write_variants(source: Source, body: Body, kind: SumType) -> None:
    check_variants(kind, len(kind.variants))
    body("kind = type(v)")
    for number, variant in enumerate(kind.variants.values()):
        body(f"if kind is {source.bind('Variant', variant.cls)}:")
        body.indent += 1
        pieces = _Pieces(source)
        pieces.fixed("B", str(number))
        _write(source, body, pieces, variant, "v", 0)
        body(f"return {pieces.joined()}")
        body.indent -= 1
    body("raise TypeError(kind)")
