"""`workflows.ts`: names and types of the installed workflows, as clients meet them in JSON."""

from __future__ import annotations

import enum
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

import msgspec
import pytest

from gamedb import Module, SchemaError, i64, u32, u64
from gamedb.codegen.typescript import typescript
from workflow_module import (
    Json,
    Signal,
    Struct,
    Timer,
    WorkflowContext,
    install,
    select,
    signal,
    sleep,
    timer,
    workflow,
)
from workflow_module.codec import encode
from workflow_module.generation import workflows_ts
from workflow_module.json_types import JsonTypes


class Element(enum.Enum):
    FIRE = "fire"
    ICE = "ice"


class Level(enum.Enum):
    LOW = 1
    HIGH = 2


class Mixed(enum.Enum):
    A = 1
    B = "b"


class Item(Struct):
    name: str
    weight: float = 1.0


class Bag(Struct):
    items: list[str]
    inner: Bag | None = None


class Pair(Struct):
    left: Item
    right: Bag


class Fire(Struct, tag=True):
    heat: int


class Clock(Timer):
    END = "end"
    TICK = "tick"


class Bid(Signal):
    bidder: str
    amount: int
    note: str | None = None


class Close(Signal): ...


class AuctionInit(Struct):
    item: Item
    runs: timedelta = timedelta(hours=1)


class Sold(Struct):
    winner: str | None
    price: int


@workflow
async def auction(ctx: WorkflowContext, init: AuctionInit) -> Sold:
    """Sells an item to the highest bidder."""
    price = 0
    winner: str | None = None
    ends = ctx.now + init.runs
    while True:
        match await select(timer(Clock.END, at=ends), Bid, Close):
            case Bid(bidder, amount) if amount > price:
                winner, price = bidder, amount
            case Clock.END | Close():
                break
    paid = await signal(Close, timeout=timedelta(days=1))
    return Sold(winner=winner if paid else None, price=price)


@workflow(name="nap-time")
async def nap(ctx: WorkflowContext) -> None:
    await sleep(timedelta(seconds=1))


def test_a_workflow_has_its_names_and_its_types() -> None:
    assert (
        workflows_ts([auction, nap]).partition("rounds beyond 2^53.\n")[2]
        == """
/** A number; those that JSON has no form for are text. */
export type Float = number | 'inf' | '-inf' | 'nan';

export type AuctionInit = {
  item: Item;
  runs?: string;
};

export type Bid = {
  bidder: string;
  amount: number;
  note?: string | null;
};

export type Close = Record<string, never>;

export type Item = {
  name: string;
  weight?: Float;
};

export type Sold = {
  winner: string | null;
  price: number;
};

export type AuctionResult = Sold;
export type AuctionView = {
  init: AuctionInit;
  ends?: string;
  price: number;
  winner: string | null;
};
export type AuctionSignals = {
  Bid: Bid;
  Close: Close;
};
export type AuctionTimers = 'end' | 'tick';
/** Sells an item to the highest bidder. */
export const auction = {
  type: 'auction',
  signals: { Bid: 'Bid', Close: 'Close' },
  timers: { END: 'end', TICK: 'tick' },
} as const;

export type NapTimeInit = null;
export type NapTimeResult = null;
export type NapTimeView = {
  init: null;
};
export type NapTimeSignals = {};
export type NapTimeTimers = never;
export const napTime = {
  type: 'nap-time',
  signals: {},
  timers: {},
} as const;

/** The types of each workflow, by its name in the database. */
export interface Workflows {
  auction: {
    init: AuctionInit;
    result: AuctionResult;
    view: AuctionView;
    signals: AuctionSignals;
    timers: AuctionTimers;
  };
  'nap-time': {
    init: NapTimeInit;
    result: NapTimeResult;
    view: NapTimeView;
    signals: NapTimeSignals;
    timers: NapTimeTimers;
  };
}
"""
    )


def test_it_comes_with_the_bindings_of_a_module() -> None:
    module = Module("house")
    install(module, [auction])

    assert "export const auction = {" in typescript(module.resolve())["workflows.ts"]


TYPES: list[tuple[Any, Any, str]] = [
    (int, 5, "number"),
    (float, float("inf"), "Float"),
    (bytes, b"\x00", "string"),
    (datetime, datetime(2026, 1, 1), "string"),
    (Element, Element.ICE, "'fire' | 'ice'"),
    (Level, Level.LOW, "1 | 2"),
    (Mixed, Mixed.B, "'A' | 'B'"),
    (Literal["a", 'it\'s "b"'], "a", "'a' | 'it\\'s \"b\"'"),
    (list[Element], [Element.ICE], "('fire' | 'ice')[]"),
    (tuple[int, str], (1, "a"), "[number, string]"),
    (tuple[int, ...], (1, 2), "number[]"),
    (set[str], {"a"}, "string[]"),
    (dict[str, int], {"a": 1}, "{ [key: string]: number }"),
    (dict[Element, int], {Element.ICE: 1}, "{ [key in 'fire' | 'ice']?: number }"),
    (dict[tuple[int, int], str], {(1, 2): "a"}, "[[number, number], string][]"),
    (int | None, None, "number | null"),
    (int | str, "a", "number | string"),
    (float | int, 1, "Float"),
    (float | None, None, "Float | null"),
    (int | Bag, 5, "number | Bag"),
    (int | Item, 5, "{ $type: 'int'; value: number } | { $type: 'Item'; value: Item }"),
    (Item | Fire, Fire(heat=1), "{ $type: 'Item'; value: Item } | { $type: 'Fire'; value: Fire }"),
    (str | bytes | None, b"", "{ $type: 'str'; value: string } | { $type: 'bytes'; value: string } | null"),
    (Annotated[int, "meters"], 5, "number"),
    (u32, 5, "number"),
    (u64, 2**64 - 1, "Big"),
    (list[i64 | None], [-(2**63), None], "(Big | null)[]"),
    (range, range(3), "[number, number, number]"),
    (Json, {"a": [1]}, "Json"),
    (ValueError, ValueError("x"), "StoredException"),
    (Bag, Bag(items=[]), "Bag"),
]


@pytest.mark.parametrize(("annotation", "value", "text"), TYPES)
def test_each_type_is_written_as_the_json_that_it_is_stored_as(annotation: Any, value: Any, text: str) -> None:
    types = JsonTypes(set())

    assert types.of(annotation) == text
    encode(value, annotation, "value")  # a value of it can be stored at all


def test_structs_are_declared_once_with_what_they_hold() -> None:
    types = JsonTypes({"Item"})

    assert types.of(list[Pair]) == "Pair[]"
    assert types.of(Fire) == "Fire"

    assert (
        types.declarations()
        == """/** A number; those that JSON has no form for are text. */
export type Float = number | 'inf' | '-inf' | 'nan';

export type Bag = {
  items: string[];
  inner: Bag | null;
};

export type Fire = {
  type: 'Fire';
  heat: number;
};

export type Item2 = {
  name: string;
  weight: Float;
};

export type Pair = {
  left: Item2;
  right: Bag;
};
"""
    )


def test_the_json_of_a_tagged_struct_has_its_tag() -> None:
    assert msgspec.json.decode(encode(Fire(heat=1), Fire, "value")) == {"type": "Fire", "heat": 1}


def test_workflows_that_would_be_one_are_refused() -> None:
    @workflow(name="nap_time")
    async def other(ctx: WorkflowContext) -> None:
        await sleep(timedelta(seconds=1))

    with pytest.raises(SchemaError, match="'nap-time' and 'nap_time' would both be written 'napTime'"):
        workflows_ts([nap, other])


def test_a_name_that_is_a_word_of_the_language_gets_an_underscore() -> None:
    @workflow(name="delete")
    async def other(ctx: WorkflowContext) -> None:
        await sleep(timedelta(seconds=1))

    assert "export const delete_ = {\n  type: 'delete'," in workflows_ts([other])
