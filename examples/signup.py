"""Signing up: a welcome letter, three days of peace, a reminder, and a week to confirm.

    python -m examples.signup

What it shows: a process that takes ten days and reads like a recipe. Letters are procedures (at least once, five
attempts, the same `step_key` in each); days are `sleep`; the confirmation is a signal with a timeout. A confirmation
that comes while the workflow sleeps is not lost: it lies in the inbox until somebody asks for it.

Between waits the code reads the database as it likes: whoever has confirmed by the third day gets no reminder.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from gamedb import AutoInc, Module, PrimaryKey, ReducerContext, ReducerError, Row, Unique, u64
from workflow_module import (
    Signal,
    StepContext,
    Struct,
    Workflow,
    WorkflowContext,
    WorkflowStatus,
    call,
    install,
    signal,
    sleep,
    workflow,
)

from .post import post
from .stage import Stage
from .world import world

module = Module("signup")
module.include(world)


@module.table(public=True)
class Account(Row):
    """Somebody who signed up."""

    id: PrimaryKey[AutoInc[u64]] = 0
    address: Unique[str]
    created_at: datetime
    confirmed: bool = False


class Confirmed(Signal): ...


class SignupInit(Struct):
    address: str


class SignupResult(Struct):
    confirmed: bool


@module.procedure
def send_letter(ctx: StepContext, address: str, text: str) -> None:
    """Write to somebody, once."""
    post.send(ctx.step_key, f"{address}: {text}")


@workflow(retention=timedelta(days=30))
async def signup(ctx: WorkflowContext, init: SignupInit) -> SignupResult:
    account = create_account(ctx, init.address)
    await call(send_letter, init.address, "Welcome! Please confirm.")

    await sleep(timedelta(days=3))
    if not is_confirmed(ctx, account):
        await call(send_letter, init.address, "You have not confirmed yet.")

    if await signal(Confirmed, timeout=timedelta(days=7)) is None:
        ctx.db[Account].delete(account)
        return SignupResult(confirmed=False)
    return SignupResult(confirmed=True)


def create_account(ctx: ReducerContext, address: str) -> int:
    """A new account; its id."""
    return ctx.db[Account].insert(Account(address=address, created_at=ctx.now)).id


def is_confirmed(ctx: ReducerContext, account_id: int) -> bool:
    """Whether the owner has clicked the link."""
    account = ctx.db[Account].get(account_id)
    return account is not None and account.confirmed


engine = install(module, [signup], testing=True)


@module.reducer
def sign_up(ctx: ReducerContext, address: str) -> int:
    """Sign up. The button may be clicked twice."""
    for run in ctx.db[Workflow].where(workflow_type=signup.name, correlation_id=address):
        if run.status is WorkflowStatus.Suspended:
            return run.id
        engine.delete(ctx, run.id)  # an earlier attempt that has ended; this is a new one
    if ctx.db[Account].find(address=address) is not None:
        raise ReducerError(f"{address} has an account")
    return engine.start(ctx, signup, SignupInit(address=address), correlation_id=address)


@module.reducer
def confirm(ctx: ReducerContext, address: str) -> None:
    """The link in the letter. It may be clicked twice."""
    account = ctx.db[Account].find(address=address)
    if account is None:
        raise ReducerError("this link has expired")
    if not account.confirmed:
        ctx.db[Account].update(account.replace(confirmed=True))
        for run in ctx.db[Workflow].where(workflow_type=signup.name, correlation_id=address):
            engine.signal(ctx, run.id, Confirmed())


def main() -> None:
    """Ann confirms on the first day, bob after the reminder, cleo never."""
    stage = Stage(module)
    runs = {name: stage.db.call(sign_up, f"{name}@example.org") for name in ("ann", "bob", "cleo")}
    stage.wait(hours=5)
    stage.db.call(confirm, "ann@example.org")
    stage.wait(days=4)
    stage.db.call(confirm, "bob@example.org")
    stage.wait(days=7)
    for letter in post.letters.values():
        print(letter)
    for name, run in runs.items():
        print(f"{name}: {stage.flows.result(run)}")
    print(f"accounts: {[account.address for account in stage.db.read(Account)]}")


if __name__ == "__main__":
    main()
