"""The command line: what people and programs read, and what they are told when something is wrong."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

from gamedb import Database
from gamedb.cli import app

ROOT = Path(__file__).parent.parent.parent

ARENA = '''
import enum
from gamedb import *

module = Module("arena")


class Kind(enum.Enum):
    SWORD = 1
    BOW = 2


class Point(Struct):
    x: f32
    y: f32


@module.table(public=True, indexes=[("kind", "zone")])
class Item(Row):
    """A thing that lies about."""
    id: PrimaryKey[AutoInc[u64]] = 0
    name: Unique[str]
    kind: Kind = Kind.SWORD
    zone: Index[u32] = 1
    at: Point | None = None


@module.table(event=True)
class Bang(Row):
    loud: u8


@module.table(scheduled="decay")
class DecayTimer(Row):
    scheduled_id: PrimaryKey[AutoInc[u64]] = 0
    scheduled_at: ScheduleAt


@module.reducer
def drop(ctx: ReducerContext, name: str, kind: Kind = Kind.BOW, *, zone: u32 = 1) -> None:
    """Put a thing down.

    More words that do not belong into a table.
    """


@module.reducer(private=True)
def sweep(ctx: ReducerContext) -> None: ...


@module.reducer
def decay(ctx: ReducerContext, timer: DecayTimer) -> None: ...


@module.procedure
async def appraise(ctx: ProcedureContext, item: str) -> float | None: ...


@module.view
def swords(ctx: ViewContext) -> list[Item]:
    return ctx.db[Item].where(kind=Kind.SWORD)


@module.client_connected
def joined(ctx: ReducerContext) -> None: ...


@module.migration
def grams_to_kilos(ctx): ...


module.client_visibility_filter("SELECT * FROM item WHERE zone = 1")
'''


class Result(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Runs the command in a directory of its own, without a terminal; forgets what it imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def forget() -> None:
        importlib.invalidate_caches()
        for name, module in list(sys.modules.items()):
            places = [getattr(module, "__file__", None), *getattr(module, "__path__", [])]
            if any(str(place).startswith(str(tmp_path)) for place in places):
                del sys.modules[name]

    def run(*arguments: str, columns: int = 80) -> Result:
        forget()
        environment = {"COLUMNS": str(columns), "NO_COLOR": "1", "FORCE_COLOR": None}
        result = CliRunner(env=environment).invoke(app, arguments)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Result(result.exit_code, result.stdout, result.stderr)

    yield run
    forget()


def write(name: str, text: str) -> None:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


# --- the command itself


def test_without_arguments_it_shows_its_help(run: Run) -> None:
    shown = run().out
    assert "Usage: gamedb" in shown
    assert "describe" in shown
    assert "check" in shown


@pytest.mark.parametrize("command", ["describe", "check"])
def test_help_teaches_with_an_example(run: Run, command: str) -> None:
    result = run(command, "--help")
    assert result.code == 0
    assert f"gamedb {command} game:module" in result.out


def test_version_names_gamedb_python_and_sqlite(run: Run) -> None:
    assert re.match(r"gamedb \S.*, Python 3\.\d+\.\d+, SQLite 3\.\d+", run("--version").out)


def test_the_entry_point_exists() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    module, _, name = scripts["gamedb"].partition(":")
    assert callable(getattr(importlib.import_module(module), name))


def test_python_m_gamedb_is_the_same() -> None:
    command = [sys.executable, "-m", "gamedb", "describe", "examples.quickstart:module", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["module"] == "quickstart"
    assert done.stderr == ""


def test_describing_does_not_import_the_storage_room() -> None:
    code = "import sys, gamedb.cli; sys.exit('sqlalchemy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


# --- describe


def test_describe_shows_everything_that_is_declared(run: Run) -> None:
    write("arena.py", ARENA)
    result = run("describe", "arena:module")
    assert result.code == 0
    lines = [" ".join(line.split()) for line in result.out.splitlines()]
    for line in (
        "item public",
        "A thing that lies about.",
        "id u64 primary key, auto-increment",
        "name str unique",
        "kind Kind Kind.SWORD",
        "zone u32 1 index",
        "at Point | None None",
        "index on (kind, zone)",
        "bang private, event (rows live for one transaction)",
        "decay_timer private, fires decay at scheduled_at",
        "Kind SWORD | BOW",
        "Point x: f32, y: f32",
        "sweep() private",
        "decay(timer: DecayTimer) fired by decay_timer",
        "appraise(item: str) -> f64 | None async",
        "swords() -> list[Item]",
        "client_connected: joined",
        "grams_to_kilos",
        "SELECT * FROM item WHERE zone = 1",
    ):
        assert line in lines
    assert "Put a thing down." in result.out
    assert "More words" not in result.out


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_describe_fits_the_width(run: Run, columns: int) -> None:
    write("arena.py", ARENA)
    lines = run("describe", "arena:module", columns=columns).out.splitlines()
    assert max(map(len, lines)) <= columns
    assert not any(line.endswith(" ") for line in lines)


def test_describe_breaks_long_signatures_between_parameters(run: Run) -> None:
    write("arena.py", ARENA)
    lines = [line.strip() for line in run("describe", "arena:module").out.splitlines()]
    start = lines.index(next(line for line in lines if line.startswith("drop(")))
    assert lines[start + 1 : start + 5] == ["name: str,", "kind: Kind = Kind.BOW,", "zone: u32 = 1,", ")"]


def test_describe_json_is_complete(run: Run) -> None:
    write("arena.py", ARENA)
    plain = json.loads(run("describe", "arena:module", "--json").out)
    item, bang, timer = plain["tables"]
    assert item == {
        "name": "item",
        "row": "Item",
        "public": True,
        "event": False,
        "scheduled": None,
        "primary_key": "id",
        "indexes": [["zone"], ["kind", "zone"]],
        "columns": [
            column("id", "u64", "u64", default=0, primary_key=True, unique=True, auto_increment=True),
            column("name", "str", "str", unique=True),
            column("kind", "Kind", {"enum": ["SWORD", "BOW"]}, default="SWORD"),
            column("zone", "u32", "u32", default=1),
            column("at", "Point | None", {"option": {"product": [["x", "f32"], ["y", "f32"]]}}, default=None),
        ],
    }
    assert bang["event"]
    assert timer["scheduled"] == "decay"
    assert [(r["name"], r["private"]) for r in plain["reducers"]] == [("drop", False), ("sweep", True), ("decay", True)]
    assert [p["name"] for p in plain["reducers"][0]["parameters"]] == ["name", "kind", "zone"]
    assert plain["procedures"][0]["returns"] == {"type": "f64 | None", "definition": {"option": "f64"}}
    assert plain["views"] == [{"name": "swords", "parameters": [], "row": "Item", "many": True, "public": True}]
    assert plain["lifecycle"] == {"client_connected": ["joined"]}
    assert plain["migrations"] == ["grams_to_kilos"]
    assert plain["visibility_filters"] == ["SELECT * FROM item WHERE zone = 1"]


def column(name: str, kind: str, definition: Any, **facts: Any) -> dict[str, Any]:
    common = {"primary_key": False, "unique": False, "auto_increment": False}
    return {"name": name, "type": kind, "definition": definition, **common, **facts}


def test_describe_code_prints_python_that_compiles(run: Run) -> None:
    write("arena.py", ARENA)
    source = run("describe", "arena:module", "--code").out
    compile(source, "generated", "exec")
    assert source.count("def insert(row):") == 3
    assert "# table item, for the rows of Item" in source


def test_describe_calls_no_function_of_the_module(run: Run) -> None:
    write("loud.py", ARENA + "\n@module.init\ndef init(ctx: ReducerContext) -> None: raise SystemExit('called')\n")
    assert run("describe", "loud:module").code == 0


# --- finding the module


def test_the_object_may_be_left_out_when_there_is_one(run: Run) -> None:
    write("arena.py", ARENA)
    assert run("describe", "arena").out.startswith("module arena")


FILES = {
    "arena.py": ARENA,
    "two.py": "from gamedb import Module\nred = Module('red')\nblue = Module('blue')\ndef f(): ...\n",
    "games/village.py": ARENA,
    "empty.py": "",
    "typo.py": "def f(:\n    pass\n",
    "boom.py": "def gold():\n    return {}['gold']\n\ngold()\n",
    "needs.py": "import no_such_library\n",
    "leaves.py": "import sys\nsys.exit(3)\n",
    "wrong.py": "from gamedb import *\nm = Module('x')\n\n@m.table\nclass P(Row):\n    bag: dict\n",
    "loose.py": (
        "from gamedb import *\nm = Module('x')\n@m.table(scheduled='gone')\nclass T(Row):\n"
        "    scheduled_id: PrimaryKey[AutoInc[u64]] = 0\n    at: ScheduleAt\n"
    ),
}


@pytest.mark.parametrize(
    ("target", "texts"),
    [
        ("arean:module", ["no module 'arean'", "Did you mean arena:module?"]),
        ("games.vilage:module", ["no module 'games.vilage' in package 'games'", "Did you mean games.village:module?"]),
        ("village:module", ["no module 'village'", "There is one in games/: cd games"]),
        ("zzzzzz", ["no module 'zzzzzz'", "It has: ", "two"]),
        ("arena.module", ["'arena' is a file, not a package", "arena:module"]),
        ("arena.py:module", ["is a file name", "arena:module"]),
        ("games/village.py", ["is a file name", "games.village:module"]),
        ("no such:thing", ["not the name of a Python module", "gamedb describe game:module"]),
        ("arena:game", ["has no 'game'", "arena:module"]),
        ("two", ["several modules", "two:red, two:blue"]),
        ("two:f", ["two:f is of type function, not a gamedb.Module", "two:red"]),
        ("empty:module", ["has no 'module'", 'module = Module("arena")']),
        ("empty", ["no gamedb.Module in it"]),
        ("typo:module", ["typo.py:1", "def f(:", "SyntaxError"]),
        ("boom:module", ["boom.py:2", "return {}['gold']", "KeyError: 'gold'"]),
        ("needs:module", ["needs.py:1", "No module named 'no_such_library'", "installed in this environment"]),
        ("leaves:module", ["leaves.py:2", "SystemExit: 3"]),
        ("wrong:m", ["P.bag: dict is not a column type", "wrong.py:4"]),
        ("loose:m", ["scheduled table 't' fires 'gone', which is no reducer"]),
    ],
)
def test_what_is_wrong_is_said_without_a_traceback(run: Run, target: str, texts: list[str]) -> None:
    for name, text in FILES.items():
        write(name, text)
    result = run("describe", target)
    assert result.code == 2
    assert result.out == ""
    assert result.err.startswith("error: ")
    for text in texts:
        assert text in result.err
    assert "Traceback" not in result.err
    assert "importlib" not in result.err


# --- check


BEFORE = """
from gamedb import *
module = Module("arena")
@module.table(public=True)
class Player(Row):
    id: PrimaryKey[AutoInc[u64]] = 0
    name: str
    gold: u32 = 0
"""


@pytest.fixture
def stored(run: Run) -> Run:
    """A data directory with the database of BEFORE, in which two players are called ann."""
    with open_before() as db, db.transaction() as ctx:
        player = next(iter(db.module.tables.values())).row
        for gold in (1, 2):
            ctx.db[player].insert(player(name="ann", gold=gold))
    return run


def open_before() -> Database:
    namespace: dict[str, Any] = {"__name__": "before"}
    exec(compile(BEFORE, "before", "exec", dont_inherit=True), namespace)
    Path("data").mkdir()
    return Database(namespace["module"], "data/arena.db")


def bytes_of(path: str) -> bytes:
    return Path(path).read_bytes()


def test_check_of_a_new_database(run: Run) -> None:
    write("game.py", BEFORE)
    result = run("check", "game:module", "--data-dir", "nowhere")
    assert result.code == 0
    assert "nowhere/arena.db does not exist yet; opening would make it:" in result.out
    assert "create table 'player'" in result.out
    assert "gamedb_" not in result.out
    assert not Path("nowhere").exists()


def test_check_with_nothing_to_do(stored: Run) -> None:
    write("game.py", BEFORE)
    result = stored("check", "game:module")
    assert (result.code, result.out) == (0, "data/arena.db fits module 'arena'; nothing to do.\n")


def test_check_lists_steps_and_whether_clients_must_reload(stored: Run) -> None:
    write("game.py", BEFORE.replace("name: str", "name: Index[str]") + "    zone: u32 = 7\n")
    before = bytes_of("data/arena.db")
    result = stored("check", "game:module")
    assert result.code == 0
    column, index = result.out.splitlines()[1:3]
    assert "add column 'zone' to table 'player', 7 in stored rows" in column
    assert column.endswith("clients must reload")
    assert "index (name)" in index
    assert "reload" not in index
    assert bytes_of("data/arena.db") == before


def test_check_lists_every_refusal_and_leaves_with_one(stored: Run) -> None:
    write("game.py", BEFORE.replace("name: str", "name: Unique[str]").replace("gold", "coins"))
    before = bytes_of("data/arena.db")
    result = stored("check", "game:module")
    assert result.code == 1
    text = " ".join(result.out.split())
    assert "opening would be refused, for 2 reasons:" in text
    assert "ctx.rename_column('player', 'gold', 'coins') in a @module.migration" in text
    assert "column 'name' became unique, but 2 rows hold 'ann'" in text
    assert "Nothing was changed." in text
    assert bytes_of("data/arena.db") == before


MIGRATION = """
@module.migration
def gold_became_coins(ctx: MigrationContext) -> None:
    ctx.rename_column("player", "gold", "coins")
"""


def test_check_runs_pending_migrations_on_a_copy(stored: Run) -> None:
    write("game.py", BEFORE.replace("gold", "coins") + "from gamedb import MigrationContext\n" + MIGRATION)
    before = bytes_of("data/arena.db")
    result = stored("check", "game:module")
    assert result.code == 0
    assert "run migration 'gold_became_coins'" in result.out
    assert bytes_of("data/arena.db") == before


def test_check_finds_a_migration_that_fails(stored: Run) -> None:
    write("game.py", BEFORE + "\n@module.migration\ndef odd(ctx):\n    ctx.drop_table('pony')\n")
    result = stored("check", "game:module")
    assert result.code == 1
    assert "migration 'odd' failed" in result.out


def test_check_json(stored: Run) -> None:
    write("game.py", BEFORE + "    zone: u32 = 7\n")
    plain = json.loads(stored("check", "game:module", "--json").out)
    assert plain["opens"]
    assert plain["exists"]
    assert plain["clients_must_reload"]
    assert [(s["kind"], s["table"]) for s in plain["steps"]] == [("add column", "player")]
    assert plain["refusals"] == []
    write("game.py", BEFORE.replace("gold", "coins"))
    result = stored("check", "game:module", "--json")
    assert result.code == 1
    assert not json.loads(result.out)["opens"]


def test_check_refuses_a_file_that_is_not_ours(run: Run) -> None:
    write("game.py", BEFORE)
    write("data/arena.db", "a diary")
    result = run("check", "game:module")
    assert result.code == 1
    assert "is not a database" in result.out
    assert Path("data/arena.db").read_text() == "a diary"


def test_check_while_the_database_is_open(run: Run) -> None:
    write("game.py", BEFORE)
    with open_before() as db:
        db.flush()
        assert run("check", "game:module").code == 0


def test_a_password_is_not_shown(run: Run) -> None:
    write("game.py", BEFORE)
    result = run("check", "game:module", "--url", "postgresql://me:secret@127.0.0.1:1/game")
    assert result.code == 1
    assert "me:***@127.0.0.1" in result.out
    assert "secret" not in result.out + result.err


# --- notes of libraries


HOOK = """
@module.on_check
def look(report: CheckReport) -> None:
    golds = sorted(row["gold"] for row in report.rows("player"))
    report.add(f"{len(golds)} players own {golds}")
"""


def test_libraries_add_notes_from_the_stored_rows(stored: Run) -> None:
    write("game.py", BEFORE + HOOK)
    result = stored("check", "game:module")
    assert result.code == 0
    assert "  - 2 players own [1, 2]" in result.out.splitlines()
    assert "fits module 'arena'; read the notes." in result.out
    assert json.loads(stored("check", "game:module", "--json").out)["notes"] == ["2 players own [1, 2]"]


def test_notes_come_with_refusals_as_well(stored: Run) -> None:
    write("game.py", BEFORE.replace("gold", "coins") + HOOK)
    result = stored("check", "game:module")
    assert result.code == 1
    assert "2 players own [1, 2]" in result.out


def test_a_library_that_fails_counts_as_refused(stored: Run) -> None:
    write("game.py", BEFORE + "\n@module.on_check\ndef look(report): report.rows('pony').send(None)\n")
    result = stored("check", "game:module")
    assert result.code == 1
    assert "check 'look' failed" in result.out


def test_libraries_are_not_asked_about_a_database_that_does_not_exist(run: Run) -> None:
    write("game.py", BEFORE + HOOK)
    assert "Notes" not in run("check", "game:module").out


def test_hooks_of_included_modules_are_asked(stored: Run) -> None:
    library = "\nlib = Module('lib')\n@lib.on_check\ndef look(report): report.add('from the library')\n"
    write("game.py", BEFORE + library + "module.include(lib)\n")
    assert "from the library" in stored("check", "game:module").out
