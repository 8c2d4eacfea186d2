"""Hypothesis plays a game: it finds what breaks it, and has nothing against one that is right."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, run_state_machine_as_test
from simulated_arena import Player, module

from gamedb import Module, PrimaryKey, ReducerContext, ReducerError, Row, ScheduleAt, Struct, f32, u8, u64
from gamedb.columns import column_type
from gamedb.errors import ConstraintError
from gamedb.testing import ModuleStateMachine, values

bank = Module("bank")


@bank.table(public=True)
class Account(Row):
    id: PrimaryKey[u64]
    gold: u64 = 10


@bank.init
def open_accounts(ctx: ReducerContext) -> None:
    for number in range(2):
        ctx.db[Account].insert(Account(id=number))


@bank.reducer
def give(ctx: ReducerContext, from_id: u64, to_id: u64, gold: u8) -> None:
    giver, taker = ctx.db[Account].get(from_id), ctx.db[Account].get(to_id)
    if giver is None or taker is None or giver.gold < gold:
        raise ReducerError("no")
    ctx.db[Account].update(giver.replace(gold=giver.gold - gold))
    ctx.db[Account].update(taker.replace(gold=taker.gold + gold))  # wrong when both are the same


class BankMachine(ModuleStateMachine):
    module = bank
    arguments = {"from_id": st.integers(0, 1), "to_id": st.integers(0, 1)}

    @invariant()
    def gold_is_conserved(self) -> None:
        assert sum(account.gold for account in self.sim.read(Account)) == 20


class ArenaMachine(ModuleStateMachine):
    module = module
    reducers = ("join", "hit", "roll")
    refusals = (ReducerError, ConstraintError)

    @invariant()
    def nobody_is_more_than_alive(self) -> None:
        assert all(player.hp <= 100 for player in self.sim.read(Player))


SHORT = settings(max_examples=40, stateful_step_count=10, deadline=None, derandomize=True)


def test_it_finds_gold_that_is_made_of_nothing() -> None:
    with pytest.raises(AssertionError):
        run_state_machine_as_test(BankMachine, settings=settings(SHORT, phases=(Phase.generate,)))


def test_it_has_nothing_against_the_arena() -> None:
    run_state_machine_as_test(ArenaMachine, settings=SHORT)


class Inner(Struct):
    number: u8
    names: list[str]


@pytest.mark.parametrize("annotation", [bool, u8, f32, float, str, bytes, Inner, list[Inner], u64 | None, ScheduleAt])
@settings(max_examples=30)
@given(data=st.data())
def test_values_are_canonical_values_of_their_type(annotation: Any, data: st.DataObject) -> None:
    value = data.draw(values(annotation))
    assert column_type(annotation, "value").coerce(value, "value") == value
