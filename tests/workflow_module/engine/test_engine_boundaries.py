"""A crash at each flush boundary: from every file that a kill could leave, the story ends as without a crash."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from engine_support import START, Bid, Clock, Deadline, Game, GameError, Go, Number, Text, mark, seconds

from workflow_module import (
    Cancelled,
    ChildError,
    WorkflowContext,
    call,
    continue_as_new,
    gather,
    select,
    signal,
    sleep,
    spawn,
    start,
    subscribe,
    timer,
    wait_all,
    workflow,
)


async def price(ctx: Any, n: int) -> int:
    return n * 10


async def shaky(ctx: Any) -> int:
    if ctx.attempt < 3:
        raise GameError("not yet")
    return ctx.attempt


@workflow
async def bidder(ctx: WorkflowContext, init: Number) -> int:
    subscribe(Text, "start")
    await signal(Text)
    mark(ctx, f"bidder {init.n} starts")
    await sleep(seconds(init.n))
    return await call(price, init.n)


@workflow
async def auction(ctx: WorkflowContext, init: Deadline) -> str:
    bids: list[int] = []
    handles = [start(bidder, Number(n=n)) for n in range(3)]
    while True:
        match await select(timer(Clock.END, at=init.at), Bid):
            case Bid(amount):
                bids.append(amount)
                mark(ctx, f"bid {amount}")
            case _:
                break
    offers = await gather(*handles)
    tries = await call(shaky, attempts=5)
    mark(ctx, f"sold {bids} {list(offers)} {tries}")
    return f"{max(bids)} {sum(offers)}"


@workflow
async def tidy(ctx: WorkflowContext) -> str:
    try:
        await spawn(bidder, Number(n=100))
    except Cancelled:
        mark(ctx, "cancelled")
        await sleep(seconds(1))
        mark(ctx, "cleaned up")
        raise
    except ChildError as error:
        return error.error
    return "?"


@workflow
async def rounds(ctx: WorkflowContext, init: Number) -> int:
    bid, go = await wait_all(Bid, Go, timeout=seconds(4))
    mark(ctx, f"round {init.n} {bid} {go}")
    if init.n == 2:
        return init.n
    await continue_as_new(Number(n=init.n + 1))


def flow(game: Game, definition: Any, name: str) -> int:
    row = game.flows.by_correlation(definition, name)
    assert row is not None
    return row.id


Action = Callable[[Game], object]


def story() -> list[tuple[int, Action]]:
    """What happens in the game, and in which second."""
    opening: list[Action] = [
        lambda game: game.flows.start(auction, Deadline(at=START + seconds(6)), correlation_id="a"),
        lambda game: game.flows.start(tidy, None, correlation_id="t"),
        lambda game: game.flows.start(rounds, Number(n=0), correlation_id="r", signals=[Bid(amount=1)]),
        *[one_firing] * 12,
        lambda game: game.flows.signal(flow(game, auction, "a"), Bid(amount=5)),
        lambda game: game.flows.broadcast(Text(text="go"), "start"),
        lambda game: game.flows.signal(flow(game, rounds, "r"), Go(n=1)),
        lambda game: game.flows.cancel(flow(game, tidy, "t")),
        lambda game: game.flows.signal(flow(game, auction, "a"), Bid(amount=7)),
        lambda game: game.flows.signal(flow(game, rounds, "r"), Bid(amount=2)),
    ]
    return [(0, action) for action in opening] + [(second, one_firing) for second in range(30) for _ in range(8)]


def one_firing(game: Game) -> None:
    game.db._scheduler.run_due(limit=1)


def ending(game: Game) -> tuple[list[str], list[str], list[str]]:
    results = [
        game.flows.result(flow(game, auction, "a")),
        game.status(flow(game, tidy, "t")),
        game.flows.result(flow(game, rounds, "r")),
    ]
    left = [row.status.value for row in game.db.read(type(game.row(flow(game, auction, "a"))))]
    return results, sorted(game.marks()), sorted(left)


ALL = [auction, bidder, tidy, rounds]


@pytest.mark.parametrize("limit", [1, 10_000])
def test_a_crash_at_every_flush_boundary_changes_nothing(limit: int, tmp_path: Path) -> None:
    game = Game(ALL, tmp_path / "game.db", resumptions_max=limit)
    game.quiet()
    actions = story()
    files: list[tuple[int, Path]] = []
    last = game.db.last_tx_id
    for number, (second, action) in enumerate(actions):
        game.clock.set(START + seconds(second))
        action(game)
        if game.db.last_tx_id != last:
            last = game.db.last_tx_id
            files.append((number, copy(game, tmp_path / f"after{number}.db")))
    expected = ending(game)
    assert expected[0] == ["7 30", "Cancelled", 2]
    assert len(files) > 20
    game.db.close()
    for number, path in files:
        later = Game(ALL, path, resumptions_max=limit)
        later.quiet()
        for second, action in actions[number + 1 :]:
            later.clock.set(START + seconds(second))
            action(later)
        assert ending(later) == expected, f"after action {number}"
        later.db.close()


def copy(game: Game, target: Path) -> Path:
    game.db.flush()
    for suffix in ("", "-wal"):
        source = Path(f"{game.path}{suffix}")
        if source.exists():
            Path(f"{target}{suffix}").write_bytes(source.read_bytes())
    return target
