"""Settling a sale: the buyer is told, and has 72 hours to pay, unless somebody calls it off.

    python -m examples.sale_settlement

What it shows: a race of two signals and a deadline, and steps that talk to the world outside. Each step is a procedure
with `attempts=3`: it runs outside of transactions, is repeated when it fails and after a crash, and its result is
recorded. `ctx.step_key` is the same in all these attempts, so the post office sends one letter however often it is
asked; inside the database, looking at the sale's state does the same.

Start it with a `correlation_id` of your own: a start that is repeated joins the run instead of making a second one.

When a step has failed three times, `ProcedureFailed` is raised at the `await`. Nobody catches it here, so the workflow
is parked where it was, with everything still in escrow, for an operator to look at.
"""

from __future__ import annotations

import enum
from datetime import timedelta

from gamedb import AutoInc, Module, PrimaryKey, ReducerContext, ReducerError, Row, u64
from workflow_module import (
    Signal,
    StepContext,
    Struct,
    Timer,
    WorkflowContext,
    call,
    install,
    select,
    timer,
    workflow,
)

from .post import post
from .stage import Stage
from .world import (
    HeldGold,
    character,
    give_back,
    hand_over,
    hold_gold,
    hold_item,
    me,
    owned_item,
    tell,
    world,
)

module = Module("sale_settlement")
module.include(world)


class SaleState(enum.Enum):
    OPEN = "open"
    SETTLED = "settled"
    VOID = "void"


@module.table(public=True)
class Sale(Row):
    """Something was sold, and is not paid yet."""

    id: PrimaryKey[AutoInc[u64]] = 0
    item_id: u64
    seller: u64
    buyer: u64
    price: u64
    state: SaleState = SaleState.OPEN
    settlement: u64 = 0
    """The workflow."""


class SaleTimer(Timer):
    PAYMENT_DUE = "payment_due"


class Paid(Signal): ...


class CalledOff(Signal):
    reason: str


class SaleInit(Struct):
    sale: int
    item: int
    seller: int
    buyer: int


class SaleResult(Struct):
    outcome: SaleState
    reason: str | None = None


# --- the steps


@module.procedure
def notify(ctx: StepContext, buyer: u64, text: str) -> None:
    """Write to the buyer, outside of the game."""
    post.send(ctx.step_key, f"to {buyer}: {text}")


@module.procedure
def settle(ctx: StepContext, sale_id: u64) -> None:
    """The item to the buyer, the gold to the seller."""
    with ctx.transaction() as tx:
        sale = tx.db[Sale].get(sale_id)
        if sale is not None and sale.state is SaleState.OPEN:
            hand_over(tx, sale.settlement, sale.buyer, sale.seller)
            hand_over(tx, sale.settlement, sale.seller, sale.buyer)
            tx.db[Sale].update(sale.replace(state=SaleState.SETTLED))


@module.procedure
def void(ctx: StepContext, sale_id: u64) -> None:
    """It does not come to pass; everything goes back."""
    with ctx.transaction() as tx:
        close(tx, sale_id)


def close(ctx: ReducerContext, sale_id: int) -> None:
    """A sale that is still open becomes void, and what was held for it goes back."""
    sale = ctx.db[Sale].get(sale_id)
    if sale is not None and sale.state is SaleState.OPEN:
        give_back(ctx, sale.settlement)
        ctx.db[Sale].update(sale.replace(state=SaleState.VOID))


@workflow
async def settle_sale(ctx: WorkflowContext, init: SaleInit) -> SaleResult:
    hold_item(ctx, ctx.workflow_id, init.seller, init.item)
    try:
        await call(notify, init.buyer, "please pay within 72 hours", attempts=3)

        due = timer(SaleTimer.PAYMENT_DUE, after=timedelta(hours=72))
        match await select(Paid, CalledOff, due):
            case Paid():
                await call(settle, init.sale, attempts=3)
                return SaleResult(SaleState.SETTLED)
            case CalledOff(reason):
                await call(void, init.sale, attempts=3)
                return SaleResult(SaleState.VOID, reason)
            case SaleTimer.PAYMENT_DUE:
                await call(void, init.sale, attempts=3)
                return SaleResult(SaleState.VOID, "not paid in time")
    finally:
        close(ctx, init.sale)


engine = install(module, [settle_sale], testing=True)


@module.reducer
def agree(ctx: ReducerContext, item_id: u64, buyer: u64, price: u64) -> int:
    """Sell one's thing to somebody, who is to pay later; the sale's id."""
    seller = me(ctx)
    owned_item(ctx, item_id, seller.id)
    sale = Sale(item_id=item_id, seller=seller.id, buyer=character(ctx, buyer).id, price=price)
    sale = ctx.db[Sale].insert(sale)
    init = SaleInit(sale=sale.id, item=item_id, seller=seller.id, buyer=buyer)
    settlement = engine.start(ctx, settle_sale, init, correlation_id=f"sale-{sale.id}")
    ctx.db[Sale].update(sale.replace(settlement=settlement))
    return sale.id


@module.reducer
def pay(ctx: ReducerContext, sale_id: u64) -> None:
    """Pay for what one bought. The gold goes into escrow at once; if the race is lost, it comes back."""
    sale, buyer = _open(ctx, sale_id), me(ctx)
    if buyer.id != sale.buyer:
        raise ReducerError("somebody else bought this")
    if ctx.db[HeldGold].count(holder=sale.settlement, owner_id=buyer.id):
        raise ReducerError("you have paid")
    hold_gold(ctx, sale.settlement, buyer.id, sale.price)
    tell(ctx, sale.seller, f"{buyer.name} has paid.")
    engine.signal(ctx, sale.settlement, Paid())


@module.reducer
def call_off(ctx: ReducerContext, sale_id: u64, reason: str) -> None:
    """Seller or buyer: withdraw from a sale that is not paid."""
    sale = _open(ctx, sale_id)
    if me(ctx).id not in (sale.seller, sale.buyer):
        raise ReducerError("this is not your sale")
    engine.signal(ctx, sale.settlement, CalledOff(reason=reason))


def _open(ctx: ReducerContext, sale_id: int) -> Sale:
    sale = ctx.db[Sale].get(sale_id)
    if sale is None or sale.state is not SaleState.OPEN:
        raise ReducerError("this sale is closed")
    return sale


def main() -> None:
    """One sale is paid, with a closed post office; another is not paid."""
    stage = Stage(module)
    stage.narrate()
    ann, bob = stage.join("ann"), stage.join("bob", gold=500)
    crown, ring = stage.drop("crown", ann.id), stage.drop("ring", ann.id)
    post.closed_for = 2
    sold = ann.call(agree, crown, bob.id, 300)
    ann.call(agree, ring, bob.id, 100)
    stage.wait(hours=1)
    print(f"{'':12}{len(post.requests)} requests to the post office made {len(post.letters)} letters")
    bob.call(pay, sold)
    stage.wait(hours=72)
    for sale in stage.db.read(Sale).where(seller=ann.id):
        print(f"{'':12}{stage.flows.result(sale.settlement)}")
    print(f"{'':12}ann has {ann.gold} gold and {ann.things}, bob has {bob.gold} gold and {bob.things}")


if __name__ == "__main__":
    main()
