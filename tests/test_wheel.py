"""The wheel: it has the arena's page and the console in it, and serves them without Node and without the repository."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

ROOT = Path(__file__).parent.parent
BUILT = (ROOT / "examples/arena/web/dist/index.html", ROOT / "gamedb/console/index.html")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with what the wheel installs."""
    for page in BUILT:
        if not page.exists():
            pytest.skip(f"{page.relative_to(ROOT)} is not built; `make wheel` does it")
    place = tmp_path_factory.mktemp("wheel")
    source = place / "source"  # a copy, as a build leaves files beside its sources
    source.mkdir()
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in ("gamedb", "workflow_module", "examples"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("node_modules", "__pycache__"))
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", str(place), str(source)], check=True)
    [wheel] = place.glob("*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--target", str(place / "site"), str(wheel)], check=True)
    return place / "site"


def test_the_arena_and_the_console_are_served_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(installed), "PATH": "", "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "gamedb", "start", "gamedb_examples.arena.module:module"]
    with subprocess.Popen(
        [*command, "--listen", "127.0.0.1:0", "--data-dir", "data", "--log-level", "error"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            assert server.stdout is not None
            shown = ""
            while "Serving" not in shown:
                line = server.stdout.readline()
                assert line, shown
                shown += line
            found = re.search(r"page\s+(http://\S+)", shown)
            assert found, shown
            with urlopen(found[1]) as page:
                html = page.read().decode()
            [script] = re.findall(r'src="\.?/?(assets/[^"]+\.js)"', html)
            with urlopen(found[1] + script) as code:
                assert b"spacetimedb" in code.read()
            with urlopen(found[1] + "console/") as console:
                assert "<title>" in console.read().decode()
        finally:
            server.terminate()
    assert (tmp_path / "data/arena.db").exists()


def test_everything_that_is_imported_comes_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    names = "gamedb, gamedb.client, gamedb.server, workflow_module, gamedb_examples.quickstart"
    code = f"import {names}; print(*(m.__file__ for m in ({names},)))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert all(Path(path).is_relative_to(installed) for path in done.stdout.split())


def test_who_looks_for_an_example_by_its_name_in_the_repository_is_told_the_right_one(
    installed: Path, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gamedb", "describe", "examples.quickstart:module"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "Did you mean gamedb_examples.quickstart:module?" in done.stderr
