"""An armed wait with what its shape tells at once, and those of the workflows that ran lately.

Nearly all waits are flat: a signal, a timer, or a select of these. Of a flat wait it is known without an evaluation
that nothing has happened, or that the signal which has just come is what it waits for.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from .armed import (
    CallLeaf,
    ChildLeaf,
    DeadlineNode,
    GatherNode,
    Node,
    Ready,
    SelectNode,
    SignalLeaf,
    TimerLeaf,
    deadlines,
    decode_node,
    encode_node,
    leaves,
    missing,
)
from .arming import NEVER_MICROS
from .definition import WorkflowDefinition
from .inbox import ID_MAX, Incoming
from .outcome import Value
from .tables import Workflow
from .waits import SelectWait, SignalWait, TimerWait, Wait

HELD_MAX: Final = 10_000
"""How many decoded waits an engine keeps at most."""
LARGE: Final = 32
"""From how many arms on the JSON of a gather's arms is kept."""
UNDECIDED: Final = Ready(0, lambda: Value(None))


class Waiting(msgspec.Struct):
    """An armed wait. `wait` is what the code asked for, if asking for it again is the same as going on waiting."""

    node: Node
    wait: Wait | None = None
    frame: Any = None
    """The workflow's variables at this wait, if they are at hand: see `Suspended.frame`."""
    due: list[tuple[str, int]] = []
    """Its deadlines by name."""
    plain: bool = True
    """Whether it has only timers and signals."""
    quiet_until: int = 0
    """With an empty inbox it surely goes on until then, in microseconds."""
    _takes: dict[str, int | None] = {}
    """For each signal that it waits for, the arm of the select."""
    _earliest: tuple[int, int | None, str | None] = (NEVER_MICROS + 1, None, None)
    """The first deadline: its time, its arm of the select, and the name of its timer if it is one."""
    _started: dict[tuple[type, int], list[tuple[int, ChildLeaf | CallLeaf]]] | None = None
    """The children and calls that have not ended, by their ids, with the arm; made when the first of them ends."""
    _encoded: list[bytes] | None = None
    """The JSON of each arm, but for those that have changed."""
    _changed: list[int] = []
    _missing: int = 0
    """How many children and calls a gather of nothing else surely lacks."""
    _flat: bool = True

    def __post_init__(self) -> None:
        if self.wait is not None and not _is_lasting(self.wait):
            self.wait = None
        node = self.node
        if type(node) is SelectNode:
            self._flat = node.chosen is None
            for index, arm in enumerate(node.arms):
                self._look(arm, index)
        else:
            self._look(node, None)
        if self._flat:
            self.quiet_until = self._earliest[0]
        else:
            arms = node.arms if isinstance(node, SelectNode) else [node]
            self.plain = all(isinstance(arm, DeadlineNode) for arm in arms)
            self.due = [(name, leaf.due or 0) for name, leaf in deadlines(node)]

    def _look(self, leaf: Node, arm: int | None) -> None:
        if type(leaf) is SignalLeaf and leaf.fired is None and leaf.upto is None:
            self._takes.setdefault(leaf.name, arm)
            if leaf.due is not None:
                self._deadline(leaf.due, arm, f"timeout({leaf.name})", None)
        elif type(leaf) is TimerLeaf and leaf.fired is None:
            self._deadline(leaf.due, arm, leaf.name or "sleep", leaf.name)
        else:
            self._flat = False

    def _deadline(self, due: int, arm: int | None, name: str, timer: str | None) -> None:
        self.due.append((name, due))
        if due < self._earliest[0]:  # of equal ones the first
            self._earliest = (due, arm, timer)

    def look(
        self, now: int, manual: bool, incoming: Incoming | None, definition: WorkflowDefinition[Any, Any]
    ) -> Ready | None:
        """What `evaluate` would say, given that the inbox is empty; `UNDECIDED` when it takes an evaluation."""
        if not self._flat:
            return None if self._missing else UNDECIDED
        due, arm, timer = self._earliest
        if due > now:
            if incoming is None or incoming.name not in self._takes:
                return None
            return Ready(incoming.micros, lambda: incoming.event, [ID_MAX], self._takes[incoming.name])
        if incoming is not None or manual:
            return UNDECIDED
        return Ready(due, lambda: Value(None if timer is None else definition.timers[timer]), [], arm)

    def ended(self, kind: type[ChildLeaf | CallLeaf], number: int) -> list[ChildLeaf | CallLeaf]:
        """Where the wait is for this child or call, which has ended just now: the caller says there how.

        A gather of many hears of each of them, so that nothing here looks at all of them each time.
        """
        if self._started is None:
            self._started = {}
            for index, arm in enumerate(self._arms()):
                for leaf in leaves(arm):
                    if isinstance(leaf, ChildLeaf | CallLeaf) and leaf.ready is None:
                        self._started.setdefault((type(leaf), leaf.id), []).append((index, leaf))
            self._missing = missing(self.node)
        found = self._started.pop((kind, number), [])
        if self._missing:
            self._missing -= len(found)
        self._changed += [index for index, _ in found]
        return [leaf for _, leaf in found]

    def encode(self) -> bytes:
        """The JSON of `node`, after what `ended` gave was changed: of a large gather, only that is written anew."""
        arms = self._arms()
        if not isinstance(self.node, GatherNode) or len(arms) < LARGE:
            return encode_node(self.node)
        if self._encoded is None:
            self._encoded = [encode_node(arm) for arm in arms]
        else:
            for index in self._changed:
                self._encoded[index] = encode_node(arms[index])
        self._changed.clear()
        before, after = encode_node(msgspec.structs.replace(self.node, arms=[])).split(b"[]")
        return b"%b[%b]%b" % (before, b",".join(self._encoded), after)

    def _arms(self) -> list[Node]:
        return self.node.arms if isinstance(self.node, SelectNode | GatherNode) else [self.node]

    def fails(self) -> None:
        """One of the children or calls has failed: whether the wait is over may take an evaluation."""
        if not (isinstance(self.node, GatherNode) and self.node.return_exceptions):
            self._missing = 0


def _is_lasting(wait: Wait) -> bool:
    """Whether a wait means the same whenever it begins: it has no durations, and starts nothing."""
    if type(wait) is SelectWait:
        return all(_is_lasting(arm) for arm in wait.arms)
    if type(wait) is SignalWait:
        return wait.timeout is None
    return type(wait) is TimerWait and wait.at is not None


class Held:
    """The waits of workflows that ran lately, so that they need not be read again.

    Each is held together with the very row object that it was read from or written to. Rows never change, so whatever
    becomes of the workflow, a rollback included, an entry is either right or not found.
    """

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: dict[int, tuple[Workflow, Waiting]] = {}

    def take(self, row: Workflow) -> Waiting | None:
        """The wait of this row, if it is held; from now on it is the caller's, who may change it."""
        entry = self._entries.pop(row.id, None)
        return entry[1] if entry is not None and entry[0] is row else None

    def take_or_read(self, row: Workflow) -> Waiting:
        """The wait of this row, which has one."""
        return self.take(row) or Waiting(decode_node(row.wait_data))

    def keep(self, row: Workflow, waiting: Waiting) -> None:
        """Hold what `row.wait_data` says."""
        entries = self._entries
        if len(entries) >= HELD_MAX:
            entries.clear()
        entries[row.id] = (row, waiting)
