"""Modules: names, what is declared twice, inclusion, scheduled tables and their functions."""

from __future__ import annotations

from typing import Any

import pytest

from gamedb import (
    AutoInc,
    Database,
    Module,
    PrimaryKey,
    ReducerContext,
    Row,
    ScheduleAt,
    SchemaError,
    ViewContext,
    u8,
    u64,
)


class Thing(Row):
    id: PrimaryKey[u8]


class Other(Row):
    id: PrimaryKey[u8]


class Timer(Row):
    scheduled_id: PrimaryKey[AutoInc[u64]] = 0
    scheduled_at: ScheduleAt


def reducer(name: str) -> Any:
    """A reducer with this name that notes its name in the table."""

    def function(ctx: ReducerContext) -> str:
        return name

    function.__name__ = name
    return function


@pytest.mark.parametrize("name", ["", "Arena", "1st", "two words", "a.b", "é", "a\n"])
def test_a_module_name_that_clients_could_not_use_is_refused(name: str) -> None:
    with pytest.raises(SchemaError, match="use lower-case letters"):
        Module(name)


def test_a_function_name_stands_once_in_a_module_whatever_its_kind() -> None:
    module = Module("m")
    module.reducer(reducer("act"))
    with pytest.raises(SchemaError, match="module 'm' has a reducer 'act' already"):
        module.reducer(reducer("act"))
    with pytest.raises(SchemaError, match="module 'm' has a reducer 'act' already"):
        module.procedure(name="act")(reducer("other"))


def test_a_migration_name_stands_once() -> None:
    module = Module("m")
    module.migration(reducer("split_names"))
    with pytest.raises(SchemaError, match="'split_names' already; names are for ever"):
        module.migration(reducer("split_names"))


def test_a_view_cannot_have_the_name_of_a_table() -> None:
    module = Module("m")
    module.table(Thing)

    @module.view(name="thing")
    def things(ctx: ViewContext) -> list[Thing]:
        return list(ctx.db[Thing])

    with pytest.raises(SchemaError, match="view 'thing' has the name of a table"):
        Database(module)


# --- inclusion


def test_an_included_module_brings_everything_also_what_it_declares_later() -> None:
    library, game = Module("library"), Module("game")
    library.table(Thing)
    game.include(library)
    game.table(Other)
    seen: list[str] = []

    @library.init
    def start_library(ctx: ReducerContext) -> None:
        seen.append("library")
        ctx.db[Thing].insert(Thing(id=1))

    @game.init
    def start_game(ctx: ReducerContext) -> None:
        seen.append("game")
        assert ctx.db[Thing].get(1) is not None

    library.reducer(reducer("late"))
    library.client_visibility_filter("SELECT * FROM thing")
    game.client_visibility_filter("SELECT * FROM other")
    resolved = game.resolve()
    assert resolved.name == "game"
    assert list(resolved.tables) == ["thing", "other"]
    assert resolved.visibility_filters == ["SELECT * FROM thing", "SELECT * FROM other"]
    with Database(game) as db:
        assert seen == ["library", "game"]
        assert db.call("late") == "late"
        assert db.read(Thing).count() == 1


def test_including_twice_is_once_also_over_two_ways() -> None:
    base, left, right, game = (Module(name) for name in ("base", "left", "right", "game"))
    base.table(Thing)
    base.init(reducer("start"))
    for module in (left, right):
        module.include(base)
        module.include(base)
        game.include(module)
    resolved = game.resolve()
    assert list(resolved.tables) == ["thing"]
    assert len(resolved.lifecycle["init"]) == 1


def test_modules_that_include_each_other_in_a_circle_are_refused() -> None:
    a, b, c = (Module(name) for name in "abc")
    a.include(b)
    b.include(c)
    c.include(a)
    with pytest.raises(SchemaError, match="in a circle: a -> b -> c -> a"):
        a.resolve()
    with pytest.raises(SchemaError, match="cannot include itself"):
        a.include(a)


def test_names_that_clash_over_modules_are_refused_naming_both() -> None:
    library, game = Module("library"), Module("game")
    game.include(library)
    library.table(Thing)
    game.table(name="thing")(Other)
    with pytest.raises(SchemaError, match="module 'game' and module 'library' both have a table 'thing'; rename one"):
        game.resolve()
    library, game = Module("library"), Module("game")
    game.include(library)
    library.reducer(reducer("act"))
    game.reducer(reducer("act"))
    with pytest.raises(SchemaError, match="both have a function 'act'"):
        game.resolve()


def test_one_row_class_cannot_be_two_tables_over_modules() -> None:
    library, game = Module("library"), Module("game")
    game.include(library)
    library.table(Thing)
    game.table(name="again")(Thing)
    with pytest.raises(SchemaError, match="Thing is the row of both table 'thing' and table 'again'"):
        game.resolve()


# --- scheduled tables


def test_a_scheduled_table_whose_reducer_is_not_there_is_refused_when_loaded() -> None:
    module = Module("m")
    module.table(scheduled="fire")(Timer)
    module.reducer(reducer("other"))
    with pytest.raises(SchemaError, match=r"'timer' fires 'fire', which is no reducer .* \(it has: other\)"):
        Database(module)


def test_a_scheduled_function_takes_the_row_alone() -> None:
    for wrong in ("none", "two", "other"):
        module = Module("m")
        module.table(scheduled="fire")(Timer)
        if wrong == "none":
            module.reducer(reducer("fire"))
        elif wrong == "two":

            @module.reducer(name="fire")
            def fire_two(ctx: ReducerContext, timer: Timer, a: u8) -> None: ...

        else:

            @module.reducer(name="fire")
            def fire_other(ctx: ReducerContext, timer: Thing) -> None: ...

        with pytest.raises(SchemaError, match=r"must take the row alone: def fire\(ctx, timer: Timer\)"):
            Database(module)


def test_the_reducer_may_be_declared_before_or_after_its_table_and_in_another_module() -> None:
    library, game = Module("library"), Module("game")
    game.include(library)

    @library.reducer
    def fire(ctx: ReducerContext, timer: Timer) -> None: ...

    game.table(scheduled="fire")(Timer)
    assert game.resolve().functions["fire"].private
