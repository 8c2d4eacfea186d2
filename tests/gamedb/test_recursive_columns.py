"""Structs that contain themselves: trees, chains, mutual recursion; in JSON, in bytes, in a file, and their limits."""

from __future__ import annotations

import math
import os
import sys
import types
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from gamedb import (
    ArgumentError,
    ColumnError,
    Database,
    Module,
    PrimaryKey,
    ReducerContext,
    Row,
    SchemaChangeRefused,
    SchemaError,
    Struct,
    WireError,
    u8,
    u64,
)
from gamedb.cli import app
from gamedb.columns import NESTING_MAX, ProductType, column_type, exact_function, inside
from gamedb.schema import table_schema
from gamedb.wire.bsatn import codec, row_codec


class Tree(Struct):
    name: str
    weight: float = 1.0
    children: list[Tree] = []


class Chain(Struct):
    number: u8
    next: Chain | None = None


class Act(Struct, tag=True):
    what: str


class Invert(Struct, tag=True):
    node: Act | Invert | Sequence


class Sequence(Struct, tag=True):
    nodes: list[Act | Invert | Sequence]


Node = Act | Invert | Sequence


class Ping(Struct):
    pong: Pong | None = None


class Pong(Struct):
    pings: list[Ping] = []


class Thought(Row):
    id: PrimaryKey[u64]
    tree: Tree
    chain: Chain | None
    plan: Act | Invert | Sequence
    pings: list[Ping] = []


class Comment(Row):
    text: str
    replies: list[Comment] = []


TREES = st.recursive(
    st.builds(Tree, name=st.text(max_size=3), weight=st.floats()),
    lambda inner: st.builds(Tree, name=st.text(max_size=3), weight=st.floats(), children=st.lists(inner, max_size=3)),
    max_leaves=8,
)
CHAINS = st.recursive(st.none(), lambda inner: st.builds(Chain, number=st.integers(0, 255), next=inner), max_leaves=5)
NODES = st.recursive(
    st.builds(Act, what=st.text(max_size=3)),
    lambda inner: st.builds(Invert, node=inner) | st.builds(Sequence, nodes=st.lists(inner, max_size=3)),
    max_leaves=8,
)
THOUGHTS = st.builds(Thought, id=st.integers(0, 2**64 - 1), tree=TREES, chain=CHAINS, plan=NODES).map(
    lambda row: table_schema(Thought).row(
        **{c.name: c.type.coerce(getattr(row, c.name), c.name) for c in table_schema(Thought).columns}
    )
)
EXACT = {c.name: exact_function(c.type) for c in table_schema(Thought).columns}


def exact(row: Any) -> dict[str, Any]:
    """The row in a form in which nan equals nan and -0.0 differs from 0.0."""
    return {name: f(getattr(row, name)) if f else getattr(row, name) for name, f in EXACT.items()}


def chain_of(length: int) -> Any:
    chain = None
    for number in range(length):
        chain = Chain(number % 256, chain)
    return chain


# --- values


@given(THOUGHTS)
def test_rows_go_through_json_and_bytes_property(row: Thought) -> None:
    for column in table_schema(Thought).columns:
        text = msgspec.json.encode(column.type.to_json(getattr(row, column.name)))
        back = column.type.from_json(msgspec.json.decode(text), "v")
        f = EXACT[column.name]
        assert (f(back) if f else back) == exact(row)[column.name]
        assert column.type.coerce(back, "v") is back or not column.type.parts()
    rows = row_codec(table_schema(Thought))
    data = rows.encode(row)
    back_row = rows.decode_whole(data)
    assert exact(back_row) == exact(row)
    assert rows.encode(back_row) == data


@settings(max_examples=max(1, int(os.environ.get("GAMEDB_FUZZ_STEPS", "1000")) // 50))
@given(st.lists(THOUGHTS, max_size=4, unique_by=lambda row: row.id))
def test_rows_come_back_from_a_file_property(tmp_path_factory: pytest.TempPathFactory, rows: list[Thought]) -> None:
    module = Module("thoughts")
    module.table(Thought)
    path = tmp_path_factory.mktemp("thoughts") / "game.db"
    with Database(module, path=path) as db, db.transaction() as tx:
        for row in rows:
            tx.db[Thought].insert(row)
    with Database(module, path=path) as db:
        stored = {row.id: exact(row) for row in db.read(Thought)}
    assert stored == {row.id: exact(row) for row in rows}


def test_a_row_may_hold_rows_of_its_own_kind(tmp_path: Path) -> None:
    module = Module("talk")
    module.table(Comment)
    row = Comment(text="a", replies=[Comment(text="b"), Comment(text="c", replies=[Comment(text="d")])])
    for _ in range(2):
        with Database(module, path=tmp_path / "game.db") as db:
            with db.transaction() as tx:
                tx.db[Comment].insert(row)  # the second time, it is there already
            assert list(db.read(Comment)) == [row]


def test_a_row_class_inside_a_function_may_name_itself() -> None:
    class Local(Row):
        inner: list[Local] = []

    assert [c.type.name for c in table_schema(Local).columns] == ["list[Local]"]


def test_lists_inside_become_canonical_at_any_depth() -> None:
    kind = column_type(Tree, "v")
    tree = kind.coerce(Tree("a", 1, [Tree("b", 2, [Tree("c")])]), "v")
    assert type(tree.weight) is float
    with pytest.raises(TypeError, match="cannot be changed in place"):
        tree.children[0].children.append(tree)
    assert kind.coerce(tree, "v") is tree


def test_errors_name_the_place_inside() -> None:
    with pytest.raises(ColumnError, match=r"v\.next\.next\.number: 256 is out of range"):
        column_type(Chain, "v").coerce(Chain(1, Chain(2, Chain(256))), "v")


def test_comparison_tells_floats_apart_at_any_depth() -> None:
    exact_tree = exact_function(column_type(Tree, "v"))
    assert exact_tree is not None
    assert exact_tree(Tree("a", 0.0, [Tree("b", -0.0)])) != exact_tree(Tree("a", 0.0, [Tree("b", 0.0)]))
    assert exact_tree(Tree("a", 0.0, [Tree("b", math.nan)])) == exact_tree(Tree("a", 0.0, [Tree("b", math.nan)]))
    assert exact_function(column_type(Chain, "v")) is None


# --- limits


def test_values_nest_up_to_a_limit() -> None:
    kind = column_type(Chain, "v")
    deepest = kind.coerce(chain_of(NESTING_MAX), "v")
    data = codec(kind).encode(deepest)
    assert codec(kind).decode_whole(data) == deepest
    assert kind.from_json(kind.to_json(deepest), "v") == deepest

    for length in (NESTING_MAX + 1, 5_000):
        with pytest.raises(ColumnError, match="Chain is nested too deep \\(at most 64 levels\\)"):
            kind.coerce(chain_of(length), "v")
    with pytest.raises(WireError, match="deeper than 64"):
        codec(kind).decode(b"\x01\x00" * 65 + b"\x01\x01")
    with pytest.raises(WireError, match="deeper than 64"):
        codec(kind).decode(b"\x01\x00" * 1_000_000)
    with pytest.raises(WireError, match="no form on the wire"):
        codec(kind).encode(chain_of(100_000))
    plain: Any = None
    for _ in range(NESTING_MAX + 1):
        plain = {"number": 1, "next": plain}
    with pytest.raises(ColumnError, match="nested too deep"):
        kind.from_json(plain, "v")
    with pytest.raises(ColumnError, match="nested too deep"):
        kind.to_json(chain_of(NESTING_MAX + 1))
    assert kind.coerce(deepest, "v") is deepest, "an error leaves nothing behind"


class Nest(Struct):
    inner: list[list[list[list[list[list[list[list[list[list[Nest]]]]]]]]]] = []


def test_many_levels_of_lists_are_an_error_as_well() -> None:
    nest = Nest()
    for _ in range(NESTING_MAX - 1):
        nest = Nest([[[[[[[[[[nest]]]]]]]]]])
    with pytest.raises(ColumnError, match="nested too deep"):
        column_type(Nest, "v").coerce(nest, "v")


def test_calls_with_too_deep_arguments_are_refused() -> None:
    module = Module("chains")
    seen = []

    @module.reducer
    def store(ctx: ReducerContext, chain: Chain) -> None:
        seen.append(chain)

    with Database(module) as db:
        db.call(store, chain=chain_of(NESTING_MAX))
        with pytest.raises(ArgumentError, match="nested too deep"):
            db.call(store, chain=chain_of(NESTING_MAX + 1))
    assert len(seen) == 1


# --- types


class Rock(Struct):
    paper: Paper


class Paper(Struct):
    scissors: Scissors


class Scissors(Struct):
    rock: Rock


class Yin(Struct, tag=True):
    other: Yin | Yang


class Yang(Struct, tag=True):
    other: Yin | Yang


@pytest.mark.parametrize("annotation", [Rock, list[Rock], Yin | Yang, Paper | None])
def test_types_without_a_finite_value_are_refused(annotation: Any) -> None:
    with pytest.raises(SchemaError, match=r"v: [A-Z][a-z]+ contains itself, and so on without end; let it hold a list"):
        column_type(annotation, "v")


def test_descriptions_end_and_tell_types_apart() -> None:
    tree = {"recursive": [["name", "str"], ["weight", "f64"], ["children", {"list": {"again": 0}}]]}
    assert column_type(Tree, "v").describe() == tree
    assert column_type(list[Tree], "v").describe() == {"list": tree}
    ping = {"recursive": [["pong", {"option": {"recursive": [["pings", {"list": {"again": 0}}]]}}]]}
    assert column_type(Ping, "v").describe() == ping
    assert column_type(Chain, "v").describe() != column_type(Ping, "v").describe()

    class Wrapper(Struct):
        tree: Tree

    assert column_type(Wrapper, "v").describe() == {"product": [["tree", tree]]}


def test_only_what_contains_itself_is_marked() -> None:
    kinds = [kind for kind in inside(column_type(Node, "v")) if isinstance(kind, ProductType)]
    assert {kind.name: kind.recursive for kind in kinds} == {"Act": False, "Invert": True, "Sequence": True}


def test_unions_of_many_structs_that_contain_each_other_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"V{n}" for n in range(12)]
    source = "from __future__ import annotations\nfrom gamedb import Struct\n" + "".join(
        f"class {name}(Struct, tag=True):\n    inner: list[{' | '.join(names)}]\n" for name in names
    )
    monkeypatch.setitem(sys.modules, "many", types.ModuleType("many"))
    scope = vars(sys.modules["many"])
    exec(source, scope)
    annotation: Any = scope["V0"]
    for name in names[1:]:
        annotation |= scope[name]
    kind = column_type(annotation, "v")
    assert len(str(kind.describe())) < 20_000
    value = kind.coerce(scope["V3"]([scope["V7"]([])]), "v")
    assert codec(kind).decode_whole(codec(kind).encode(value)) == value


# --- stored


def open_node(path: Path, *variants: type[Struct]) -> Database:
    annotation: Any = variants[0]
    for variant in variants[1:]:
        annotation |= variant
    module = Module("plans")
    row = type("Plan", (Row,), {"__annotations__": {"id": PrimaryKey[u64], "node": annotation}})
    module.table(row)
    return Database(module, path=path)


class Once(Struct, tag=True):
    pass


class Loop(Struct, tag=True):
    body: list[Once | Loop]


class Loop2(Struct, tag="Loop"):
    body: list[Once | Loop2 | Stop]


class Stop(Struct, tag=True):
    pass


class Loop3(Struct, tag="Loop"):
    body: list[Loop3]


def test_a_stored_union_may_grow_inside_itself(tmp_path: Path) -> None:
    path = tmp_path / "game.db"
    with open_node(path, Once, Loop) as db, db.transaction() as tx:
        (table,) = tx.db
        tx.db[table].insert(table(id=1, node=Loop([Once(), Loop([])])))
    with open_node(path, Once, Loop2, Stop) as db:
        (table,) = db.tables
        assert [row.node for row in db.read(table)] == [Loop2([Once(), Loop2([])])]


def test_another_type_inside_itself_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "game.db"
    open_node(path, Once, Loop).close()
    with pytest.raises(SchemaChangeRefused, match=r"changed what its Structs hold \(union \(Once, Loop\)\)"):
        open_node(path, Once, Loop3)


def test_describe_shows_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "thinking.py").write_text(
        "from __future__ import annotations\n"
        "from gamedb import Module, PrimaryKey, Row, Struct, u64\n"
        "module = Module('thinking')\n"
        "class Idea(Struct):\n    parts: list[Idea]\n"
        "@module.table\nclass Mind(Row):\n    id: PrimaryKey[u64]\n    idea: Idea\n"
    )
    result = CliRunner().invoke(app, ["describe", "thinking:module"])
    assert result.exit_code == 0, result.output
    assert "parts: list[Idea]" in result.output
