"""The workflows of the stateful test, each with its model: a plain generator that says what it waits for."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from engine_support import Bid, Clock, Faults, GameError, Stop, Struct, seconds

from workflow_module import (
    ChildError,
    WorkflowContext,
    WorkflowError,
    gather,
    select,
    signal,
    sleep,
    spawn,
    timer,
    wait_all,
    workflow,
)


class Shape(Struct):
    d: int
    target: int = 0


def check() -> None:
    if Faults.on:
        raise GameError("on purpose")


@workflow
async def racer(ctx: WorkflowContext, init: Shape) -> list[str]:
    log: list[str] = []
    check()
    ends = ctx.now + seconds(init.d)
    while True:
        got = await select(Bid, timer(Clock.END, at=ends), Stop)
        check()
        match got:
            case Bid(amount):
                log.append(f"bid {amount}")
                if init.target:
                    try:
                        ctx.signal(init.target, Bid(amount=amount + 1))
                    except WorkflowError as error:
                        log.append(type(error).__name__)
            case Stop():
                log.append("stop")
                return log
            case _:
                log.append("end")
                return log


@workflow
async def gatherer(ctx: WorkflowContext, init: Shape) -> list[str]:
    log: list[str] = []
    check()
    a, b, _ = await gather(signal(Bid), signal(Bid, timeout=seconds(init.d)), sleep(seconds(init.d // 2)))
    check()
    log.append(f"bid {a.amount}")
    log.append("none" if b is None else f"bid {b.amount}")
    return log


@workflow
async def waiter(ctx: WorkflowContext, init: Shape) -> list[str]:
    log: list[str] = []
    check()
    for _ in range(2):
        bid, stop = await wait_all(Bid, Stop, timeout=seconds(init.d))
        check()
        log.append("none" if bid is None else f"bid {bid.amount}")
        log.append("none" if stop is None else "stop")
    return log


@workflow
async def patient(ctx: WorkflowContext, init: Shape) -> list[str]:
    log: list[str] = []
    check()
    for _ in range(3):
        bid = await signal(Bid, timeout=seconds(init.d))
        check()
        log.append("none" if bid is None else f"bid {bid.amount}")
    return log


@workflow
async def spawner(ctx: WorkflowContext, init: Shape) -> list[str]:
    log: list[str] = []
    check()
    try:
        got = await select(
            spawn(patient, Shape(d=init.d)), timer(Clock.END, after=seconds(2 * init.d)), Stop, signal(Bid)
        )
        if isinstance(got, list):
            log.extend(got)
        else:
            log.append(f"bid {got.amount}" if isinstance(got, Bid) else "stop" if isinstance(got, Stop) else "end")
    except ChildError as error:
        log.append(type(error).__name__)
    check()
    return log


@workflow
async def family(ctx: WorkflowContext, init: Shape) -> list[str]:
    log: list[str] = []
    check()
    got = await gather(spawn(patient, Shape(d=init.d)), spawn(racer, Shape(d=init.d + 1)), return_exceptions=True)
    check()
    log.extend(type(each).__name__ if isinstance(each, BaseException) else " ".join(each) for each in got)
    return log


@workflow
async def tidy(ctx: WorkflowContext, init: Shape) -> list[str]:
    log: list[str] = []
    check()
    try:
        got = await select(Stop, sleep(seconds(init.d)), Bid)
        log.append(f"bid {got.amount}" if isinstance(got, Bid) else "other")
    finally:
        await sleep(seconds(3))
        check()
        log.append("clean")
    return log


SHAPES = {each.name: each for each in (racer, gatherer, waiter, patient, spawner, family, tidy)}

# --- the models: they `yield` a wait and get its value ("unchecked" is a select that no `check()` follows), and
# `yield ["send", id, amount]` and get the name of an error, or None


class Cancel(BaseException):
    """What a cancelled model gets."""


Model = Generator[Any, Any, list[str]]


def bid_text(value: Any) -> str:
    return "none" if value is None else f"bid {value}"


def racer_model(log: list[str], now: int, init: Shape) -> Model:
    ends = now + init.d
    while True:
        name, value = yield ["select", ("signal", "Bid"), ("at", "end", ends), ("signal", "Stop")]
        if name == "Bid":
            log.append(bid_text(value))
            if init.target:
                error = yield ["send", init.target, value + 1]
                if error is not None:
                    log.append(error)
        else:
            log.append("stop" if name == "Stop" else "end")
            return log


def gatherer_model(log: list[str], now: int, init: Shape) -> Model:
    got = yield ["gather", ("signal", "Bid"), ("timeout", "Bid", init.d), ("after", "sleep", init.d // 2)]
    log += [bid_text(got[0][1]), bid_text(got[1][1])]
    return log


def waiter_model(log: list[str], now: int, init: Shape) -> Model:
    for _ in range(2):
        bid, stop = yield ["all", init.d]
        log += [bid_text(bid), "stop" if stop else "none"]
    return log


def patient_model(log: list[str], now: int, init: Shape) -> Model:
    for _ in range(3):
        _, value = yield ["select", ("timeout", "Bid", init.d)]
        log.append(bid_text(value))
    return log


def spawner_model(log: list[str], now: int, init: Shape) -> Model:
    name, value = yield [
        "select",
        ("spawn", "patient", Shape(d=init.d)),
        ("after", "end", 2 * init.d),
        ("signal", "Stop"),
        ("signal", "Bid"),
    ]
    if name == "child":
        log += value
    else:
        log.append({"Bid": bid_text(value), "Stop": "stop", "end": "end"}.get(name, name))
    return log


def family_model(log: list[str], now: int, init: Shape) -> Model:
    got = yield ["gather", ("spawn", "patient", Shape(d=init.d)), ("spawn", "racer", Shape(d=init.d + 1))]
    log += [" ".join(value) if name == "child" else name for name, value in got]
    return log


def tidy_model(log: list[str], now: int, init: Shape) -> Model:
    try:
        name, value = yield ["unchecked", ("signal", "Stop"), ("after", "sleep", init.d), ("signal", "Bid")]
    except Cancel:  # and not `finally`, which Python would run when it throws the generator away
        yield ["select", ("after", "sleep", 3)]
        log.append("clean")
        raise
    log.append(bid_text(value) if name == "Bid" else "other")
    yield ["select", ("after", "sleep", 3)]
    log.append("clean")
    return log


MODELS = {name: globals()[f"{name}_model"] for name in SHAPES}
