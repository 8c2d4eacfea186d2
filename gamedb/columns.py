"""What each column type accepts: the one description that checks, storage and the wire work from.

A `ColumnType` knows how a value looks in its canonical form (`fast`, an expression for generated code), how to
bring any acceptable value to that form (`coerce`), and its plain-JSON form (`to_json`, `from_json`). It knows no
table and no storage.
"""

from __future__ import annotations

import enum
import struct
import types
import typing
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, ClassVar, NoReturn, SupportsIndex
from uuid import UUID

import msgspec

from gamedb.errors import ColumnError, SchemaError
from gamedb.types import I64, ConnectionId, F32Marker, Identity, IntRange

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DURATION_MAX = timedelta(microseconds=I64.high)
DURATION_MIN = timedelta(microseconds=I64.low)


def to_micros(moment: datetime) -> int:
    """Microseconds since the Unix epoch of an aware `datetime`."""
    since = moment - EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def from_micros(micros: int) -> datetime:
    """The UTC `datetime` at so many microseconds since the Unix epoch."""
    return EPOCH + timedelta(0, 0, micros)


def micros_of(duration: timedelta) -> int:
    """A duration in whole microseconds."""
    return (duration.days * 86_400 + duration.seconds) * 1_000_000 + duration.microseconds


def shown(value: object) -> str:
    """A value for an error message: its `repr`, cut when long. Never raises, whatever the value is."""
    if isinstance(value, str | bytes) and len(value) > 200:
        value = value[:200]
    try:
        text = repr(value)
    except Exception:  # nested too deep, a number of too many digits, a __repr__ that fails
        bits = f" of {value.bit_length()} bits" if isinstance(value, int) else ""
        text = f"<{type(value).__name__}{bits} that cannot be shown>"
    return text if len(text) <= 80 else f"{text[:77]}..."


class FrozenList(list[Any]):
    """The form in which lists stand in rows: an ordinary `list` to read, and an error to change in place."""

    __slots__ = ()

    def _refuse(self, *_args: object, **_kwargs: object) -> NoReturn:
        raise TypeError(
            "a list in a row or an argument cannot be changed in place; "
            "make a new one: row.replace(items=[*row.items, item])"
        )

    append = extend = insert = remove = pop = clear = sort = reverse = _refuse
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse

    def __hash__(self) -> int:  # type: ignore[override]  # list sets it to None
        return hash(tuple(self))

    def __reduce_ex__(self, _protocol: SupportsIndex) -> tuple[Callable[..., Any], tuple[list[Any]]]:
        return FrozenList, (list(self),)


class ColumnType:
    """Base class: one type of a column, parameter or nested field."""

    name: str
    orderable: ClassVar[bool] = False  # may stand in `between`
    keyable: ClassVar[bool] = True  # may be a primary key, unique or indexed
    zero: Any = None  # a value for columns that have no default, in messages and tools

    def fast(self, var: str, scope: dict[str, Any]) -> str:
        """An expression over `var` that is true only for canonical values; helpers go into `scope`.

        It names nothing but `var` and helpers with a leading underscore: parameters of a game may be called `type`.
        """
        raise NotImplementedError

    def exact(self, var: str, scope: dict[str, Any]) -> str:
        """An expression over `var` whose values are equal exactly for values that a row holds alike.

        It differs from `var` for floats: -0.0 is not 0.0, and nan is itself.
        """
        return var

    def coerce(self, value: Any, path: str) -> Any:
        """The canonical form of `value`; `ColumnError` names `path` and the value when there is none."""
        raise NotImplementedError

    def to_json(self, value: Any) -> Any:
        """The value as plain JSON builtins."""
        return value

    def from_json(self, value: Any, path: str) -> Any:
        """The canonical value of its plain-JSON form; `ColumnError` when it is none."""
        return self.coerce(value, path)

    def describe(self) -> Any:
        """The type as JSON builtins, equal exactly for types that store alike."""
        return self.name

    def refuse(self, value: object, path: str, why: str = "") -> NoReturn:
        """Raise the error for a value that does not fit."""
        raise ColumnError(f"{path}: expected {self.name}, got {shown(value)} ({type(value).__name__}){why}")


class BoolType(ColumnType):
    name = "bool"

    def fast(self, var: str, scope: dict[str, Any]) -> str:
        return f"({var} is True or {var} is False)"

    def coerce(self, value: Any, path: str) -> Any:
        if value is True or value is False:
            return value
        self.refuse(value, path)


class IntType(ColumnType):
    orderable = True

    def __init__(self, bounds: IntRange) -> None:
        self.name = bounds.name
        self.low = bounds.low
        self.high = bounds.high

    def fast(self, var: str, scope: dict[str, Any]) -> str:
        scope["_type"], scope["_int"] = type, int
        return f"(_type({var}) is _int and {self.low} <= {var} <= {self.high})"

    def coerce(self, value: Any, path: str) -> Any:
        if not isinstance(value, int) or isinstance(value, bool):
            self.refuse(value, path)
        number = int(value)
        if not self.low <= number <= self.high:
            raise ColumnError(f"{path}: {shown(number)} is out of range for {self.name} ({self.low}..{self.high})")
        return number


_F32 = struct.Struct("<f")


def round_f32(value: float) -> float:
    """The nearest 32-bit float; `OverflowError` when it is too large for one."""
    return float(_F32.unpack(_F32.pack(value))[0])


def _is_f32(value: float) -> bool:
    try:
        return round_f32(value) == value
    except OverflowError:
        return False


class FloatType(ColumnType):
    orderable = True

    def __init__(self, name: str) -> None:
        self.name = name

    def fast(self, var: str, scope: dict[str, Any]) -> str:
        scope["_type"], scope["_float"] = type, float
        if self.name == "f64":
            return f"_type({var}) is _float"
        scope["_is_f32"] = _is_f32
        return f"(_type({var}) is _float and _is_f32({var}))"

    def exact(self, var: str, scope: dict[str, Any]) -> str:
        scope["_repr"] = repr
        return f"({var} if {var} and {var} == {var} else _repr({var}))"

    def coerce(self, value: Any, path: str) -> Any:
        if not isinstance(value, int | float) or isinstance(value, bool):
            self.refuse(value, path)
        try:
            number = float(value)
            return number if self.name == "f64" else round_f32(number)
        except OverflowError:
            raise ColumnError(f"{path}: {shown(value)} is out of range for {self.name}") from None

    def to_json(self, value: Any) -> Any:
        return value if value - value == 0 else repr(value)  # JSON has no nan, inf and -inf

    def from_json(self, value: Any, path: str) -> Any:
        return float(value) if value in ("nan", "inf", "-inf") else self.coerce(value, path)


def is_utf8(text: str) -> bool:
    """Whether the text has a UTF-8 form (a lone surrogate has none)."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class StrType(ColumnType):
    name = "str"
    orderable = True

    def fast(self, var: str, scope: dict[str, Any]) -> str:
        scope["_type"], scope["_str"], scope["_is_utf8"] = type, str, is_utf8
        return f"(_type({var}) is _str and ({var}.isascii() or _is_utf8({var})))"

    def coerce(self, value: Any, path: str) -> Any:
        if not isinstance(value, str):
            self.refuse(value, path)
        text = str.__str__(value)
        if not is_utf8(text):
            self.refuse(value, path, ": it holds a lone surrogate, which has no UTF-8 form")
        return text


class BytesType(ColumnType):
    name = "bytes"
    orderable = True

    def fast(self, var: str, scope: dict[str, Any]) -> str:
        scope["_type"], scope["_bytes"] = type, bytes
        return f"_type({var}) is _bytes"

    def coerce(self, value: Any, path: str) -> Any:
        if type(value) is bytes:
            return value
        if isinstance(value, bytearray | memoryview):
            return bytes(value)
        self.refuse(value, path)

    def to_json(self, value: Any) -> Any:
        return value.hex()

    def from_json(self, value: Any, path: str) -> Any:
        try:
            return bytes.fromhex(value)
        except (TypeError, ValueError):
            self.refuse(value, path, ": bytes are written as hex text")


class TimestampType(ColumnType):
    name = "datetime"
    orderable = True

    def fast(self, var: str, scope: dict[str, Any]) -> str:
        scope["_type"], scope["_datetime"], scope["_UTC"] = type, datetime, UTC
        return f"(_type({var}) is _datetime and {var}.tzinfo is _UTC and not {var}.fold)"

    def coerce(self, value: Any, path: str) -> Any:
        if not isinstance(value, datetime):
            self.refuse(value, path)
        if value.utcoffset() is None:
            self.refuse(value, path, ": it has no time zone; use datetime.now(UTC) or .replace(tzinfo=UTC)")
        if type(value) is datetime and value.tzinfo is UTC and not value.fold:
            return value
        try:
            return from_micros(to_micros(value))
        except OverflowError:
            self.refuse(value, path, ": it is outside the years 1 to 9999 of UTC")

    def to_json(self, value: Any) -> Any:
        return value.isoformat().replace("+00:00", "Z")

    def from_json(self, value: Any, path: str) -> Any:
        try:
            moment = datetime.fromisoformat(value)
        except (TypeError, ValueError):
            self.refuse(value, path, ": times are written like 2026-11-29T12:00:00Z")
        return self.coerce(moment, path)


class DurationType(ColumnType):
    name = "timedelta"
    orderable = True

    def fast(self, var: str, scope: dict[str, Any]) -> str:
        scope["_type"], scope["_timedelta"] = type, timedelta
        scope["_LONGEST"], scope["_SHORTEST"] = DURATION_MAX, DURATION_MIN
        return f"(_type({var}) is _timedelta and _SHORTEST <= {var} <= _LONGEST)"

    def coerce(self, value: Any, path: str) -> Any:
        if not isinstance(value, timedelta):
            self.refuse(value, path)
        if not DURATION_MIN <= value <= DURATION_MAX:
            raise ColumnError(f"{path}: {shown(value)} does not fit 64 bits of microseconds")
        return timedelta(microseconds=micros_of(value)) if type(value) is not timedelta else value

    def to_json(self, value: Any) -> Any:
        return micros_of(value)

    def from_json(self, value: Any, path: str) -> Any:
        if type(value) is not int or not I64.low <= value <= I64.high:
            self.refuse(value, path, ": durations are written as whole microseconds")
        return timedelta(microseconds=value)


class ScheduleAtType(ColumnType):
    name = "ScheduleAt"
    keyable = False
    _time = TimestampType()
    _interval = DurationType()

    def fast(self, var: str, scope: dict[str, Any]) -> str:
        time, interval = self._time.fast(var, scope), self._interval.fast(var, scope)
        scope["_NO_TIME"] = timedelta(0)
        return f"({time} or ({interval} and {var} > _NO_TIME))"

    def coerce(self, value: Any, path: str) -> Any:
        if isinstance(value, datetime):
            return self._time.coerce(value, path)
        if not isinstance(value, timedelta):
            self.refuse(value, path, ": a datetime fires once, a timedelta again and again")
        if value <= timedelta(0):
            self.refuse(value, path, ": an interval must be positive; to fire at once, use ctx.now")
        return self._interval.coerce(value, path)

    def to_json(self, value: Any) -> Any:
        return (self._time if isinstance(value, datetime) else self._interval).to_json(value)

    def from_json(self, value: Any, path: str) -> Any:
        part = self._interval if isinstance(value, int) else self._time
        return self.coerce(part.from_json(value, path), path)


class UuidType(ColumnType):
    name = "UUID"
    orderable = True

    def fast(self, var: str, scope: dict[str, Any]) -> str:
        scope["_type"], scope["_UUID"] = type, UUID
        return f"_type({var}) is _UUID"

    def coerce(self, value: Any, path: str) -> Any:
        if isinstance(value, UUID):
            return value if type(value) is UUID else UUID(int=value.int)
        self.refuse(value, path)

    def to_json(self, value: Any) -> Any:
        return str(value)

    def from_json(self, value: Any, path: str) -> Any:
        try:
            return UUID(value)
        except (TypeError, ValueError, AttributeError):
            self.refuse(value, path)


class HexType(ColumnType):
    """`Identity` and `ConnectionId`."""

    orderable = True

    def __init__(self, cls: type[Identity] | type[ConnectionId]) -> None:
        self.name = cls.__name__
        self.cls = cls

    def fast(self, var: str, scope: dict[str, Any]) -> str:
        scope["_type"], scope[f"_{self.name}"] = type, self.cls
        return f"_type({var}) is _{self.name}"

    def coerce(self, value: Any, path: str) -> Any:
        if type(value) is self.cls:
            return value
        self.refuse(value, path)

    def to_json(self, value: Any) -> Any:
        return value.hex()

    def from_json(self, value: Any, path: str) -> Any:
        try:
            return self.cls.from_hex(value)
        except ValueError:
            self.refuse(value, path)


class EnumType(ColumnType):
    def __init__(self, cls: type[enum.Enum]) -> None:
        self.name = cls.__name__
        self.cls = cls

    def fast(self, var: str, scope: dict[str, Any]) -> str:
        alias = f"_Enum{len(scope)}"
        scope["_type"], scope[alias] = type, self.cls
        return f"_type({var}) is {alias}"

    def coerce(self, value: Any, path: str) -> Any:
        if isinstance(value, self.cls):
            return value
        self.refuse(value, path)

    def to_json(self, value: Any) -> Any:
        return value.name

    def from_json(self, value: Any, path: str) -> Any:
        if not isinstance(value, str) or value not in self.cls.__members__:
            self.refuse(value, path, f": one of {', '.join(self.cls.__members__)}")
        return self.cls[value]

    def describe(self) -> Any:
        return {"enum": list(self.cls.__members__)}


class OptionType(ColumnType):
    def __init__(self, inner: ColumnType) -> None:
        self.name = f"{inner.name} | None"
        self.inner = inner
        self.orderable = inner.orderable  # type: ignore[misc]  # an option is what its inner type is
        self.keyable = inner.keyable  # type: ignore[misc]

    def fast(self, var: str, scope: dict[str, Any]) -> str:
        return f"({var} is None or {self.inner.fast(var, scope)})"

    def exact(self, var: str, scope: dict[str, Any]) -> str:
        inner = self.inner.exact(var, scope)
        return var if inner == var else f"(None if {var} is None else {inner})"

    def coerce(self, value: Any, path: str) -> Any:
        return None if value is None else self.inner.coerce(value, path)

    def to_json(self, value: Any) -> Any:
        return None if value is None else self.inner.to_json(value)

    def from_json(self, value: Any, path: str) -> Any:
        return None if value is None else self.inner.from_json(value, path)

    def describe(self) -> Any:
        return {"option": self.inner.describe()}


class _Compound(ColumnType):
    """A type whose canonical values are recognised by `coerce` giving back the very same object."""

    keyable = False

    def fast(self, var: str, scope: dict[str, Any]) -> str:
        alias = f"_is_canonical{len(scope)}"
        scope[alias] = self._is_canonical
        return f"{alias}({var})"

    def _is_canonical(self, value: Any) -> bool:
        try:
            return self.coerce(value, "") is value
        except ColumnError:  # `coerce` will say so again, and where
            return False


class ListType(_Compound):
    def __init__(self, item: ColumnType) -> None:
        self.name = f"list[{item.name}]"
        self.item = item

    def fast(self, var: str, scope: dict[str, Any]) -> str:
        scope["_type"], scope["_FrozenList"] = type, FrozenList
        return f"(_type({var}) is _FrozenList and {super().fast(var, scope)})"

    def exact(self, var: str, scope: dict[str, Any]) -> str:
        item = exact_function(self.item)
        if item is None:
            return var
        alias = f"_exact{len(scope)}"
        scope["_tuple"], scope["_map"], scope[alias] = tuple, map, item
        return f"_tuple(_map({alias}, {var}))"

    def coerce(self, value: Any, path: str) -> Any:
        if not isinstance(value, list | tuple):
            self.refuse(value, path)
        coerce = self.item.coerce
        items = [coerce(item, f"{path}[{i}]") for i, item in enumerate(value)]
        if type(value) is FrozenList and all(map(lambda a, b: a is b, items, value)):
            return value
        return FrozenList(items)

    def to_json(self, value: Any) -> Any:
        return [self.item.to_json(item) for item in value]

    def from_json(self, value: Any, path: str) -> Any:
        if not isinstance(value, list):
            self.refuse(value, path)
        return FrozenList(self.item.from_json(item, f"{path}[{i}]") for i, item in enumerate(value))

    def describe(self) -> Any:
        return {"list": self.item.describe()}


class ProductType(_Compound):
    """A frozen msgspec Struct (a `Row` as the parameter of a scheduled reducer included)."""

    def __init__(self, cls: type[msgspec.Struct], fields: dict[str, ColumnType], required: set[str]) -> None:
        self.name = cls.__name__
        self.cls = cls
        self.fields = fields
        self.required = required

    def coerce(self, value: Any, path: str) -> Any:
        if type(value) is not self.cls:
            self.refuse(value, path)
        changes = {}
        for name, kind in self.fields.items():
            before = getattr(value, name)
            after = kind.coerce(before, f"{path}.{name}" if path else name)
            if after is not before:
                changes[name] = after
        return msgspec.structs.replace(value, **changes) if changes else value

    def exact(self, var: str, scope: dict[str, Any]) -> str:
        fields = [kind.exact(f"{var}.{name}", scope) for name, kind in self.fields.items()]
        if fields == [f"{var}.{name}" for name in self.fields]:
            return var
        return f"({', '.join(fields)},)"

    def to_json(self, value: Any) -> Any:
        return {name: kind.to_json(getattr(value, name)) for name, kind in self.fields.items()}

    def from_json(self, value: Any, path: str) -> Any:
        if not isinstance(value, dict):
            self.refuse(value, path)
        for key in value:
            if key not in self.fields:
                raise ColumnError(f"{path}: {self.name} has no field {key!r} (it has {', '.join(self.fields)})")
        missing = [name for name in self.fields if name in self.required and name not in value]
        if missing:
            raise ColumnError(f"{path}: {self.name} needs the field {missing[0]!r}")
        fields = {
            name: self.fields[name].from_json(item, f"{path}.{name}" if path else name) for name, item in value.items()
        }
        try:
            made = self.cls(**fields)
        except Exception as error:  # its own __post_init__, say
            raise ColumnError(f"{path}: {self.name} cannot be made of this: {error!r}") from error
        return self.coerce(made, path)

    def describe(self) -> Any:
        return {"product": [[name, kind.describe()] for name, kind in self.fields.items()]}


class SumType(_Compound):
    """A tagged union of frozen Structs."""

    def __init__(self, variants: dict[str, ProductType], tag_field: str) -> None:
        self.name = " | ".join(variant.name for variant in variants.values())
        self.variants = variants
        self.tag_field = tag_field
        self._by_class = {variant.cls: (tag, variant) for tag, variant in variants.items()}

    def coerce(self, value: Any, path: str) -> Any:
        entry = self._by_class.get(type(value))
        if entry is None:
            self.refuse(value, path)
        return entry[1].coerce(value, path)

    def exact(self, var: str, scope: dict[str, Any]) -> str:
        variants = {v.cls: exact_function(v) for v in self.variants.values()}
        if not any(variants.values()):
            return var

        def exact(value: Any) -> Any:
            function = variants[type(value)]
            return (type(value), value if function is None else function(value))

        alias = f"_exact{len(scope)}"
        scope[alias] = exact
        return f"{alias}({var})"

    def to_json(self, value: Any) -> Any:
        tag, variant = self._by_class[type(value)]
        return {self.tag_field: tag, **variant.to_json(value)}

    def from_json(self, value: Any, path: str) -> Any:
        tag = value.get(self.tag_field) if isinstance(value, dict) else None
        variant = self.variants.get(tag) if isinstance(tag, str) else None
        if variant is None:
            self.refuse(value, path, f": {self.tag_field!r} must be one of {', '.join(self.variants)}")
        return variant.from_json({k: v for k, v in value.items() if k != self.tag_field}, path)

    def describe(self) -> Any:
        named = "" if self.tag_field == "type" else f"{self.tag_field}="  # a stored value names its variant under it
        return {"sum": [[f"{named}{tag}", variant.describe()] for tag, variant in self.variants.items()]}


def exact_function(kind: ColumnType) -> Callable[[Any], Any] | None:
    """The function of `ColumnType.exact`; `None` when the values themselves are exact, as without floats."""
    scope: dict[str, Any] = {}
    expression = kind.exact("v", scope)
    if expression == "v":
        return None
    function: Callable[[Any], Any] = eval(f"lambda v: {expression}", scope)  # made of field names of classes
    return function


_PLAIN: dict[object, ColumnType] = {
    bool: BoolType(),
    int: IntType(I64),
    float: FloatType("f64"),
    str: StrType(),
    bytes: BytesType(),
    datetime: TimestampType(),
    timedelta: DurationType(),
    UUID: UuidType(),
    Identity: HexType(Identity),
    ConnectionId: HexType(ConnectionId),
}

_KNOWN = (
    "bool, int, u8..u256, i8..i256, f32, float, str, bytes, datetime, timedelta, UUID, Identity, ConnectionId, "
    "ScheduleAt, an Enum, T | None, list[T], a frozen Struct, or a union of tagged Structs"
)


Names = dict[str, Any] | None
"""The local names around a class or function that is not at module level, for its annotations."""


def column_type(annotation: Any, where: str, scope: Names = None, _within: tuple[type, ...] = ()) -> ColumnType:
    """The `ColumnType` of a resolved annotation; `SchemaError` naming `where` when there is none."""
    if typing.get_origin(annotation) is Annotated:
        base, *markers = typing.get_args(annotation)
        for marker in markers:
            if isinstance(marker, IntRange):
                return IntType(marker)
            if isinstance(marker, F32Marker):
                return FloatType("f32")
        return column_type(base, where, scope, _within)
    plain = _PLAIN.get(annotation) if isinstance(annotation, type) else None
    if plain is not None:
        return plain
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return _union(args, where, scope, _within)
    if origin is list:
        return ListType(column_type(args[0], where, scope, _within))
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return _enum(annotation, where)
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return product_type(annotation, where, scope, _within)
    hint = " (write list[T])" if annotation is list else ""
    raise SchemaError(f"{where}: {_type_name(annotation)} is not a column type{hint}; use {_KNOWN}")


def product_type(
    cls: type[msgspec.Struct], where: str, scope: Names = None, _within: tuple[type, ...] = ()
) -> ProductType:
    """The product of a frozen Struct's fields."""
    if cls in _within:
        raise SchemaError(f"{where}: {cls.__name__} contains itself; recursive types cannot be columns")
    if not cls.__struct_config__.frozen:
        raise SchemaError(f"{where}: {cls.__name__} can be changed in place; declare it with frozen=True")
    check_equality(cls, where)
    hints = resolve_hints(cls, where, scope if "<locals>" in cls.__qualname__ else None)
    defaults = struct_defaults(cls)
    kinds = {name: column_type(hints[name], f"{where}.{name}", scope, (*_within, cls)) for name in defaults}
    return ProductType(cls, kinds, {name for name, default in defaults.items() if default is msgspec.NODEFAULT})


class _Probe(msgspec.Struct):
    made: list[int] = msgspec.field(default_factory=list)


_Factory: Any = type(_Probe.__struct_defaults__[0])


def struct_defaults(cls: type[msgspec.Struct]) -> dict[str, Any]:
    """The fields of a Struct with their default values, made anew by their factories; `NODEFAULT` without one.

    As `msgspec.structs.fields`, but it leaves alone annotations, which may name local classes.
    """
    given = cls.__struct_defaults__
    values = (msgspec.NODEFAULT,) * (len(cls.__struct_fields__) - len(given)) + given
    made = (value.factory() if isinstance(value, _Factory) else value for value in values)
    return dict(zip(cls.__struct_fields__, made, strict=True))


def check_equality(cls: type[msgspec.Struct], where: str) -> None:
    """`SchemaError` unless a Struct compares by its fields: what is a change, and which rows are equal, hangs on it."""
    if not cls.__struct_config__.eq or cls.__eq__ is not msgspec.Struct.__eq__:
        raise SchemaError(f"{where}: {cls.__name__} must compare by its fields; drop eq=False or its own __eq__")


def resolve_hints(owner: Any, where: str, scope: Names = None) -> dict[str, Any]:
    """The annotations of a class or function with names resolved."""
    try:
        return typing.get_type_hints(owner, localns=scope, include_extras=True)
    except NameError as error:
        raise SchemaError(f"{where}: {error} in an annotation; define or import it first") from None
    except TypeError as error:
        raise SchemaError(f"{where}: an annotation cannot be read: {error}") from None


def _enum(cls: type[enum.Enum], where: str) -> ColumnType:
    if issubclass(cls, enum.Flag):
        raise SchemaError(f"{where}: {cls.__name__} is a Flag, whose values combine; store it as u32")
    if not cls.__members__:
        raise SchemaError(f"{where}: {cls.__name__} has no members")
    for base in cls.__mro__[: cls.__mro__.index(enum.Enum)]:
        if issubclass(base, enum.Enum) and base.__module__ != "enum" and {"__eq__", "__hash__"} & base.__dict__.keys():
            raise SchemaError(f"{where}: {cls.__name__} must compare by its members; drop its own __eq__ and __hash__")
    return EnumType(cls)


def _union(args: Iterable[Any], where: str, scope: Names, within: tuple[type, ...]) -> ColumnType:
    members = [a for a in args if a is not type(None)]
    optional = len(members) < len(tuple(args))
    if set(members) == {datetime, timedelta}:
        kind: ColumnType = ScheduleAtType()
    elif len(members) == 1:
        kind = column_type(members[0], where, scope, within)
    else:
        kind = _sum(members, where, scope, within)
    return OptionType(kind) if optional else kind


def _sum(members: list[Any], where: str, scope: Names, within: tuple[type, ...]) -> ColumnType:
    variants: dict[str, ProductType] = {}
    tag_fields = set()
    for member in members:
        if not (isinstance(member, type) and issubclass(member, msgspec.Struct)):
            raise SchemaError(
                f"{where}: a union may hold Structs with tags (or one type and None), not {_type_name(member)}"
            )
        config = member.__struct_config__
        if not isinstance(config.tag, str):
            raise SchemaError(f"{where}: {member.__name__} stands in a union; declare it with tag=True")
        variants[config.tag] = product_type(member, where, scope, within)
        tag_fields.add(config.tag_field)
    if len(variants) != len(members) or len(tag_fields) != 1:
        raise SchemaError(f"{where}: the Structs of a union need different tags in one tag_field")
    return SumType(variants, str(tag_fields.pop()))


def _type_name(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation).replace("typing.", "")
