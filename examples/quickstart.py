"""A very small game that cannot lose its state: three heroes, a wolf, and timers.

    python -m examples.quickstart            plays for eight seconds, with its data in data/quickstart.db
    python -m examples.quickstart --seconds 60 --data-dir elsewhere

Stop it however you like, `kill -9` included, and start it again: hit points, the wolf's next bite and the time at
which a fallen hero gets up are all in the database, so the game goes on where it was.
"""

from __future__ import annotations

import argparse
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from gamedb import (
    AutoInc,
    Commit,
    Database,
    GamedbError,
    Index,
    Module,
    PrimaryKey,
    ReducerContext,
    ReducerError,
    Row,
    ScheduleAt,
    Unique,
    ViewContext,
    u32,
    u64,
)

HP_MAX = 100
FALLEN_FOR = timedelta(seconds=4)

module = Module("quickstart")


@module.table(public=True)
class Player(Row):
    """A hero and how they are doing."""

    id: PrimaryKey[AutoInc[u64]] = 0  # 0 means: the database assigns
    name: Unique[str]
    zone: Index[u32] = 1
    hp: u32 = HP_MAX
    falls: u32 = 0


@module.table(public=True)
class Mob(Row):
    """Something that bites."""

    id: PrimaryKey[AutoInc[u64]] = 0
    name: str
    zone: Index[u32]
    strength: u32


@module.table(public=True, event=True)
class DamageEvent(Row):
    """Told to whoever subscribes, and stored nowhere."""

    player_id: u64
    mob_id: u64
    amount: u32


@module.table(scheduled="regenerate")
class RegenerateTimer(Row):
    """Heals a zone, again and again."""

    scheduled_id: PrimaryKey[AutoInc[u64]] = 0
    scheduled_at: ScheduleAt
    zone: u32


@module.table(scheduled="attack")
class AttackTimer(Row):
    """A mob's next bite, again and again."""

    scheduled_id: PrimaryKey[AutoInc[u64]] = 0
    scheduled_at: ScheduleAt
    mob_id: u64


@module.table(scheduled="get_up")
class GetUpTimer(Row):
    """When a fallen hero gets up: once."""

    scheduled_id: PrimaryKey[AutoInc[u64]] = 0
    scheduled_at: ScheduleAt
    player_id: u64


@module.init
def init(ctx: ReducerContext) -> None:
    """Runs once, when the database is new."""
    for name in ("ann", "bob", "cleo"):
        ctx.db[Player].insert(Player(name=name))
    wolf = ctx.db[Mob].insert(Mob(name="wolf", zone=1, strength=50))
    ctx.db[AttackTimer].insert(AttackTimer(scheduled_at=timedelta(seconds=1.5), mob_id=wolf.id))
    ctx.db[RegenerateTimer].insert(RegenerateTimer(scheduled_at=timedelta(seconds=1), zone=1))


@module.reducer
def join(ctx: ReducerContext, name: str) -> None:
    """A hero enters the arena."""
    if ctx.db[Player].find(name=name) is not None:
        raise ReducerError(f"{name} is here already")
    ctx.db[Player].insert(Player(name=name))


@module.reducer
def attack(ctx: ReducerContext, timer: AttackTimer) -> None:
    """A mob bites somebody who stands in its zone."""
    mob = ctx.db[Mob].get(timer.mob_id)
    if mob is None:
        return
    standing = [player for player in ctx.db[Player].where(zone=mob.zone) if player.hp > 0]
    if not standing:
        return
    player = ctx.random.choice(standing)
    amount = min(player.hp, ctx.random.randint(mob.strength // 2, mob.strength))
    hurt = player.replace(hp=player.hp - amount)
    if hurt.hp == 0:
        hurt = hurt.replace(falls=hurt.falls + 1)
        ctx.db[GetUpTimer].insert(GetUpTimer(scheduled_at=ctx.now + FALLEN_FOR, player_id=player.id))
    ctx.db[Player].update(hurt)
    ctx.db[DamageEvent].insert(DamageEvent(player_id=player.id, mob_id=mob.id, amount=amount))


@module.reducer
def regenerate(ctx: ReducerContext, timer: RegenerateTimer) -> None:
    """Everybody who stands gets a little better."""
    for player in ctx.db[Player].where(zone=timer.zone):
        if player.hp > 0:
            ctx.db[Player].update(player.replace(hp=min(HP_MAX, player.hp + 2)))


@module.reducer
def get_up(ctx: ReducerContext, timer: GetUpTimer) -> None:
    """A fallen hero stands again."""
    player = ctx.db[Player].get(timer.player_id)
    if player is not None:
        ctx.db[Player].update(player.replace(hp=HP_MAX // 2))


@module.view
def fallen(ctx: ViewContext) -> list[Player]:
    """Who lies on the ground."""
    return ctx.db[Player].where(hp=0)


# --- playing it in a terminal


def standings(db: Database) -> str:
    """One line: how everybody is doing."""
    return "   ".join(f"{p.name} {p.hp:3} hp" for p in db.read(Player))


def waiting(db: Database) -> str:
    """One line: what the timers of fallen heroes are waiting for."""
    now = datetime.now(UTC)
    names = {player.id: player.name for player in db.read(Player)}
    parts = []
    for timer in db.read(GetUpTimer):
        assert isinstance(timer.scheduled_at, datetime)
        seconds = max(0.0, (timer.scheduled_at - now).total_seconds())
        parts.append(f"{names[timer.player_id]} gets up in {seconds:.1f} s")
    return ", ".join(parts)


def narrate(db: Database) -> None:
    """Print what happens from now on."""
    started = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - started:5.1f} s  {text:34} {standings(db)}", flush=True)

    def on_damage(commit: Commit) -> None:
        events = commit.of(DamageEvent)
        for event in events.inserted if events else []:
            player, mob = db.read(Player).get(event.player_id), db.read(Mob).get(event.mob_id)
            if player is not None and mob is not None:
                falls = " and down" if player.hp == 0 else ""
                say(f"the {mob.name} bites {player.name} for {event.amount}{falls}")

    def on_change(commit: Commit) -> None:
        changes = commit.of(Player)
        for before, after in changes.updated if changes else []:
            if before.hp == 0:
                say(f"{after.name} gets up")

    db.subscribe(DamageEvent, on_damage)
    db.subscribe(Player, on_change)


def main() -> None:
    """Play for some seconds."""
    parser = argparse.ArgumentParser(description="A very small game that cannot lose its state.")
    parser.add_argument("--seconds", type=float, default=8.0, help="how long to play (default: 8)")
    parser.add_argument("--data-dir", type=Path, default=Path("data"), help="where quickstart.db is (default: data)")
    options = parser.parse_args()
    options.data_dir.mkdir(parents=True, exist_ok=True)
    path = options.data_dir / f"{module.name}.db"
    try:
        play(path, options.seconds)
    except GamedbError as error:
        sys.exit(f"error: {error}")


def play(path: Path, seconds: float) -> None:
    """Open the game in this file, new or not, and let it run."""
    with Database(module, path) as db:
        if db.last_tx_id <= 1:
            print(f"A new game in {path}: three heroes, and a wolf that bites every 1.5 seconds.")
        else:
            print(f"The game in {path} goes on after transaction {db.last_tx_id}.")
            if text := waiting(db):
                print(f"Still running: {text}.")
        print(f"{'':7}  {'':34} {standings(db)}", flush=True)
        narrate(db)
        db.run()
        try:
            time.sleep(seconds)
        except KeyboardInterrupt:
            print()
        bitten = sum(player.falls for player in db.read(Player))
        print(f"Stopped after transaction {db.last_tx_id}; {bitten} falls so far. Run it again: it goes on from here.")


if __name__ == "__main__":
    main()
