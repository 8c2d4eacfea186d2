"""What workflow code sees of the engine: the `ctx` argument, and the same for effects that take no `ctx`.

The engine subclasses `WorkflowContext` and fills it in. `active` makes the context of the running step
reachable for `subscribe`, `unsubscribe` and `start`. This room has no behaviour of its own.
"""

from __future__ import annotations

from contextvars import ContextVar

from gamedb import ReducerContext

from .structs import Signal
from .waits import OnParentEnd


class WorkflowContext(ReducerContext):
    """The first argument of a workflow: a reducer context, and more. Every method takes effect at once.

    `now` is fixed for the step. `entity_id`, `correlation_id` and `parent_id` are what the workflow was started with.
    """

    __slots__ = ("correlation_id", "entity_id", "parent_id", "workflow_id")

    workflow_id: int
    """The id of this run, also of its row in `workflow`."""
    entity_id: int | None
    """As given at the start: the entity of the game that the run is about."""
    correlation_id: str | None
    """As given at the start: the same one joins this run instead of starting another."""
    parent_id: int | None
    """The workflow that started this one as its child."""

    def set_attribute(self, name: str, value: str | int | float | bool | None) -> None:
        """Show `name` = `value` beside the workflow, for lists and filters; None removes it."""
        raise NotImplementedError

    def broadcast(self, message: Signal, key: str | int) -> None:
        """Send a signal to every workflow that subscribed to this class with this key."""
        raise NotImplementedError

    def signal(self, workflow_id: int, message: Signal) -> None:
        """Send a signal to one workflow. `UnknownWorkflow` or `WorkflowFinished` when it cannot be taken."""
        raise NotImplementedError

    def signal_entity(self, entity_id: int, message: Signal) -> None:
        """Send a signal to the live workflows of one entity that know it."""
        raise NotImplementedError

    def subscribe(self, signal_name: str, key: str | int) -> None:
        """Behind `subscribe(S, key)`; a second time is once."""
        raise NotImplementedError

    def unsubscribe(self, signal_name: str, key: str | int) -> None:
        """Behind `unsubscribe(S, key)`."""
        raise NotImplementedError

    def start_child(
        self,
        workflow_type: str,
        init: bytes,
        *,
        entity_id: int | None,
        correlation_id: str | None,
        on_parent_end: OnParentEnd,
    ) -> int:
        """Behind `start(workflow, init)`: start a child in this transaction and return its id.

        `init` is JSON. Runs user code only after the present step, never inside it.
        """
        raise NotImplementedError


active: ContextVar[WorkflowContext] = ContextVar("active workflow context")


def active_context(what: str) -> WorkflowContext:
    """The context of the step that is running. Raises `RuntimeError` outside a workflow."""
    try:
        return active.get()
    except LookupError:
        raise RuntimeError(f"{what} works inside a running workflow only") from None
