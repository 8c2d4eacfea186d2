"""The commands that start a server, and those that talk to one."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

from gamedb.cli import app
from gamedb.cli.dev import TABLES_CHANGED
from gamedb.cli.init import SCAFFOLD
from gamedb.cli.start import announce
from gamedb.server.background import in_thread
from gamedb.server.serve import Serving
from gamedb.server.site import Site, open_site
from tests.gamedb.server.http_game import game
from tests.gamedb.server.with_sockets import Connection

ROOT = Path(__file__).parent.parent.parent
GAME = "tests.gamedb.cli_game:module"
WAIT = 60


class Result(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, stdin: str | None = None) -> Result:
        environment = {"COLUMNS": "100", "NO_COLOR": "1", "FORCE_COLOR": None, "GAMEDB_TOKEN": None}
        result = CliRunner(env=environment).invoke(app, arguments, input=stdin)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return Result(result.exit_code, result.stdout, result.stderr)

    return run


class Running(NamedTuple):
    """A server in a thread."""

    site: Site
    serving: Serving

    @property
    def url(self) -> str:
        return self.serving.url


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    with open_site({"arena": game()}, tmp_path / "data", quiet=True) as site, in_thread(site.server) as serving:
        yield Running(site, serving)


class TestCall:
    def test_a_reducer_as_the_owner(self, run: Run, running: Running) -> None:
        done = run("call", "arena", "join", "ann", "50", "ANGRY", '{"x": 1, "y": 2}', "--server", running.url)
        assert done == Result(0, "", "")
        shown = run("sql", "arena", "SELECT name, hp, mood, at FROM player", "--server", running.url)
        assert re.search(r"ann +50 +ANGRY +\(x=1\.0, y=2\.0\)", shown.out)

    def test_a_procedure_prints_its_result(self, run: Run, running: Running) -> None:
        assert run("call", "arena", "price", "sword", "--server", running.url).out == "5\n"

    def test_arguments_as_json(self, run: Run, running: Running) -> None:
        assert run("call", "arena", "join", "--json", '{"name": "5", "hp": 7}', "--server", running.url).code == 0
        assert '"name": "5"' in run("sql", "arena", "SELECT name FROM player", "--json", "--server", running.url).out
        assert run("call", "arena", "join", "--json", "{", "--server", running.url).code == 2
        assert run("call", "arena", "join", "ann", "--json", "[]", "--server", running.url).code == 2

    def test_a_negative_number_is_an_argument(self, run: Run, running: Running) -> None:
        done = run("call", "arena", "join", "-5", "7", "CALM", '{"x": -1, "y": 2}', "--server", running.url)
        assert done == Result(0, "", "")
        assert '"name": "-5"' in run("sql", "arena", "SELECT name FROM player", "--json", "--server", running.url).out
        refused = run("call", "arena", "hurt", "-1", "1", "--server", running.url)
        assert (refused.code, "id" in refused.err, "-1" in refused.err) == (1, True, True)
        assert run("call", "arena", "join", "--nmae", "ann", "--server", running.url).code == 2

    def test_text_that_looks_like_a_number(self, run: Run, running: Running) -> None:
        assert run("call", "arena", "join", "007", "--server", running.url).code == 0
        assert "007" in run("sql", "arena", "SELECT name FROM player", "--server", running.url).out

    def test_a_refusal_is_told_with_exit_code_1(self, run: Run, running: Running) -> None:
        assert run("call", "arena", "hurt", "7", "1", "--server", running.url) == Result(1, "", "error: no player 7\n")
        wrong = run("call", "arena", "hurt", "ann", "1", "--server", running.url)
        assert (wrong.code, "invalid arguments for reducer hurt" in wrong.err) == (1, True)

    def test_the_owner_calls_what_is_private_and_a_stranger_does_not(self, run: Run, running: Running) -> None:
        assert run("call", "arena", "reset", "--server", running.url).code == 0
        refused = run("call", "arena", "reset", "--server", running.url, "--token", "none")
        assert (refused.code, "No such procedure" in refused.err) == (1, True)

    def test_no_server(self, run: Run) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        result = run("call", "arena", "join", "ann", "--server", f"http://127.0.0.1:{port}")
        assert result.code == 2
        assert "no server answers" in result.err
        assert "gamedb start MODULE:OBJECT" in result.err

    def test_no_such_database(self, run: Run, running: Running) -> None:
        result = run("call", "arean", "join", "ann", "--server", running.url)
        assert result.code == 2
        assert "Did you mean arena?" in result.err

    def test_a_damaged_token(self, run: Run, running: Running) -> None:
        result = run("call", "arena", "price", "--server", running.url, "--token", "x.y.z")
        assert result.code == 1
        assert "the token is damaged" in result.err

    def test_the_owner_token_is_not_sent_elsewhere(self, run: Run, running: Running) -> None:
        """Whoever is not this machine gets no token that nobody named."""
        from gamedb.cli.remote import Remote

        data = Path("data")
        assert (data / "owner.token").exists()
        assert Remote("http://127.0.0.1:1", "arena", None, data)._token is not None
        for server in ("http://play.example.com", "https://10.0.0.7:3000", "http://localhost.example.com"):
            assert Remote(server, "arena", None, data)._token is None

    def test_addresses_that_are_none(self, run: Run) -> None:
        assert run("call", "arena", "join", "--server", "localhost:3000").code == 2


class TestSql:
    def test_json_for_programs(self, run: Run, running: Running) -> None:
        run("call", "arena", "join", "ann", "--server", running.url)
        query = "SELECT name, mood, at FROM player"
        result = run("sql", "arena", query, "--json", "--server", running.url)
        assert json.loads(result.out) == [{"name": "ann", "mood": "CALM", "at": None}]

    def test_columns_of_one_name_are_told_apart_in_json(self, run: Run, running: Running) -> None:
        result = run("sql", "arena", "SELECT 1 AS a, 2 AS a_2, 3 AS a, 4 AS a", "--json", "--server", running.url)
        assert json.loads(result.out) == [{"a": 1, "a_2": 2, "a_3": 3, "a_4": 4}]

    def test_the_query_may_come_from_stdin(self, run: Run, running: Running) -> None:
        result = run("sql", "arena", "--server", running.url, stdin="SELECT count(*) AS n FROM player")
        assert "n" in result.out
        assert "1 row" in result.out

    def test_errors(self, run: Run, running: Running) -> None:
        result = run("sql", "arena", "SELECT * FROM playr", "--server", running.url)
        assert result == Result(1, "", "error: no such table: playr; did you mean player?\n")
        assert "call a reducer" in run("sql", "arena", "DELETE FROM player", "--server", running.url).err


class TestTerminals:
    def test_what_players_wrote_does_not_steer_the_terminal(self, run: Run, running: Running) -> None:
        evil = "eve\x1b]0;title\x07\x9b2J"
        assert run("call", "arena", "join", evil, "--server", running.url).code == 0
        shown = [
            run("logs", "arena", "--server", running.url).out,
            run("sql", "arena", "SELECT name FROM player", "--server", running.url).out,
            run("call", "arena", evil, "--server", running.url).err,
        ]
        for text in shown:
            assert not set(text) & set("\x1b\x07\x9b"), text
            assert "\\x1b]0;title\\x07\\x9b2J" in text.replace("\n", "")


class TestLogs:
    def test_the_last_lines(self, run: Run, running: Running) -> None:
        for name in ("ann", "ben", "eve"):
            run("call", "arena", "join", name, "--server", running.url)
        run("call", "arena", "bug", "--server", running.url)
        result = run("logs", "arena", "-n", "2", "--server", running.url)
        assert "eve joined" in result.out
        assert "ben joined" not in result.out
        assert "ZeroDivisionError" in result.out
        assert re.search(r"http_game\.py:\d+ in bug", result.out)
        lines = run("logs", "arena", "--json", "--server", running.url).out.splitlines()
        assert [json.loads(line)["level"] for line in lines] == ["Info", "Info", "Info", "Panic"]

    def test_strangers_are_told_what_they_need(self, run: Run, running: Running) -> None:
        result = run("logs", "arena", "--server", running.url, "--data-dir", "elsewhere")
        assert result.code == 1
        assert "--data-dir DIR" in result.err

    def test_following_ends_with_the_server(self, run: Run, running: Running) -> None:
        run("call", "arena", "join", "ann", "--server", running.url)
        logs = running.site.server.hosted["arena"].logs
        follower = logs.follow

        def follow() -> Any:
            threading.Thread(target=running.serving.stop).start()
            return follower()

        logs.follow = follow  # type: ignore[method-assign]
        assert "ann joined" in run("logs", "arena", "-f", "--server", running.url).out


class TestToken:
    def test_the_owner(self, run: Run, running: Running) -> None:
        shown = run("token", "show")
        assert running.site.owner.hex() in shown.out
        assert running.site.owner_token in shown.out
        assert json.loads(run("token", "show", "--json").out)["identity"] == running.site.owner.hex()

    def test_a_new_one_is_accepted_by_the_running_server(self, run: Run, running: Running) -> None:
        run("token", "rotate")
        issued = json.loads(run("token", "issue", "--subject", "matchmaker", "--days", "1", "--json").out)
        request = urllib.request.Request(
            f"{running.url}/v1/identity/{issued['identity']}/verify",
            headers={"Authorization": f"Bearer {issued['token']}"},
        )
        with urllib.request.urlopen(request) as answer:
            assert answer.status == 204
        again = json.loads(run("token", "issue", "--subject", "matchmaker", "--json").out)
        assert again["identity"] == issued["identity"]
        assert run("token", "show", issued["token"]).code == 0
        assert run("token", "issue", "--days", "99999999").code == 2  # no such token would be accepted

    def test_rotating_says_what_older_keys_do(self, run: Run, running: Running) -> None:
        result = run("token", "rotate")
        assert "0002.pem signs from now on" in result.out
        assert "0001.pem" in result.out
        assert run("token", "show").code == 0

    def test_before_the_first_start(self, run: Run) -> None:
        for command in ("show", "issue", "rotate"):
            result = run("token", command)
            assert (result.code, "gamedb start" in result.err) == (2, True)

    def test_a_token_that_is_none(self, run: Run, running: Running) -> None:
        assert run("token", "show", "abc").code == 1
        assert run("token", "issue", "--subject", "x" * 129).code == 2


@pytest.mark.parametrize("built", [True, False])
def test_a_start_tells_where_the_console_is_or_how_to_build_it(
    running: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], built: bool
) -> None:
    monkeypatch.setattr("gamedb.server.http.console.CONSOLE", tmp_path)
    if built:
        (tmp_path / "index.html").write_text("<title>Console</title>")
    announce(running.url, running.site, tmp_path / "data", None)
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("console")]
    expected = f"{running.url}/console/#token=" if built else 'not built: run "make console" in the clone of gamedb'
    assert line.removeprefix("console").strip().startswith(expected)


class TestRefusedStarts:
    """`gamedb start` says what is wrong before it serves; nothing is left behind by it."""

    @pytest.mark.parametrize(
        ("arguments", "text"),
        [
            ([], "gamedb start game:module"),
            (["--database", "arena"], "NAME=MODULE:OBJECT"),
            (["--database", f"Eu={GAME}"], "database name 'Eu'"),
            (["--database", f"../x={GAME}"], "database name '../x'"),
            ([GAME, "--database", f"arena={GAME}"], "two databases"),
            ([GAME, "--operator", "xyz"], "64 hex digits"),
            ([GAME, "--operator", "c2" * 32], "checksum"),
            ([GAME, "--issuer", "https://a.example"], "=my-game"),
            ([GAME, "--issuer", "http://a.example=x"], "https://"),
            ([GAME, "--listen", "3000"], "HOST:PORT"),
            ([GAME, "--static", "nowhere"], "not a directory"),
            ([GAME, "--static", "."], "lie in each other"),
            ([GAME, "--listen", "a" * 70 + ":3000"], "cannot listen on aaaa"),
            ([GAME, "--log-level", "loud"], "debug, info"),
            ([GAME, "--limit", "connection_max=5"], "did you mean connections_max?"),
            ([GAME, "--proxy", "front.local"], "use an address or a network"),
            ([GAME, "--memory", "--url", "postgresql://x/y"], "exclude each other"),
            (["no_such_game:module"], "no module"),
        ],
    )
    def test_what_is_wrong(self, run: Run, arguments: list[str], text: str) -> None:
        result = run("start", *([] if "--listen" in arguments else ["--listen", "127.0.0.1:0"]), *arguments)
        assert result.code == 2
        assert text in result.err
        assert "Traceback" not in result.err
        assert not Path("data/arena.db").exists()

    def test_keys_of_before_are_not_served_by_a_server_in_memory(self, run: Run) -> None:
        Path("data").mkdir()
        result = run("start", GAME, "--memory", "--static", ".")
        assert (result.code, "lie in each other" in result.err) == (2, True)

    def test_a_port_in_use(self, run: Run) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            result = run("start", GAME, "--listen", f"127.0.0.1:{port}")
        assert result.code == 2
        assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in result.err
        assert not Path("data").exists()

    def test_data_that_is_open_elsewhere(self, run: Run, running: Running) -> None:
        result = run("start", GAME, "--listen", "127.0.0.1:0")
        assert result.code == 2
        assert "another --data-dir" in result.err


class Process:
    """The command in a process of its own, with the lines that it prints."""

    def __init__(self, *arguments: str, cwd: Path) -> None:
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "COLUMNS": "100",
            "NO_COLOR": "1",
            "PYTHONUNBUFFERED": "1",
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gamedb", *arguments],
            cwd=cwd, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self.lines: list[str] = []
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._changed:
                self.lines.append(line.rstrip())
                self._changed.notify_all()

    def wait_for(self, text: str, after: int = 0) -> str:
        """The first line with this text behind so many lines."""
        with self._changed:
            found = self._changed.wait_for(lambda: [line for line in self.lines[after:] if text in line], WAIT)
        assert found, f"{text!r} did not come; there is: {self.lines}"
        return str(found[0])

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        code = self.process.wait(WAIT)
        self._reader.join(WAIT)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


def call(url: str, function: str, *arguments: Any) -> int:
    request = urllib.request.Request(
        f"{url}/call/{function}", json.dumps(arguments).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def url_in(line: str) -> str:
    found = re.search(r"http://\S+", line)
    assert found is not None
    return found[0]


def test_start_serves_until_it_is_told_to_stop_and_keeps_the_data(tmp_path: Path) -> None:
    """Twice: the data, the keys and the owner are those of the first time."""
    owners = set()
    for name, number in (("ann", signal.SIGTERM), ("ben", signal.SIGINT)):
        server = Process("start", "--database", f"eu={GAME}", "--listen", "127.0.0.1:0", cwd=tmp_path)
        url = url_in(server.wait_for("/v1/database/eu"))
        server.wait_for("Serving")
        assert call(url, "join", name) == 200
        owners.add((tmp_path / "data" / "owner.token").read_text())
        assert server.stop(number) == 0, server.lines
        assert "data/eu.db" in " ".join(server.lines)
        assert server.lines[-1] == "Stopped; everything is on disk."
    assert len(owners) == 1
    assert (tmp_path / "data" / "logs" / "eu.log").read_text().count("joined") == 2
    with contextlib.closing(sqlite3.connect(tmp_path / "data" / "eu.db")) as file:
        assert file.execute("SELECT name FROM player ORDER BY id").fetchall() == [("ann",), ("ben",)]


DEV_GAME = """
from gamedb import *
module = Module("arena")
print("what a game prints is no part of any result")

@module.table(public=True)
class Player(Row):
    id: PrimaryKey[AutoInc[u64]] = 0
    name: str

@module.reducer
def join(ctx: ReducerContext, name: str) -> None:
    ctx.db[Player].insert(Player(name=name))
    ctx.log.info("%s joined", name)
"""


def test_dev_serves_new_code_and_survives_bad_code(tmp_path: Path) -> None:
    """L29, L30: what a change would do is shown first, a refused one changes nothing, clients are told why they go."""
    game_file = tmp_path / "game.py"
    game_file.write_text(DEV_GAME)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}/v1/database/arena"
    dev = Process("dev", "game:module", "--listen", f"127.0.0.1:{port}", cwd=tmp_path)
    try:
        dev.wait_for("Serving")
        assert call(url, "join", "ann\x1b[2J") == 200
        assert call(url, "join", "ann") == 200

        game_file.write_text(DEV_GAME + "def (\n")
        dev.wait_for("the old code goes on")
        assert call(url, "join", "ben") == 200

        seen = len(dev.lines)
        game_file.write_text(
            DEV_GAME.replace("    name: str\n\n", "    title: str\n\n").replace("name=name", "title=name")
        )
        assert "ctx.rename_column('player', 'name', 'title')" in dev.wait_for("is gone", seen)
        dev.wait_for("the old code goes on", seen)
        assert call(url, "join", "eve") == 200

        seen = len(dev.lines)
        client = Connection(f"http://127.0.0.1:{port}")
        more = DEV_GAME.replace("    name: str\n", "    name: str\n    hp: u32 = 100\n")
        game_file.write_text(more + "\n@module.reducer\ndef more(ctx: ReducerContext) -> None: ...\n")
        dev.wait_for("add column 'hp'", seen)
        assert client.closed() == (1001, TABLES_CHANGED)
        client.close()
        dev.wait_for("Served again; the data is kept.", seen)
        assert call(url, "more") == 200
        answer = urllib.request.Request(f"{url}/sql", b"SELECT * FROM player", method="POST")
        with urllib.request.urlopen(answer) as found:
            assert [row[1] for row in json.load(found)[0]["rows"]] == ["ann\x1b[2J", "ann", "ben", "eve"]
    finally:
        code = dev.stop()
    assert code == 0, dev.lines
    assert sum("owner token" in line for line in dev.lines) == 1, "where everything is, is told once"
    assert [line for line in dev.lines if "Stopped" in line] == ["dev: Stopped; everything is on disk."]
    assert "ann\\x1b[2J joined" in dev.wait_for("[2J joined")
    with socket.create_server(("127.0.0.1", port)):
        pass  # the process that served has gone, too


class TestInit:
    def test_what_it_makes_runs(self, run: Run, tmp_path: Path) -> None:
        result = run("init", "star-arena")
        assert result.code == 0
        made = tmp_path / "star-arena"
        assert {str(p.relative_to(made)) for p in made.rglob("*") if p.is_file()} == {
            "game.py", "public/index.html", "tests/test_game.py", "pytest.ini", "README.md", ".gitignore",
        }  # fmt: skip
        assert "gamedb dev game:module --static public" in result.out
        assert "pip install pytest && pytest" in result.out
        for file in made.rglob("*.*"):
            assert "my-game" not in file.read_text()
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        tests = subprocess.run(
            ["pytest", "-q", "-p", "no:cacheprovider"],  # as people type it: the current directory is not on sys.path
            cwd=made, env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert tests.returncode == 0, tests.stdout
        server = Process("start", "game:module", "--listen", "127.0.0.1:0", "--static", "public", cwd=made)
        url = url_in(server.wait_for("/v1/database/star-arena"))
        page = url_in(server.wait_for("page"))
        assert call(url, "join", "ann") == 200
        with urllib.request.urlopen(page) as answer:
            assert "<title>star-arena" in answer.read().decode()
        assert server.stop() == 0

    def test_the_page_speaks_to_the_game_that_is_there(self) -> None:
        page = (SCAFFOLD / "public" / "index.html").read_text()
        module = (SCAFFOLD / "game.py").read_text()
        for reducer in re.findall(r'call\("(\w+)"', page):
            assert f"def {reducer}(" in module
        for constant in ("WIDTH = 16", "HEIGHT = 10"):
            assert constant in page
        assert "WIDTH, HEIGHT = 16, 10" in module

    @pytest.mark.parametrize("name", ["Arena", "2d", "a_b", "../x", "", "-a", "a/b"])
    def test_names_that_cannot_be(self, run: Run, name: str) -> None:
        result = run("init", "--", name)
        assert result.code == 2
        assert "cannot be called" in result.err

    def test_what_is_there_is_left_alone(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / "arena").mkdir()
        (tmp_path / "arena" / "mine.txt").write_text("x")
        assert run("init", "arena").code == 2
        assert [p.name for p in (tmp_path / "arena").iterdir()] == ["mine.txt"]


def test_what_was_in_memory_is_not_said_to_be_on_disk(tmp_path: Path) -> None:
    server = Process("start", GAME, "--memory", "--listen", "127.0.0.1:0", cwd=tmp_path)
    server.wait_for("Serving")
    assert server.stop() == 0
    assert server.lines[-1] == "Stopped."


def test_every_command_explains_itself(run: Run) -> None:
    commands = run("--help").out
    for command in ("init", "start", "dev", "call", "sql", "logs", "token", "describe", "check", "generate"):
        assert re.search(rf"\b{command}\b", commands)
        shown = run(command, "--help").out
        assert "gamedb" in shown
        assert command == "token" or "Examples" in shown
