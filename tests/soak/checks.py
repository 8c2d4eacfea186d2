"""What must hold of the server, seen with an operator's eyes: by SQL, `/v1/health` and `/metrics`."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Final

from tests.soak.game import ON_PURPOSE
from tests.soak.office import Metrics
from tests.soak.processes import DATABASE
from tests.soak.scene import Scene

OVERDUE_SECONDS_MAX: Final = 30
"""As `/v1/health` has it."""
SETTLING_SECONDS: Final = 10
"""After a start, what came due meanwhile may take so long."""
EMPTY_SECONDS_MAX: Final = 30
GOLD: Final = """
    SELECT (SELECT sum(gold) FROM character) + (SELECT coalesce(sum(amount), 0) FROM held_gold)
"""
THINGS: Final = "SELECT kind, count(*) FROM item GROUP BY kind"
STUCK: Final = """
    SELECT w.id, w.workflow_type, w.current_step FROM workflow w
    WHERE w.status IN ('Suspended', 'Cancelling')
      AND NOT EXISTS (SELECT 1 FROM workflow_timer t WHERE t.workflow_id = w.id)
      AND NOT EXISTS (SELECT 1 FROM workflow_wake k WHERE k.workflow_id = w.id)
      AND NOT EXISTS (SELECT 1 FROM pending_procedure p WHERE p.workflow_id = w.id)
      AND NOT EXISTS (SELECT 1 FROM workflow c WHERE c.parent_id = w.id AND c.status IN ('Suspended', 'Cancelling'))
"""
"""Every wait of this game ends by a timer, a call or a child, if by nothing else."""
OVERDUE: Final = """
    SELECT count(*) FROM (
        SELECT scheduled_at FROM workflow_timer UNION ALL SELECT scheduled_at FROM workflow_wake
        UNION ALL SELECT scheduled_at FROM workflow_expiry UNION ALL
        SELECT scheduled_at FROM pending_procedure WHERE queue IS NULL OR status = 'Running'
    ) WHERE scheduled_at < '{moment}'
"""
HELD_BY_NOBODY: Final = """
    SELECT count(*) FROM (SELECT holder FROM held_gold UNION ALL SELECT holder FROM item WHERE holder IS NOT NULL)
    WHERE holder NOT IN (SELECT id FROM workflow WHERE status NOT IN ('Completed', 'Cancelled'))
"""
GHOSTS: Final = """
    SELECT (SELECT count(*) FROM visit) + (
        SELECT count(*) FROM figure f JOIN character c ON c.id = f.character_id
        WHERE c.identity IS NOT NULL AND f.online
    )
"""
PARKED: Final = f"""
    SELECT id, workflow_type, error FROM workflow WHERE status = 'Failed' AND error NOT LIKE '%{ON_PURPOSE}%'
"""


async def learn(scene: Scene) -> None:
    """What there is at first, and must be for ever."""
    scene.totals.gold = await scene.office.number(GOLD)
    scene.totals.things = dict(await scene.office.sql(THINGS))


async def check_world(scene: Scene) -> None:
    """While everything goes on."""
    report, office = scene.report, scene.office
    gold = await office.number(GOLD)
    report.expect(gold == scene.totals.gold, "gold was made or lost", f"{gold}, not {scene.totals.gold}")
    things = dict(await office.sql(THINGS))
    report.expect(things == scene.totals.things, "things were made or lost", f"{things}, not {scene.totals.things}")
    orphans = await office.number(HELD_BY_NOBODY)
    report.expect(orphans == 0, "something is held for nobody", f"{orphans} pieces of property")
    for row in await office.sql(STUCK):
        report.fault("nothing wakes a workflow", str(row))
    for row in await office.sql(PARKED):
        report.fault("a workflow was parked", str(row))
    if scene.server.age > OVERDUE_SECONDS_MAX + SETTLING_SECONDS:
        moment = datetime.now(UTC) - timedelta(seconds=OVERDUE_SECONDS_MAX)
        late = await office.number(OVERDUE.format(moment=f"{moment:%Y-%m-%dT%H:%M:%S.%fZ}"))
        report.expect(late == 0, "a workflow is overdue", f"{late} rows are more than {OVERDUE_SECONDS_MAX} s late")
        await _check_health(scene)
    report.counts["looks at the world"] += 1


async def check_empty(scene: Scene) -> None:
    """When all clients have left: nobody is online any more, and nothing is kept for them."""
    report, office = scene.report, scene.office
    metrics = await _until_empty(scene)
    for name in ("connections", "live_queries", "queued_bytes"):
        left = metrics.of(f"gamedb_{name}")
        report.expect(left == 0, f"{name} without clients", f"{left:.0f} are left")
    ghosts = await office.number(GHOSTS)
    report.expect(ghosts == 0, "ghosts", f"{ghosts} players are online without a connection")
    for table in ("ledger", "item"):
        told, counted = metrics.of("gamedb_rows", table=table), await office.number(f"SELECT count(*) FROM {table}")
        report.expect(told == counted, "rows in metrics", f"{told:.0f} rows of {table}, and SQL counts {counted}")
    given = metrics.of("gamedb_transaction_seconds_count", name="give")
    confirmed = report.counts["confirmed gifts"] - scene.confirmed_before
    report.expect(given >= confirmed, "transactions in metrics", f"{given:.0f} gifts, and {confirmed} were confirmed")
    await _check_health(scene)
    report.counts["looks at an empty server"] += 1


async def _check_health(scene: Scene) -> None:
    problems = (await scene.office.health())["databases"][DATABASE]["problems"]
    scene.report.expect(not problems, "unhealthy", str(problems))


async def _until_empty(scene: Scene) -> Metrics:
    until = scene.report.seconds + EMPTY_SECONDS_MAX
    while True:
        metrics = await scene.office.metrics()
        if metrics.of("gamedb_connections") == 0 or scene.report.seconds > until:
            return metrics
        await asyncio.sleep(0.2)
