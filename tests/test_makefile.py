"""The Makefile: what it says without doing it, and how it refuses an old Python."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TARGETS = ["run", "test", "check", "fuzz", "crash", "soak", "bench", "clean"]

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def make(*arguments: str, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(
        ["make", *arguments], cwd=cwd, capture_output=True, text=True, check=False, env={**clean, **environment}
    )


def test_help_lists_every_target() -> None:
    listed = re.findall(r"^  make (\w+)", make("help").stdout, re.MULTILINE)
    assert set(TARGETS) <= set(listed)
    assert make().stdout == make("help").stdout


@pytest.mark.parametrize("target", TARGETS[:-1])
def test_every_target_sets_up_what_it_needs(tmp_path: Path, target: str) -> None:
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    assert "-m venv .venv" in make("--dry-run", target, cwd=tmp_path).stdout


def test_the_environment_is_refreshed_when_the_project_changes(tmp_path: Path) -> None:
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    stamp = tmp_path / ".venv" / ".ready"
    stamp.parent.mkdir()
    stamp.touch()
    assert "-m venv" not in make("--dry-run", "test", cwd=tmp_path).stdout
    later = stamp.stat().st_mtime + 10
    os.utime(tmp_path / "pyproject.toml", (later, later))
    assert "-m venv" in make("--dry-run", "test", cwd=tmp_path).stdout


def test_an_old_python_is_refused_with_its_version(tmp_path: Path) -> None:
    directory = tmp_path / "a path with spaces"
    directory.mkdir()
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, directory)
    old = directory / "python3.8"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "Python 3.8.10" && exit 0\nexit 1\n')
    old.chmod(old.stat().st_mode | stat.S_IXUSR)
    done = make("test", f"PYTHON={old}", cwd=directory)
    assert done.returncode != 0
    assert "gamedb needs Python 3.11 or newer" in done.stderr
    assert "Python 3.8.10" in done.stderr
    assert not (directory / ".venv").exists()


def test_the_script_for_continuous_integration_is_sound() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert subprocess.run(["bash", "-n", str(script)], check=False).returncode == 0
    assert "set -euo pipefail" in script.read_text()
