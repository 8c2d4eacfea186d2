"""Struct bases of the workflow language: frozen msgspec Structs that type checkers understand.

This room holds the one seam to `gamedb`'s own Struct base and the plain-JSON alias. It knows nothing of
workflows, waits or the compiler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, TypeAlias, dataclass_transform

import msgspec

if TYPE_CHECKING:
    Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
else:

    class Json:
        """Plain JSON: None, bool, int, float, str, lists and string-keyed dicts of those.

        The explicit way to keep a value of no fixed shape across a wait.
        """


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class FrozenMeta(msgspec.StructMeta):
    """Makes Structs frozen unless `frozen=False` is written; any other option is msgspec's."""

    def __new__(
        mcls: type[FrozenMeta], name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> FrozenMeta:
        options.setdefault("frozen", True)
        return super().__new__(mcls, name, bases, namespace, **options)


if TYPE_CHECKING:
    # Not under msgspec.Struct: in mypy its own transform would win over `frozen_default`.
    class Struct(metaclass=FrozenMeta):
        def replace(self, **changes: Any) -> Self: ...
else:

    class Struct(msgspec.Struct, metaclass=FrozenMeta):
        """Base of init, result and state types: typed fields, positional or by keyword, frozen by default.

        >>> class BuffInit(Struct):
        ...     duration: timedelta
        """

        def replace(self, **changes: Any) -> Self:
            """A copy with some fields changed. Raises `TypeError` for a field that there is not."""
            return msgspec.structs.replace(self, **changes)


class Signal(Struct):
    """Base of signals: the fields are the payload, the class name is the signal's name.

    >>> class Stack(Signal):
    ...     n: int

    `case Stack(n)` matches by position, since fields are in `__match_args__`.
    """
