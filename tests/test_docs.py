"""The documentation is true: its Python runs, its printed lines are what is printed, its links lead somewhere.

Python blocks of one file share their names, in order, and run as the main program. The files that they make lie in one
directory for all pages, as they do for a reader. A line `print(...)  # text` must print that text (up to ` ...` at
its end). A console block with `$ gamedb ...` must show what the command shows when it runs in the repository (up to a
line `...`). A block after the line `<!-- not run -->` is left alone, and so is one after `<!-- file: NAME -->`:
tests/test_guides.py looks at those.

Docstrings are documentation, too: whatever is public has one, and what they show is so. Their Python finds the public
names of the packages without importing them.
"""

from __future__ import annotations

import doctest
import importlib
import linecache
import re
import shlex
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import griffe
import pytest
from typer.testing import CliRunner

from docs.site import public
from gamedb import unclosed
from gamedb.cli import app

ROOT = Path(__file__).parent.parent
REFERENCE = sorted((ROOT / "docs" / "reference").glob("*.md"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *REFERENCE]
BLOCK = re.compile(
    r"^(?P<mark><!-- (?:not run|file: (?P<file>\S+)) -->\n)?```(?P<language>\w+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


class Block(NamedTuple):
    line: int
    text: str


def blocks(text: str, language: str) -> list[Block]:
    return [
        Block(text.count("\n", 0, found.start("text")), found["text"])
        for found in BLOCK.finditer(text)
        if found["language"] == language and not found["mark"]
    ]


def ids(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory in which somebody tries one page after the other."""
    return tmp_path_factory.mktemp("desk")


@pytest.fixture
def closing() -> Iterator[None]:
    """A page may leave its databases open, as an interpreter at its prompt does."""
    yield
    for left in list(unclosed.databases):
        left.close()


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p.read_text(), "python")], ids=ids)
@pytest.mark.usefixtures("closing")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_python_runs_and_prints_what_it_says(
    page: Path, desk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_python_is_true(str(page), page.read_text(), {}, desk, monkeypatch, capsys)


def assert_python_is_true(
    page: str,
    text: str,
    names: dict[str, object],
    desk: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Run the Python blocks of a text at the desk, with these names; each print must give what stands behind it."""
    monkeypatch.chdir(desk)
    module = ModuleType("__main__")
    vars(module).update(names)
    monkeypatch.setitem(sys.modules, "__main__", module)
    promised = []
    lines: list[str] = []
    for block in blocks(text, "python"):
        padded = "\n" * block.line + block.text  # so that a traceback shows the line of the page
        lines += ["\n"] * (block.line - len(lines)) + block.text.splitlines(keepends=True)
        # where workflows find their source
        monkeypatch.setitem(linecache.cache, page, (0, None, lines, page))
        exec(compile(padded, page, "exec", dont_inherit=True), vars(module))
        promised += re.findall(r"^ *print\(.*\)  # (.*)$", block.text, re.MULTILINE)
    printed = capsys.readouterr().out.splitlines()
    shown = [
        f"{line[: len(text) - 4]} ..." if text.endswith(" ...") else line
        for text, line in zip(promised, printed, strict=False)
    ]
    assert shown == promised


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p.read_text(), "console")], ids=ids)
def test_commands_show_what_the_page_shows(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for block in blocks(page.read_text(), "console"):
        for command, shown in re.findall(r"^\$ gamedb (.*)\n((?:(?!\$).*\n)*)", block.text, re.MULTILINE):
            result = CliRunner(env={"COLUMNS": "80", "NO_COLOR": "1", "FORCE_COLOR": None}).invoke(
                app, shlex.split(command)
            )
            wanted, cut, _ = shown.rstrip().partition("\n...")
            output = result.output.rstrip()
            assert (output[: len(wanted)] if cut else output) == wanted, f"{page.name}: gamedb {command}"


def test_every_page_is_in_the_navigation() -> None:
    front = (ROOT / "docs" / "README.md").read_text()
    listed = re.findall(r"^(?:\d+\.|-) \[[^\]]*\]\(([^)#]+)\)", front, re.MULTILINE)
    pages = [page.relative_to(ROOT / "docs").as_posix() for page in PAGES[1:]]
    assert [page for page in pages if page not in listed] == ["README.md"], "name the others in docs/README.md"


def test_whatever_is_public_has_a_docstring() -> None:
    assert public.undocumented() == []


def test_types_in_public_signatures_are_public() -> None:
    assert public.hidden_types() == []


def test_whatever_is_public_is_in_the_reference() -> None:
    shown = [
        f"{package}.{name}"
        for page in REFERENCE
        for package, body in re.findall(r"^```{public} (\S+)\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
        for name in body.split()
    ]
    assert sorted(shown) == sorted(f"{package}.{name}" for package in public.MODULES for name in public.names(package))


@pytest.mark.parametrize("package", public.MODULES)
def test_public_names_are_there_when_the_program_runs(package: str) -> None:
    module = importlib.import_module(package)
    assert [name for name in public.names(package) if not hasattr(module, name)] == []
    assert set(getattr(module, "__all__", ())) <= set(public.names(package)) or package in public.FURTHER


def test_what_is_said_not_to_be_promised_is_there() -> None:
    assert [path for path in public.OPAQUE if public.find(path).path != path] == []
    for path, names in public.INTERNAL.items():
        assert [name for name in names.split() if not public.has(path, name)] == [], path


def docstrings() -> dict[str, str]:
    """What is told of each public name and of its members, by path."""
    told: dict[str, str] = {}
    for path in public.published().values():
        thing = public.find(path)
        told[path] = public.docstring(thing) or ""
        if isinstance(thing, griffe.Class):
            told |= {f"{path}.{member.name}": public.docstring(member) or "" for member in public.members(thing)}
    return told


def names_of_packages() -> dict[str, object]:
    """What docstrings need not import: all public names, and the times of the standard library."""
    names: dict[str, object] = {"datetime": datetime, "timedelta": timedelta}
    for package in reversed(public.PACKAGES):
        module = importlib.import_module(package)
        names |= {name: getattr(module, name) for name in module.__all__}
    return names


SHOWN_AT_A_PROMPT = [path for path, text in docstrings().items() if ">>> " in text]
SHOWN_AS_CODE = [path for path, text in docstrings().items() if blocks(text, "python")]


@pytest.mark.parametrize("path", SHOWN_AT_A_PROMPT)
def test_what_docstrings_show_at_a_prompt_is_so(path: str) -> None:
    shown = doctest.DocTestParser().get_doctest(docstrings()[path], names_of_packages(), path, None, 0)
    runner = doctest.DocTestRunner()
    assert runner.run(shown).attempted > 0
    assert runner.failures == 0


@pytest.mark.parametrize("path", SHOWN_AS_CODE)
@pytest.mark.usefixtures("closing")
def test_code_of_docstrings_runs_and_prints_what_it_says(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_python_is_true(path, docstrings()[path], names_of_packages(), tmp_path, monkeypatch, capsys)
