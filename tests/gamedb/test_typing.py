"""The code of users type-checks under mypy --strict, and what is wrong in it does not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mypy import api

HERE = Path(__file__).parent


def test_games_type_check_and_mistakes_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE.parents[1])
    file = HERE / "typed_game.py"
    cache = str(HERE.parents[1] / ".mypy_cache" / "tests")
    options = ["--strict", "--config-file=", "--no-error-summary", "--follow-imports=silent", "--cache-dir", cache]
    firsts = []  # the first programs that somebody types
    for page, name in (("README.md", "buff.py"), ("docs/tables-and-reducers.md", "arena.py")):
        text = (HERE.parents[1] / page).read_text().partition(f"<!-- file: {name} -->\n```python\n")[2]
        first = tmp_path / name
        first.write_text(text.partition("```\n")[0])
        assert first.stat().st_size
        firsts.append(str(first))
    out, err, _ = api.run([*options, str(file), *firsts])
    assert err == ""
    found: dict[int, list[str]] = {}
    for line in out.splitlines():
        match = re.match(r".*typed_game\.py:(\d+): error: (.*)", line)
        if match:
            found.setdefault(int(match[1]), []).append(match[2])
        else:
            assert ": note: " in line, line
    for number, line in enumerate(file.read_text().splitlines(), 1):
        wanted = re.search(r"# E: (.*)", line)
        messages = found.pop(number, [])
        if wanted is None:
            assert messages == [], (number, line)
        else:
            assert any(wanted[1] in message for message in messages), (number, line, messages)
    assert found == {}
