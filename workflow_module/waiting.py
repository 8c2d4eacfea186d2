"""An armed wait with what its shape tells at once, and those of the workflows that ran lately.

Nearly all waits are flat: a signal, a timer, or a select of these. Of a flat wait it is known without an evaluation
that nothing has happened, or that the signal which has just come is what it waits for.
"""

from __future__ import annotations

from typing import Final, Protocol

from .armed import DeadlineNode, Node, Ready, SelectNode, SignalLeaf, TimerLeaf, deadlines
from .arming import NEVER_MICROS
from .outcome import Value
from .tables import Workflow
from .waits import SelectWait, SignalWait, TimerWait, Wait

HELD_MAX: Final = 10_000
"""How many decoded waits an engine keeps at most."""


class Signalled(Protocol):
    """A signal that has just come."""

    id: int
    name: str
    arrived: int
    event: Value


class Waiting:
    """An armed wait. `wait` is what the code asked for, if asking for it again is the same as going on waiting."""

    __slots__ = ("_earliest", "_flat", "_takes", "due", "node", "plain", "wait")

    def __init__(self, node: Node, wait: Wait | None = None) -> None:
        self.node = node
        self.wait = wait if wait is not None and _is_lasting(wait) else None
        self.due: list[tuple[str, int]] = []
        """Its deadlines by name."""
        self._takes: dict[str, int | None] = {}
        """For each signal that it waits for, the arm of the select."""
        self._flat = True
        if type(node) is SelectNode:
            self._flat = node.chosen is None
            for index, arm in enumerate(node.arms):
                self._look(arm, index)
        else:
            self._look(node, None)
        self._earliest = NEVER_MICROS
        if self._flat:
            self.plain = True
            """Whether it has only timers and signals."""
            for _, micros in self.due:
                self._earliest = min(self._earliest, micros)
        else:
            arms = node.arms if isinstance(node, SelectNode) else [node]
            self.plain = all(isinstance(arm, DeadlineNode) for arm in arms)
            self.due = [(name, leaf.due or 0) for name, leaf in deadlines(node)]

    def _look(self, leaf: Node, arm: int | None) -> None:
        if type(leaf) is SignalLeaf and leaf.fired is None and leaf.upto is None:
            self._takes.setdefault(leaf.name, arm)
            if leaf.due is not None:
                self.due.append((f"timeout({leaf.name})", leaf.due))
        elif type(leaf) is TimerLeaf and leaf.fired is None:
            self.due.append((leaf.name or "sleep", leaf.due))
        else:
            self._flat = False

    def is_quiet(self, now: int) -> bool:
        """Whether nothing can be ready without a signal: it is flat, and none of its deadlines has passed."""
        return self._flat and self._earliest > now

    def given(self, signal: Signalled, now: int) -> Ready | None:
        """What a signal that has just come makes of a wait whose inbox is empty; None when it takes an evaluation."""
        if not self._flat or self._earliest <= now or signal.name not in self._takes:
            return None
        return Ready(signal.arrived, lambda: signal.event, [signal.id], self._takes[signal.name])


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

    def keep(self, row: Workflow, waiting: Waiting) -> None:
        """Hold what `row.wait_data` says."""
        entries = self._entries
        if len(entries) >= HELD_MAX:
            entries.clear()
        entries[row.id] = (row, waiting)
