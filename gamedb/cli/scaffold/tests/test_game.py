"""The rules of the game, without a server and without waiting. Run them with: pytest"""

from collections.abc import Iterator

import pytest
from game import GEMS_MAX, Gem, Player, join, module, step

from gamedb import Database, Identity, ManualClock, ReducerError

ANN = Identity(b"a" * 32)


@pytest.fixture
def db() -> Iterator[Database]:
    with Database(module, clock=ManualClock(), seed=1) as db:
        yield db


def test_a_step_moves_and_picks_up(db: Database) -> None:
    db.caller(ANN).call(join, "ann")
    with db.transaction() as ctx:
        ann = ctx.db[Player].get(ANN)
        assert ann is not None
        ctx.db[Player].update(ann.replace(x=3, y=3))
        ctx.db[Gem].insert(Gem(x=4, y=3, value=5))
    db.caller(ANN).call(step, 1, 0)
    ann = db.read(Player).get(ANN)
    assert ann is not None
    assert (ann.x, ann.y, ann.score) == (4, 3, 5)
    assert db.read(Gem).where(x=4, y=3) == []


def test_nobody_leaves_the_meadow(db: Database) -> None:
    db.caller(ANN).call(join, "ann")
    for _ in range(50):
        db.caller(ANN).call(step, -1, 0)
    ann = db.read(Player).get(ANN)
    assert ann is not None
    assert ann.x == 0


def test_who_has_not_joined_cannot_walk(db: Database) -> None:
    with pytest.raises(ReducerError, match="join first"):
        db.caller(ANN).call(step, 1, 0)


def test_gems_grow_until_there_are_enough(db: Database) -> None:
    clock = db.clock
    assert isinstance(clock, ManualClock)
    for _ in range(GEMS_MAX + 5):
        clock.advance(1)
        db.run_due()
    assert db.read(Gem).count() == GEMS_MAX
