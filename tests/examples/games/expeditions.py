"""Expeditions: each errand's find is picked up once, and counted once by the one who sent it."""

from __future__ import annotations

from collections import Counter, defaultdict

from examples.parent_child import errand, expedition, module, send_out
from examples.world import Character, Chat, Item
from gamedb import ReducerContext
from tests.examples.games.base import Action, Game, Play, Running, players, timeline
from workflow_module import Workflow, WorkflowStatus


class Expeditions(Game):
    """Two leaders with three gatherers, in a wood where mushrooms grow."""

    module = module
    players = ("ann", "bob")

    def furnish(self, ctx: ReducerContext) -> None:
        """The gatherers, and the first mushrooms."""
        for name in ("flip", "flap", "flop"):
            ctx.db[Character].insert(Character(name=name))
        _grow(ctx)

    def actions(self, play: Play) -> tuple[Action, ...]:
        """Send gatherers out, in turn or together; let mushrooms grow."""
        gatherers = sorted(row.id for row in play.db.read(Character) if row.identity is None)
        return (
            lambda: play.call(play.player(), send_out, gatherers[play.number(0, 2) :], play.number(0, 1) == 1),
            lambda: play.db.execute("grow", _grow, ()),
        )

    def sums(self, db: object) -> object:
        """Mushrooms grow, so nothing stays as it was."""
        return None

    def check(self, running: Running) -> None:
        """What the leaders have is what their errands brought."""
        super().check(running)
        db = running.db
        brought: defaultdict[int, int] = defaultdict(int)
        finds: dict[int, int] = {}
        back: Counter[int] = Counter()
        for moment in timeline(running, errand):
            found = vars(moment.after).get("found")
            if found is not None and moment.id not in finds:
                finds[moment.id] = found
                brought[moment.after.init.for_whom] += found
            if moment.kind == "completed":
                assert errand.decode_result(moment.detail) == finds[moment.id]
                back[finds[moment.id]] += 1
        for player in players(db):
            assert db.read(Item).count(owner_id=player.id) == brought[player.id]
        lines = [line.text for line in db.read(Chat)]
        assert Counter(int(line.rpartition(" ")[2].rstrip(".")) for line in lines) == back

        for row in db.read(Workflow):
            if row.workflow_type == expedition.name and row.status is WorkflowStatus.Completed:
                children = db.read(Workflow).where(parent_id=row.id)
                done = [child for child in children if child.status is WorkflowStatus.Completed]
                result = expedition.decode_result(row.result or "")
                assert result.found == sum(finds[child.id] for child in done)
                assert result.lost == len(children) - len(done)


def _grow(ctx: ReducerContext) -> None:
    for _ in range(3):
        ctx.db[Item].insert(Item(kind="mushroom"))
