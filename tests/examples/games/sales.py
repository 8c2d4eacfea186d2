"""Sales: gold and thing change hands once for each settled sale, however often its steps had to be tried."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

from examples.sale_settlement import Sale, SaleState, agree, call_off, module, pay, settle_sale
from examples.world import Character, Item
from tests.examples.games.base import FINISHED, Action, Game, Ledger, Play, Running, held, things_held
from workflow_module import Workflow, WorkflowStatus


class Sales(Game):
    """Three players sell their things to each other, and pay or do not."""

    module = module
    purse = 300
    bag = ("crown", "ring")
    pause = timedelta(hours=8)
    days = 3

    def actions(self, play: Play) -> tuple[Action, ...]:
        """Agree, pay, call off; and try again what has failed."""

        def settle() -> None:
            sale = play.row(Sale, state=SaleState.OPEN)
            play.call(play.row(Character, id=sale.buyer), pay, sale.id)

        return (
            lambda: play.call(play.player(), agree, play.row(Item).id, play.player().id, play.number(0, 200)),
            settle,
            settle,
            lambda: play.call(play.player(), call_off, play.row(Sale, state=SaleState.OPEN).id, "too dear"),
            play.resume,
        )

    def calls(self, running: Running) -> set[tuple[str, int]]:
        """Whatever was decided, the buyer got a letter, and a step has done it."""
        calls = set()
        for row in running.db.read(Workflow):
            if row.status is WorkflowStatus.Completed:
                outcome = settle_sale.decode_result(row.result or "").outcome
                calls |= {("notify", row.id), ("settle" if outcome is SaleState.SETTLED else "void", row.id)}
        return calls

    def check(self, running: Running) -> None:
        """Who owns what is what was settled; results, sales and escrow say the same."""
        super().check(running)
        db = running.db
        ledger = Ledger(self, db)
        settlements = {row.id: row for row in db.read(Workflow)}
        sales = sorted(db.read(Sale), key=lambda sale: sale.id)
        assert {sale.settlement for sale in sales} == settlements.keys()
        for sale in sales:
            row = settlements[sale.settlement]
            assert row.correlation_id == f"sale-{sale.id}"
            assert row.status not in FINISHED or sale.state is not SaleState.OPEN, "it ended without a decision"
            if row.status is WorkflowStatus.Completed:
                assert settle_sale.decode_result(row.result or "").outcome is sale.state
            if sale.state is SaleState.SETTLED:
                ledger.move_gold(sale.buyer, sale.seller, sale.price)
                ledger.owners[sale.item_id] = sale.buyer
            is_open = sale.state is SaleState.OPEN
            assert things_held(db, row.id) == ({sale.item_id} if is_open else set())
            assert held(db, row.id) in (Counter(), Counter({sale.buyer: sale.price} if is_open else {}))
        ledger.check()
