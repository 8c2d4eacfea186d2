"""`@workflow` and `@subroutine`."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any, ParamSpec, TypeVar, overload

from msgspec import UNSET, UnsetType

from .context import WorkflowContext
from .definition import WorkflowDefinition
from .subroutine import Subroutine

ContextT = TypeVar("ContextT", bound=WorkflowContext)
InitT = TypeVar("InitT")
ResultT = TypeVar("ResultT")
P = ParamSpec("P")


@overload
def workflow(
    function: Callable[[ContextT, InitT], Coroutine[Any, Any, ResultT]], /
) -> WorkflowDefinition[InitT, ResultT]: ...
@overload
def workflow(function: Callable[[ContextT], Coroutine[Any, Any, ResultT]], /) -> WorkflowDefinition[None, ResultT]: ...
@overload
def workflow(
    *, name: str | None = None, version: int = 1, retention: timedelta | UnsetType | None = UNSET
) -> Workflow: ...
def workflow(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    version: int = 1,
    retention: timedelta | UnsetType | None = UNSET,
) -> Any:
    """Compile `async def name(ctx: WorkflowContext, init: SomeStruct) -> Result` into a durable workflow.

    At each `await` its variables and its place in the code are stored; after a crash or a deploy it goes on there. The
    `init` may be left out. `name` is what states and tables call it (the function's name by default), `version` goes
    into every state, `retention` is how long finished runs are kept (`None`: for ever; by default as `install` says).
    Raises `CompileError` with file, line and remedy.

    ```python
    class Lot(Struct):
        item: str
        hours: int

    class Bid(Signal):
        bidder: str
        gold: int

    class LotTimer(Timer):
        END = "end"

    @workflow
    async def lot(ctx: WorkflowContext, init: Lot) -> str:
        best = Bid("nobody", 0)
        ends = ctx.now + timedelta(hours=init.hours)
        while True:
            match await select(timer(LotTimer.END, at=ends), Bid):
                case Bid(gold=gold) as bid if gold > best.gold:
                    best = bid
                case LotTimer.END:
                    return best.bidder

    module = Module("market")
    install(module, [lot])
    with Database(module, clock=ManualClock()) as db:
        flows = Workflows(db)
        sword = flows.start(lot, Lot("sword", hours=1))
        flows.signal(sword, Bid("ann", 20))
        db.clock.advance(timedelta(hours=1))
        db.run_due()
        print(flows.result(sword))  # ann
    ```
    """
    decorate = Workflow(name, version, retention)
    return decorate if function is None else decorate(function)


class Workflow:
    """`@workflow(...)` with arguments."""

    def __init__(self, name: str | None, version: int, retention: timedelta | UnsetType | None) -> None:
        self._name, self._version, self._retention = name, version, retention

    @overload
    def __call__(
        self, function: Callable[[ContextT, InitT], Coroutine[Any, Any, ResultT]], /
    ) -> WorkflowDefinition[InitT, ResultT]: ...
    @overload
    def __call__(
        self, function: Callable[[ContextT], Coroutine[Any, Any, ResultT]], /
    ) -> WorkflowDefinition[None, ResultT]: ...
    def __call__(self, function: Callable[..., Any], /) -> Any:
        return WorkflowDefinition(function, name=self._name, version=self._version, retention=self._retention)


@overload
def subroutine(function: Callable[P, Coroutine[Any, Any, ResultT]], /) -> Subroutine[P, ResultT]: ...
@overload
def subroutine(
    *, name: str | None = None
) -> Callable[[Callable[P, Coroutine[Any, Any, ResultT]]], Subroutine[P, ResultT]]: ...
def subroutine(function: Callable[..., Any] | None = None, /, *, name: str | None = None) -> Any:
    """Compile a helper that waits: `await helper(ctx, ...)` in a workflow or another subroutine.

    Each call has variables of its own in the workflow's state; it may call itself. `name` is what states
    call it (the function's name by default). Raises `CompileError`.
    """
    if function is not None:
        return Subroutine(function, name=name)
    return lambda decorated: Subroutine(decorated, name=name)
