"""Tests of games: `Simulation`, and the pytest fixture `gamedb_sim` that makes them. See docs/testing.md."""

from typing import TYPE_CHECKING, Any

from gamedb.testing.simulation import SimulatedCaller, Simulation, SimulationStuck, identity

if TYPE_CHECKING:
    from gamedb.testing.clients import SimulatedClient as SimulatedClient
    from gamedb.testing.exploring import ExplorationFailed as ExplorationFailed
    from gamedb.testing.exploring import Explored as Explored
    from gamedb.testing.exploring import Run as Run
    from gamedb.testing.machine import ModuleStateMachine as ModuleStateMachine
    from gamedb.testing.strategies import values as values

__all__ = ["SimulatedCaller", "Simulation", "SimulationStuck", "identity"]

_LATER = {
    "SimulatedClient": "clients",
    "ExplorationFailed": "exploring",
    "Explored": "exploring",
    "Run": "exploring",
    "ModuleStateMachine": "machine",
    "values": "strategies",
}
"""What is slow to import, or needs Hypothesis."""


def __getattr__(name: str) -> Any:
    if name in _LATER:
        from importlib import import_module

        return getattr(import_module(f"gamedb.testing.{_LATER[name]}"), name)
    raise AttributeError(f"module 'gamedb.testing' has no attribute {name!r}")
