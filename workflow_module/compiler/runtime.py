"""What compiled code calls while it runs. Nothing here is for authors."""

from __future__ import annotations

from typing import Any

import msgspec

from workflow_module.errors import StateError


def sequence(found: Any) -> Any:
    """The list, tuple, string or range that a loop goes over by index."""
    if type(found) in (list, tuple, str, bytes, range):
        return found
    iter(found)  # raises Python's own error for what no loop can go over
    raise StateError(
        f"a loop with a wait goes over a {type(found).__qualname__} where its type says list or tuple: "
        f"write list(...) around it"
    )


def rebound(what: str) -> None:
    """The object that a path led to before the wait is not the one it leads to now."""
    raise StateError(
        f"{what} names another object than when the statement began, so it cannot be found again after the "
        f"wait; keep it in a variable of its own"
    )


def strict(*more: bool) -> None:
    """The end of a loop over `zip(..., strict=True)`: `more` says which arguments have items left."""
    for _ in zip(*((0,) * left for left in more), strict=True):
        pass


def chain(error: BaseException, pending: BaseException) -> None:
    """An error raised while another is pending has that as its context."""
    if error is not pending and error.__context__ is None:
        error.__context__ = pending


HELPERS: dict[str, Any] = {
    "_wf_BaseException": BaseException,
    "_wf_NameError": NameError,
    "_wf_UNSET": msgspec.UNSET,
    "_wf_bool": bool,
    "_wf_chain": chain,
    "_wf_len": len,
    "_wf_rebound": rebound,
    "_wf_sequence": sequence,
    "_wf_strict": strict,
    "_wf_to_list": list,
}
