"""Every example can be run, and says something."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

import examples

FOLDER = Path(examples.__file__).parent
NAMES = sorted(path.stem for path in FOLDER.glob("*.py") if "install(module" in path.read_text())


def test_there_are_fifteen() -> None:
    assert len(NAMES) == 15


@pytest.mark.parametrize("name", NAMES)
def test_it_plays(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    example = importlib.import_module(f"examples.{name}")
    example.main()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) >= 3
    assert f"python -m examples.{name}" in (example.__doc__ or "")
