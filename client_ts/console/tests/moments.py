"""Prints what `Workflows(db).at` says of every event of every workflow of a village, as JSON: `moments.py DATABASE`."""

from __future__ import annotations

import sys
from typing import Any

import msgspec
from village import module

from gamedb import Database
from workflow_module import Workflow, Workflows


def past(flows: Workflows, workflow_id: int) -> list[dict[str, Any]]:
    found = []
    for number in range(1, len(flows.history(workflow_id)) + 1):
        moment = flows.at(workflow_id, number)
        # Where there is no state any more, the last one is what is left to show.
        state = msgspec.json.decode(moment.state_data) if moment.state is None else vars(moment.state)
        found.append(
            {
                "number": moment.number,
                "at": moment.at,
                "kind": moment.kind,
                "step": moment.step,
                "state": {name: value for name, value in state.items() if not name.startswith("$")},
            }
        )
    return found


with Database(module, path=sys.argv[1]) as db:
    flows = Workflows(db)
    told = {row.id: past(flows, row.id) for row in db.read(Workflow)}
    sys.stdout.write(msgspec.json.encode(told).decode())
