"""What all column types have in common: the base class, and how values are shown in error messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Final, NoReturn

from gamedb.errors import ColumnError

Described = dict["ColumnType", int]
"""The types that a description holds already, of those that contain themselves, with their numbers."""

LIGHT_BYTES: Final = 1 << 16
"""A value that weighs no more is not looked at again when it comes to what its row weighs."""


def shown(value: object) -> str:
    """A value for an error message: its `repr`, cut when it is longer than that of an `Identity`. Never raises."""
    if isinstance(value, str | bytes) and len(value) > 200:
        value = value[:200]
    try:
        text = repr(value)
    except Exception:  # nested too deep, a number of too many digits, a __repr__ that fails
        bits = f" of {value.bit_length()} bits" if isinstance(value, int) else ""
        text = f"<{type(value).__name__}{bits} that cannot be shown>"
    return text if len(text) <= 90 else f"{text[:87]}..."


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

    def weight(self, var: str, scope: dict[str, Any]) -> str:
        """An expression over `var`, a canonical value, for about how many bytes it takes; a number when all take alike.

        A character counts for one. In any form, as in JSON, the value takes at most six times that.
        """
        return "32"

    def light(self, var: str, scope: dict[str, Any]) -> str:
        """An expression over `var`, a canonical value, that is true when it weighs little; empty when all do."""
        weight = self.weight(var, scope)
        return "" if weight.isdecimal() else f"{weight} <= {LIGHT_BYTES}"

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

    def describe(self, described: Described | None = None) -> Any:
        """The type as JSON builtins, equal exactly for types that store alike.

        `described` is for the parts of a type that may contain itself.
        """
        return self.name

    def parts(self) -> Iterable[ColumnType]:
        """The types that values of this type hold directly."""
        return ()

    def refuse(self, value: object, path: str, why: str = "") -> NoReturn:
        """Raise the error for a value that does not fit."""
        raise ColumnError(f"{path}: expected {self.name}, got {shown(value)} ({type(value).__name__}){why}")


class Compound(ColumnType):
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


def weight_function(kind: ColumnType) -> Callable[[Any], int] | None:
    """The function of `ColumnType.weight`; `None` when all values weigh alike."""
    scope: dict[str, Any] = {}
    expression = kind.weight("v", scope)
    if expression.isdecimal():
        return None
    function: Callable[[Any], int] = eval(f"lambda v: {expression}", scope)  # made of field names of classes
    return function


def exact_function(kind: ColumnType) -> Callable[[Any], Any] | None:
    """The function of `ColumnType.exact`; `None` when the values themselves are exact, as without floats."""
    scope: dict[str, Any] = {}
    expression = kind.exact("v", scope)
    if expression == "v":
        return None
    function: Callable[[Any], Any] = eval(f"lambda v: {expression}", scope)  # made of field names of classes
    return function
