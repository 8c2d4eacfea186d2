"""`Endpoints`: the reducers and procedures of a database as clients name them, with the codecs of their arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gamedb.functions import Function
from gamedb.resolved import Resolved
from gamedb.wire.bsatn import codec, parameters_codec


class Endpoint:
    """A function that clients may name in a call."""

    __slots__ = ("decode", "encode_result", "function", "invoke", "name", "private")

    def __init__(self, function: Function) -> None:
        self.function = function
        self.name = function.name
        self.private = function.private
        self.invoke: Callable[..., Any] = function.invoke
        self.decode: Callable[[bytes], tuple[tuple[Any, ...], int]] = parameters_codec(function.parameters).decode
        returns = function.returns if function.kind == "procedure" else None
        self.encode_result: Callable[[Any], bytes] = _nothing if returns is None else codec(returns).encode


class Endpoints:
    """All of a module, by name."""

    def __init__(self, module: Resolved) -> None:
        functions = module.functions.values()
        self.reducers = {f.name: Endpoint(f) for f in functions if f.kind == "reducer"}
        self.procedures = {f.name: Endpoint(f) for f in functions if f.kind == "procedure"}


def _nothing(_value: Any) -> bytes:
    return b""
