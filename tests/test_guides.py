"""What the guides tell somebody to type works: the first programs, commands, SQL, alarms, links, examples."""

from __future__ import annotations

import os
import re
import shlex
import sqlite3
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
import typer.main
from typer.core import TyperGroup

from examples import buff
from gamedb.cli import app
from gamedb.server.background import in_thread
from gamedb.server.site import open_site
from tests.test_docs import BLOCK, PAGES, ROOT, ids
from workflow_module import Workflows

OTHER_PAGES = [ROOT / "examples" / "README.md", ROOT / "client_ts" / "README.md", ROOT / "CHANGELOG.md"]
"""Whose links lead somewhere, too."""


def file_of(page: Path, name: str) -> str:
    """The text of the file that a page shows under this name."""
    [text] = [found["text"] for found in BLOCK.finditer(page.read_text()) if found["file"] == name]
    return text


@pytest.fixture
def environment() -> dict[str, str]:
    """Of programs that somebody runs with gamedb installed."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100", "NO_COLOR": "1"}


def test_the_first_tables_live_on_and_their_commands_work(tmp_path: Path, environment: dict[str, str]) -> None:
    page = ROOT / "docs" / "tables-and-reducers.md"
    (tmp_path / "arena.py").write_text(file_of(page, "arena.py"))

    def run(*arguments: str) -> str:
        command = [sys.executable, *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert run("arena.py") == "Player(id=1, name='ann', hp=70)\n"
    assert run("arena.py") in ("Player(id=1, name='ann', hp=40)\n", "Player(id=1, name='ann', hp=41)\n")
    commands = re.findall(r"`gamedb ([^`]* arena:module[^`]*)`", page.read_text())
    assert len(commands) == 2
    for command in commands:
        assert "arena" in run("-m", "gamedb", *shlex.split(command))


def test_the_first_buff_survives_kill_9(tmp_path: Path, environment: dict[str, str]) -> None:
    program = file_of(ROOT / "README.md", "buff.py")
    assert "seconds=60" in program
    (tmp_path / "buff.py").write_text(program.replace("seconds=60", "seconds=8"))
    command = [sys.executable, "buff.py"]

    def buffs() -> list[tuple[int, str]]:
        with closing(sqlite3.connect(tmp_path / "arena.db")) as stored:
            return stored.execute("SELECT id, created_at FROM workflow").fetchall()

    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        for _ in range(2):  # the second line comes a second later: the buff is on disk
            assert re.fullmatch(r"ann is strong: \d s left\n", first.stdout.readline())
        first.kill()
    before = buffs()
    second = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert second.stdout.splitlines()[-1] == "BuffResult(final_stacks=1)"
    assert buffs() == before
    assert len(before) == 1
    third = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert third.stdout == "BuffResult(final_stacks=1)\n"


def test_the_first_test_passes(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "buff.py").write_text(file_of(ROOT / "README.md", "buff.py"))
    (tmp_path / "test_buff.py").write_text(file_of(ROOT / "docs" / "testing.md", "test_buff.py"))
    command = [sys.executable, "-m", "pytest", "-q"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


def test_the_first_buff_is_served_as_the_readme_says(tmp_path: Path, environment: dict[str, str]) -> None:
    readme = (ROOT / "README.md").read_text()
    (tmp_path / "buff.py").write_text(file_of(ROOT / "README.md", "buff.py"))
    [start] = re.findall(r"^gamedb (start buff:module)$", readme, re.MULTILINE)
    [dispel] = re.findall(r"`gamedb (call arena dispel \d+)`", readme)
    cast, stack, ask = re.findall(r"^gamedb ((?:call|sql) arena .*)$", readme, re.MULTILINE)
    gamedb = [sys.executable, "-m", "gamedb"]

    @contextmanager
    def served() -> Iterator[str]:
        command = [*gamedb, *shlex.split(start), "--listen", "127.0.0.1:0"]
        with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            try:
                yield re.search(r"http://[\d.:]+", server.stdout.readline())[0]  # type: ignore[index]
            finally:
                server.kill()

    def run(command: str, url: str) -> str:
        line = [*gamedb, *shlex.split(command), "--server", url]
        done = subprocess.run(line, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    with served() as url:
        assert run(cast, url) == run(stack, url) == ""
        shown = run(ask, url)
    assert re.search(r"7\s+Suspended\s+select\(EXPIRE, Dispel, Stack\)\s+3\n", shown)
    with served() as url:
        assert run(ask, url).splitlines()[:3] == shown.splitlines()[:3]
        assert run(dispel, url) == ""
        assert re.search(r"7\s+Completed\s", run(ask, url))


COMMAND = re.compile(r"\bgamedb (?=[a-z])((?:[^`'\n\\|&)]|\\\n)+)")
LANGUAGES = ("sh", "ini", "dockerfile")


def commands(page: Path) -> list[list[str]]:
    """The commands `gamedb ...` of a page's blocks and files, as words, without what a shell makes of `$(...)`."""
    found = []
    for block in BLOCK.finditer(page.read_text()):
        if block["language"] not in LANGUAGES:
            continue
        text = re.sub(r"\s#\s.*", "", block["text"]).replace('", "', " ")
        found += [match.partition('"')[0].split() for match in COMMAND.findall(text)]
    return found


@pytest.mark.parametrize("page", [p for p in [*PAGES, *OTHER_PAGES] if commands(p)], ids=ids)
def test_commands_have_the_options_that_pages_give_them(page: Path) -> None:
    known = typer.main.get_command(app)
    assert isinstance(known, TyperGroup)
    for words in commands(page):
        command = known.commands.get(words[0])
        if isinstance(command, TyperGroup):
            command = command.commands.get(words[1])
        assert command is not None, f"{page.name}: gamedb {' '.join(words)}"
        options = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
        given = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
        assert given <= options | {"--help"}, f"{page.name}: gamedb {' '.join(words)}"


def test_operators_ask_for_what_there_is(tmp_path: Path) -> None:
    """The SQL of the guides runs on a database with workflows, and alarms are about metrics that there are."""
    page = ROOT / "docs" / "operating.md"
    asked = [
        sql
        for text in (page.read_text(), (ROOT / "README.md").read_text())
        for sql in re.findall(r'gamedb sql arena (?:--json )?"(SELECT[^"]*)"', text)
    ]
    assert len(asked) >= 9
    with open_site({"arena": buff.module}, tmp_path, quiet=True) as site, in_thread(site.server) as serving:
        db = site.server.hosted["arena"].db
        Workflows(db).start(buff.buff, buff.BuffInit(bearer=1, duration=timedelta(1)))  # is parked: nobody bears it
        for sql in asked:
            assert db.sql(sql).columns
        request = urllib.request.Request(
            f"{serving.url}/metrics", headers={"Authorization": f"Bearer {site.owner_token}"}
        )
        with urllib.request.urlopen(request) as answer:
            metrics = set(re.findall(r"^([a-z_]+)[ {]", answer.read().decode(), re.MULTILINE))
    used = re.findall(r"\b(?:gamedb|process)_\w+", file_of(page, "alerts.yml"))
    assert len(used) > 7
    assert set(used) <= metrics


def anchors(page: Path) -> set[str]:
    """What its headings are called behind `#`, as on GitHub."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        same = sum(known == name or re.fullmatch(rf"{re.escape(name)}-\d+", known) is not None for known in found)
        found.add(f"{name}-{same}" if same else name)
    return found


@pytest.mark.parametrize("page", [*PAGES, *OTHER_PAGES], ids=ids)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith(("http://", "https://")):
            continue
        name, _, anchor = target.partition("#")
        place = page.parent / name if name else page
        assert place.exists(), f"{page.name} links to {target}"
        if anchor:
            assert anchor in anchors(place), f"{page.name} links to {target}; {place.name} has {sorted(anchors(place))}"


def test_the_index_of_examples_has_each_of_them_with_what_to_read() -> None:
    index = (ROOT / "examples" / "README.md").read_text()
    rows = re.findall(r"^\| \[(\w+)\]\(\1\.py\) \| .* \| (.*) \|$", index, re.MULTILINE)
    shared = {"__init__", "stage", "world", "post"}
    assert sorted(name for name, _ in rows) == sorted({p.stem for p in ROOT.glob("examples/*.py")} - shared)
    for name, read in rows:
        source = (ROOT / "examples" / f"{name}.py").read_text()
        words = re.findall(r"`([^`]+)`", read)
        assert words
        for word in words:
            assert re.search(rf"\b{re.escape(word)}\b", source), f"{name}: {word}"
        assert name == "quickstart" or (ROOT / "tests" / "examples" / f"test_{name}.py").exists()


def test_every_page_can_be_reached_from_the_readme() -> None:
    seen: set[Path] = set()
    left = [ROOT / "README.md"]
    while left:
        page = left.pop().resolve()
        if page in seen:
            continue
        seen.add(page)
        left += [page.parent / target for target in re.findall(r"\]\(([^)#\s]+\.md)(?:#[^)]*)?\)", page.read_text())]
    assert {page.resolve() for page in PAGES} <= seen
