"""What `gamedb check` says of workflows: what would happen to each running one under the code at hand."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from gamedb import CheckReport

if TYPE_CHECKING:
    from .engine import Engine

FINISHED_NAMES = ("Completed", "Cancelled")


def report_states(engine: Engine, report: CheckReport) -> None:
    """Add a line for each type of workflow and what would become of it: go on, go on with migration, or park."""
    if "workflow" not in report.tables:
        return
    counts: Counter[tuple[str, str]] = Counter()
    examples: dict[tuple[str, str], tuple[int, str]] = {}
    for row in report.rows("workflow"):
        if row["status"] in FINISHED_NAMES:
            continue
        fate, why = _fate(engine, row)
        key = (row["workflow_type"], fate)
        counts[key] += 1
        examples.setdefault(key, (row["id"], why))
    for (name, fate), count in sorted(counts.items()):
        workflow_id, why = examples[name, fate]
        running = f"{count} running workflow{'s' if count > 1 else ''} of type {name!r}"
        report.add(f"{running} would {fate}" + (f" (workflow {workflow_id}: {why})" if why else ""))


def _fate(engine: Engine, row: dict[str, Any]) -> tuple[str, str]:
    definition = engine.definitions.get(row["workflow_type"])
    if definition is None:
        return "stay as they are, without code", "its type is not installed"
    if not row["current_step"]:
        return "go on", ""
    try:
        problem = definition.check_state(row["state_data"])
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
    if problem is not None:
        return "be parked as failed", problem
    plain = definition.fits(row["state_data"])
    return ("go on", "") if plain else ("go on with @migrate", "")
