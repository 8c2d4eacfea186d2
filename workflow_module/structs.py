"""What payloads and states are made of: `gamedb`'s Struct, `Signal` on top of it, and the plain-JSON alias.

It knows nothing of workflows, waits or the compiler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from gamedb import Struct

if TYPE_CHECKING:
    Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
else:

    class Json:
        """Plain JSON: None, bool, int, float, str, lists and string-keyed dicts of those.

        The explicit way to keep a value of no fixed shape across a wait.
        """


__all__ = ["Json", "Signal", "Struct"]


class Signal(Struct):
    """Base of signals: the fields are the payload, the class name is the signal's name.

    >>> class Stack(Signal):
    ...     n: int

    `case Stack(n)` matches by position, since fields are in `__match_args__`.
    """
