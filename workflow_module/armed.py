"""What a workflow waits for, as the engine keeps it: deadlines fixed, calls and children named by their ids.

A compiler's `Wait` says what is wanted; an armed wait is what came of it, and small enough for a million rows.
`evaluate` decides whether it is over and what the code gets: what is ready wins by when it became ready. Pure: all
that it needs to know comes in as `Facts`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeAlias

import msgspec

from .errors import ChildCancelled, ChildFailed, ProcedureFailed
from .outcome import Event, Throw, Value


class TimerLeaf(msgspec.Struct, array_like=True, tag="t", omit_defaults=True):
    """A timer (`name`) or a sleep (None), due at so many microseconds; `fired` when somebody fired it by hand."""

    name: str | None
    due: int
    fired: int | None = None


class SignalLeaf(msgspec.Struct, array_like=True, tag="s", omit_defaults=True):
    """The oldest unread signal of this name, with or without a deadline."""

    name: str
    due: int | None = None
    fired: int | None = None
    upto: int | None = None
    """The newest signal that a failed step had seen."""


class CallLeaf(msgspec.Struct, array_like=True, tag="c", omit_defaults=True):
    """A pending procedure; once it has ended (`ready`), its result as JSON or why it failed."""

    id: int
    procedure: str
    ready: int | None = None
    value: str | None = None
    failure: tuple[int, str, str] | None = None
    """attempts, error type, error."""


class ChildLeaf(msgspec.Struct, array_like=True, tag="w", omit_defaults=True):
    """A child; once it has ended (`ready`), its result as JSON or why there is none. `own`: started by this wait."""

    id: int
    workflow_type: str
    own: bool
    ready: int | None = None
    value: str | None = None
    failure: str | None = None
    cancelled: bool = False


class SelectNode(msgspec.Struct, array_like=True, tag="x", omit_defaults=True):
    """The first of the arms; `chosen` is the arm that a failed step had been given."""

    arms: list[Node]
    chosen: int | None = None


class GatherNode(msgspec.Struct, array_like=True, tag="g", omit_defaults=True):
    """All of the arms."""

    arms: list[Node]
    return_exceptions: bool = False


class AllNode(msgspec.Struct, array_like=True, tag="a", omit_defaults=True):
    """One signal of each name, or what of them had come by the deadline."""

    names: list[str]
    due: int | None = None
    fired: int | None = None
    upto: int | None = None
    """The newest signal that a failed step had seen."""


Node: TypeAlias = TimerLeaf | SignalLeaf | CallLeaf | ChildLeaf | SelectNode | GatherNode | AllNode
DeadlineNode: TypeAlias = TimerLeaf | SignalLeaf | AllNode

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Node).decode


def encode_node(node: Node) -> bytes:
    """JSON of an armed wait."""
    return _encode(node)


def decode_node(data: bytes) -> Node:
    """An armed wait from its JSON."""
    return _decode(data)


def leaves(node: Node) -> Iterator[TimerLeaf | SignalLeaf | CallLeaf | ChildLeaf | AllNode]:
    """All nodes without arms, in order."""
    if isinstance(node, SelectNode | GatherNode):
        for arm in node.arms:
            yield from leaves(arm)
    else:
        yield node


def remember(node: Node, ready: Ready, upto: int) -> None:
    """A step failed: note what it was given, so that it gets the same again, whatever becomes ready meanwhile."""
    if isinstance(node, SelectNode) and node.chosen is None:
        node.chosen = ready.arm
    for leaf in leaves(node):
        if isinstance(leaf, SignalLeaf | AllNode) and leaf.upto is None:
            leaf.upto = upto


def forget_choice(node: Node) -> None:
    """Undo `remember`: the step shall get what comes now."""
    if isinstance(node, SelectNode):
        node.chosen = None
    for leaf in leaves(node):
        if isinstance(leaf, SignalLeaf | AllNode):
            leaf.upto = None


def deadlines(node: Node) -> Iterator[tuple[str, DeadlineNode]]:
    """(name as in `workflow_timer`, node) of everything that waits for a time and has not been fired."""
    for leaf in leaves(node):
        if isinstance(leaf, CallLeaf | ChildLeaf) or leaf.due is None or leaf.fired is not None:
            continue
        if isinstance(leaf, TimerLeaf):
            yield leaf.name or "sleep", leaf
        elif isinstance(leaf, SignalLeaf):
            yield f"timeout({leaf.name})", leaf
        else:
            yield "timeout", leaf


class Unread(Protocol):
    """A signal that may be taken."""

    @property
    def id(self) -> int:
        """Its number by arrival."""

    @property
    def name(self) -> str:
        """The name of its class."""

    @property
    def micros(self) -> int:
        """When it arrived."""

    @property
    def value(self) -> Any:
        """The signal itself; raises when it does not fit its class any more."""


class Facts:
    """What an evaluation may look at; the engine fills in what needs tables.

    `stored` is how many unread signals the inbox holds, `incoming` one that has just come and is younger than they.
    """

    __slots__ = ("incoming", "manual", "now", "stored")

    def __init__(self, now: int, manual: bool, stored: int, incoming: Unread | None) -> None:
        self.now = now
        self.manual = manual
        self.stored = stored
        self.incoming = incoming

    def unread(self, name: str, skip: int) -> Unread | None:
        """The oldest unread signal of a name but for `skip` of them."""
        there = 0
        if self.stored:
            found, there = self.inbox(name, skip)
            if found is not None:
                return found
        incoming = self.incoming
        return incoming if incoming is not None and incoming.name == name and skip == there else None

    def inbox(self, name: str, skip: int) -> tuple[Unread | None, int]:
        """The same from the inbox, and how many there are up to it."""
        raise NotImplementedError

    def timer_value(self, name: str) -> Any:
        """The member of a timer's value."""
        raise NotImplementedError

    def child_value(self, leaf: ChildLeaf) -> Any:
        """The typed result of a child."""
        raise NotImplementedError

    def call_value(self, leaf: CallLeaf) -> Any:
        """The typed result of a call."""
        raise NotImplementedError


class Ready(msgspec.Struct):
    """A wait that is over: since when, and what the code gets. `taken` are the ids of the signals that it reads."""

    micros: int
    event: Callable[[], Event]
    taken: list[int] = msgspec.field(default_factory=list)
    arm: int | None = None
    """Which arm of a select won."""
    failed: bool = False


_Counts: TypeAlias = dict[str, int]
"""How many signals of a name the wait has taken so far."""


def evaluate(node: Node, facts: Facts) -> Ready | None:
    """Whether the wait is over; None when it goes on."""
    return _evaluate(node, facts, {})


def _evaluate(node: Node, facts: Facts, counts: _Counts) -> Ready | None:
    return _EVALUATE[type(node)](node, facts, counts)


def _deadline(node: DeadlineNode, facts: Facts) -> int | None:
    """Since when the deadline has passed; None when it has not."""
    if node.fired is not None:
        return node.fired
    due = node.due
    return due if due is not None and not facts.manual and due <= facts.now else None


def _nothing() -> Event:
    return Value(None)


def _timer(node: TimerLeaf, facts: Facts, _counts: _Counts) -> Ready | None:
    since = _deadline(node, facts)
    if since is None:
        return None
    name = node.name
    return Ready(since, _nothing if name is None else lambda: Value(facts.timer_value(name)))


def _signal(node: SignalLeaf, facts: Facts, counts: _Counts) -> Ready | None:
    found = facts.unread(node.name, counts.get(node.name, 0))
    if node.upto is not None and found is not None and found.id > node.upto:
        found = None
    since = _deadline(node, facts)
    if found is not None and (since is None or found.micros <= since):
        counts[node.name] = counts.get(node.name, 0) + 1
        return Ready(found.micros, lambda: Value(found.value), [found.id])
    return None if since is None else Ready(since, _nothing)


def _call(node: CallLeaf, facts: Facts, _counts: _Counts) -> Ready | None:
    if node.ready is None:
        return None
    failure = node.failure
    if failure is not None:
        return Ready(node.ready, lambda: Throw(ProcedureFailed(node.procedure, *failure)), failed=True)
    return Ready(node.ready, lambda: Value(facts.call_value(node)))


def _child(node: ChildLeaf, facts: Facts, _counts: _Counts) -> Ready | None:
    if node.ready is None:
        return None
    failure = node.failure
    if failure is not None:
        kind = ChildCancelled if node.cancelled else ChildFailed
        return Ready(node.ready, lambda: Throw(kind(node.id, node.workflow_type, failure)), failed=True)
    return Ready(node.ready, lambda: Value(facts.child_value(node)))


def _select(node: SelectNode, facts: Facts, counts: _Counts) -> Ready | None:
    if node.chosen is not None:
        winner = _evaluate(node.arms[node.chosen], facts, counts)
        if winner is not None:
            winner.arm = node.chosen
        return winner
    best: Ready | None = None
    best_counts: _Counts = counts
    for index, arm in enumerate(node.arms):
        own = dict(counts) if counts else {}
        ready = _evaluate(arm, facts, own)
        if ready is not None and (best is None or _earlier(ready, best)):
            ready.arm = index
            best, best_counts = ready, own
    counts.update(best_counts)
    return best


def _earlier(ready: Ready, best: Ready) -> bool:
    """Ties go to the earlier argument; but of two signals, one came first even within a microsecond."""
    if ready.micros != best.micros:
        return ready.micros < best.micros
    return bool(ready.taken) and bool(best.taken) and ready.taken[0] < best.taken[0]


def missing(node: Node) -> int:
    """How many children and calls a gather surely lacks; 0 when that takes an evaluation.

    It does when one has failed that ends it, or when it waits for other things, too.
    """
    if not isinstance(node, GatherNode):
        return 0
    count = 0
    for arm in node.arms:
        if not isinstance(arm, ChildLeaf | CallLeaf):
            return 0
        if arm.ready is None:
            count += 1
        elif arm.failure is not None and not node.return_exceptions:
            return 0
    return count


def _gather(node: GatherNode, facts: Facts, counts: _Counts) -> Ready | None:
    if missing(node):
        return None
    parts: list[Ready] = []
    failure: Ready | None = None
    complete = True
    for arm in node.arms:
        ready = _evaluate(arm, facts, counts)
        if ready is None:
            complete = False
        else:
            parts.append(ready)
            if ready.failed and (failure is None or ready.micros < failure.micros):
                failure = ready
    if failure is not None and not node.return_exceptions:
        return Ready(failure.micros, failure.event, failed=True)
    if not complete:
        return None
    taken = [id for part in parts for id in part.taken]
    micros = max((part.micros for part in parts), default=facts.now)

    def event() -> Event:
        values = []
        for part in parts:
            got = part.event()
            values.append(got.value if isinstance(got, Value) else got.error)
        return Value(tuple(values))

    return Ready(micros, event, taken)


def _all(node: AllNode, facts: Facts, counts: _Counts) -> Ready | None:
    since = _deadline(node, facts)
    found: list[Unread | None] = []
    for name in node.names:
        unread = facts.unread(name, counts.get(name, 0))
        if unread is not None and node.upto is not None and unread.id > node.upto:
            unread = None
        if unread is not None and (since is None or unread.micros <= since):
            counts[name] = counts.get(name, 0) + 1
            found.append(unread)
        else:
            found.append(None)
    if since is None and None in found:
        return None
    there = [unread for unread in found if unread is not None]
    late = since if since is not None and len(there) < len(found) else None
    micros = late if late is not None else max((unread.micros for unread in there), default=facts.now)
    return Ready(
        micros,
        lambda: Value(tuple(None if unread is None else unread.value for unread in found)),
        [unread.id for unread in there],
    )


_EVALUATE: dict[type, Callable[[Any, Facts, _Counts], Ready | None]] = {
    TimerLeaf: _timer,
    SignalLeaf: _signal,
    CallLeaf: _call,
    ChildLeaf: _child,
    SelectNode: _select,
    GatherNode: _gather,
    AllNode: _all,
}
