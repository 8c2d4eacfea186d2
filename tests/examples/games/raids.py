"""Raids: minions, effects and members are there as long as the fight that they belong to, and fire burns on time."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import datetime

from examples.boss_fight import (
    BITE,
    ENRAGE,
    FIRE_BREATH,
    BossTimer,
    Outcome,
    RaidMember,
    belongings,
    boss_add,
    boss_fight,
    health,
    hit,
    module,
    pull,
)
from examples.world import Character, Chat, Effect, Item, heal, move_gold, move_item
from gamedb import ReducerContext, ReducerError
from tests.examples.games.base import FINISHED, Action, Game, Play, Running, live, players, timeline
from workflow_module import Workflow

PHASE_STARTS = ("Phase 1", "Phase 2", "Phase 3", "Phase 4")


class Raids(Game):
    """Players and two dragons, who both stand up again when they were beaten."""

    module = module
    players = ("ann", "bob")
    purse = 10
    hp = 200

    def furnish(self, ctx: ReducerContext) -> None:
        """Two dragons, with what they are killed for."""
        for hp in (60, 600):
            dragon = ctx.db[Character].insert(Character(name="a dragon", hp=hp, hp_max=hp, strength=20, gold=101))
            for kind in ("fang", "scale"):
                ctx.db[Item].insert(Item(kind=kind, owner_id=dragon.id))

    def actions(self, play: Play) -> tuple[Action, ...]:
        """Fight, and come back to life."""

        def strike(times: int) -> None:
            target, player = play.row(Character, identity=None).id, play.player()
            for _ in range(times):
                play.call(player, hit, target)

        def start() -> None:
            heroes = [player.id for player in players(play.db)]
            play.call(play.player(), pull, play.row(Character, name="a dragon").id, heroes)

        def rest() -> None:
            player = play.player().id
            play.db.execute("rest", heal, (player,))

        def revive() -> None:
            play.db.execute("revive", _revive, (play.row(Character, name="a dragon").id,))

        return start, lambda: strike(2), lambda: strike(4), lambda: strike(4), rest, revive

    def calls(self, running: Running) -> set[tuple[str, int]]:
        """Who won has rolled for the loot."""
        moments = [moment for moment in timeline(running, boss_fight) if moment.kind == "completed"]
        won = [m.id for m in moments if boss_fight.decode_result(m.detail).outcome is Outcome.VICTORY]
        return {("roll_loot", id) for id in won}

    def check(self, running: Running) -> None:
        """Who and what belongs to a fight is there while it lasts, and what happens every so often is on time."""
        super().check(running)
        db = running.db
        states = live(running, boss_fight)
        adds = live(running, boss_add)
        assert {member.boss for member in db.read(RaidMember)} == {state.boss for state in states.values()}
        minions = {row.id for row in db.read(Character) if "minion" in row.name}
        assert minions == {add.add for add in adds.values()}
        for effect in db.read(Effect):
            assert effect.kind == "immune"
        immune = {effect.character_id for effect in db.read(Effect)}
        assert immune == {state.boss for state in states.values() if state.phase == 2}
        for id, state in states.items():
            self._check_fight(running, id, state.boss, state.phase)
        self._check_times(running)

    def _check_fight(self, running: Running, id: int, boss: int, phase: int) -> None:
        """A fight is in the phase that the boss's health says."""
        row = running.db.read(Character).get(boss)
        assert row is not None
        percent = -(-100 * row.hp // row.hp_max)
        calling = running.flows.get(id).current_step == "call(roll_loot)"
        if phase == 1:
            assert percent > 70
        elif phase == 3:
            assert percent > 30
        elif phase == 4:
            assert calling == (percent == 0)
        living = [child for child in running.db.read(Workflow).where(parent_id=id) if child.status not in FINISHED]
        assert bool(living) == (phase == 2), "the minions and their phase go together"

    def _check_times(self, running: Running) -> None:
        """Each bite and each breath came in its turn, and was felt once; each phase was entered once."""
        lines = Counter(line.text for line in running.db.read(Chat))
        due: dict[int, datetime] = {}
        for moment in timeline(running, boss_add):
            bitten = moment.fired(BossTimer.BITE)
            if moment.before is None:
                due[moment.id] = moment.at
            elif bitten:
                due[moment.id] += BITE
                assert moment.at >= due[moment.id], "a bite came too early"
            assert moment.after.next_bite == due[moment.id] + BITE

        breaths = 0
        results: Counter[Outcome] = Counter()
        began: dict[int, datetime] = {}
        phases: defaultdict[int, set[int]] = defaultdict(set)
        for moment in timeline(running, boss_fight):
            began.setdefault(moment.id, moment.at)
            phases[moment.id].add(moment.after.phase)
            if moment.fired(BossTimer.FIRE_BREATH):
                breaths += 1
                assert moment.before is not None
                assert moment.at >= moment.before.next_breath, "the dragon breathed fire too early"
                if "next_breath" in vars(moment.after):
                    assert moment.after.next_breath == moment.before.next_breath + FIRE_BREATH
            if moment.kind == "completed":
                result = boss_fight.decode_result(moment.detail)
                results[result.outcome] += 1
                assert result.phase == moment.after.phase
                if result.outcome is Outcome.ENRAGED:
                    assert moment.at >= began[moment.id] + ENRAGE
        assert lines["The boss breathes fire."] == breaths
        assert lines["Victory! a dragon is dead."] >= results[Outcome.VICTORY]
        assert lines["The raid is lost: enraged."] == results[Outcome.ENRAGED]
        assert lines["The raid is lost: wipe."] == results[Outcome.WIPE]
        entered = Counter(phase for reached in phases.values() for phase in reached)
        for phase, text in enumerate(PHASE_STARTS, 1):
            said = sum(count for line, count in lines.items() if line.startswith(text))
            assert said >= entered[phase], f"{said} times {text!r}, and {entered[phase]} fights in it"


def _revive(ctx: ReducerContext, dragon: int) -> None:
    """A dead dragon gets back what it was killed for."""
    if health(ctx, dragon) or ctx.db[RaidMember].count(boss=dragon):
        raise ReducerError("it lives, or is being searched")
    heal(ctx, dragon)
    for hero in ctx.db[Character]:
        if hero.identity is not None:
            move_gold(ctx, hero.id, dragon, hero.gold // 2)
            for item in belongings(ctx, hero.id)[:1]:
                move_item(ctx, item, hero.id, dragon)
