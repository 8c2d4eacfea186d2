"""`ModuleStateMachine`: Hypothesis plays a game, calling what players may call, in search of a broken invariant.

class ArenaMachine(ModuleStateMachine):
    module = module

    @invariant()
    def nobody_is_below_zero(self) -> None: ...

TestArena = ArenaMachine.TestCase

Needs Hypothesis.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from gamedb.errors import ReducerError, UnknownName
from gamedb.functions import Function
from gamedb.module import Module
from gamedb.testing.simulation import Simulation
from gamedb.testing.strategies import values


class ModuleStateMachine(RuleBasedStateMachine):
    """Random calls of public reducers by random players, time that passes, and crashes."""

    module: ClassVar[Module]
    """The game."""
    players: ClassVar[tuple[str, ...]] = ("ann", "bob", "cyd")
    """Who calls."""
    reducers: ClassVar[tuple[str, ...] | None] = None
    """The names of the reducers to call; `None`: all that clients may."""
    refusals: ClassVar[tuple[type[BaseException], ...]] = (ReducerError,)
    """What a reducer may raise. Anything else is a bug."""
    arguments: ClassVar[dict[str, st.SearchStrategy[Any]]] = {}
    """Strategies for parameters by name, in place of any value of their type."""
    simulation: ClassVar[type[Simulation]] = Simulation
    """The kind of simulation."""

    def __init__(self) -> None:
        super().__init__()
        if not hasattr(self, "module"):
            raise TypeError(f"{type(self).__name__} needs a game to play: module = ...")
        self.sim = self.simulation(self.module)
        """The simulation that the rules drive."""
        self._functions = self._callable()

    def _callable(self) -> list[Function]:
        found = [
            function
            for function in self.sim.db.module.functions.values()
            if function.kind == "reducer"
            and not function.private
            and function.lifecycle is None
            and (self.reducers is None or function.name in self.reducers)
        ]
        _all_known("reducers", self.reducers or (), {function.name for function in found})
        functions = self.sim.db.module.functions.values()
        _all_known("arguments", self.arguments, {p.name for function in functions for p in function.parameters})
        return sorted(found, key=lambda function: function.name)

    def teardown(self) -> None:
        """End the simulation."""
        self.sim.close()

    @precondition(lambda self: self._functions)
    @rule(data=st.data(), player=st.data())
    def call(self, data: st.DataObject, player: st.DataObject) -> None:
        """Somebody calls something."""
        who = player.draw(st.sampled_from(self.players), label="player")
        function = data.draw(st.sampled_from(self._functions).map(_Named), label="reducer").function
        arguments = [data.draw(self.arguments.get(p.name, values(p.type)), label=p.name) for p in function.parameters]
        try:
            self.sim.caller(who).call(function.name, *arguments)
        except self.refusals:
            return

    @rule(seconds=st.integers(1, 120))
    def advance(self, seconds: int) -> None:
        """Time passes."""
        self.sim.advance(seconds)

    @rule(lost=st.integers(0, 3))
    def crash(self, lost: int) -> None:
        """The process dies, and loses some of the last commits."""
        boundaries = self.sim.boundaries
        self.sim.crash(at=boundaries[max(0, len(boundaries) - 1 - lost)])


def _all_known(what: str, names: Iterable[str], known: set[str]) -> None:
    """Refuse names of nothing: a machine that plays less than it was told to finds nothing."""
    if unknown := sorted(set(names) - known):
        raise UnknownName(
            f"{what} names {', '.join(unknown)}; of what players call there are: {', '.join(sorted(known)) or 'none'}"
        )


class _Named:
    """A function that shows its name in Hypothesis's report."""

    def __init__(self, function: Function) -> None:
        self.function = function

    def __repr__(self) -> str:
        return self.function.name
