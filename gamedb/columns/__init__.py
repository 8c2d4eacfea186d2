"""What each column type accepts: the one description that checks, storage and the wire work from.

A `ColumnType` knows how a value looks in its canonical form (`fast`, an expression for generated code), how to
bring any acceptable value to that form (`coerce`), and its plain-JSON form (`to_json`, `from_json`). It knows no
table and no storage. `column_type` makes one of an annotation.
"""

from gamedb.columns.annotations import column_type, product_type
from gamedb.columns.base import ColumnType, exact_function, shown, weight_function
from gamedb.columns.graph import has_float, inside
from gamedb.columns.hints import Names, check_equality, resolve_hints, struct_defaults
from gamedb.columns.lists import FrozenList, ListType, OptionType
from gamedb.columns.plain import (
    BoolType,
    BytesType,
    EnumType,
    FloatType,
    HexType,
    IntType,
    StrType,
    UuidType,
    is_utf8,
    round_f32,
)
from gamedb.columns.recursion import mark_recursive
from gamedb.columns.structs import NESTING_MAX, ProductType, SumType
from gamedb.columns.times import (
    DURATION_MAX,
    DURATION_MIN,
    EPOCH,
    DurationType,
    ScheduleAtType,
    TimestampType,
    from_micros,
    micros_of,
    to_micros,
)

__all__ = [
    "DURATION_MAX",
    "DURATION_MIN",
    "EPOCH",
    "NESTING_MAX",
    "BoolType",
    "BytesType",
    "ColumnType",
    "DurationType",
    "EnumType",
    "FloatType",
    "FrozenList",
    "HexType",
    "IntType",
    "ListType",
    "Names",
    "OptionType",
    "ProductType",
    "ScheduleAtType",
    "StrType",
    "SumType",
    "TimestampType",
    "UuidType",
    "check_equality",
    "column_type",
    "exact_function",
    "from_micros",
    "has_float",
    "inside",
    "is_utf8",
    "mark_recursive",
    "micros_of",
    "product_type",
    "resolve_hints",
    "round_f32",
    "shown",
    "struct_defaults",
    "to_micros",
    "weight_function",
]
