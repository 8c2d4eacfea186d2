"""The page of the arena fits the module: its bindings are those that would be generated now."""

from __future__ import annotations

from pathlib import Path

from examples.arena.module import module
from gamedb.codegen.typescript import typescript

BINDINGS = Path(__file__).parents[2] / "examples" / "arena" / "web" / "src" / "bindings"


def test_the_committed_bindings_are_up_to_date() -> None:
    expected = typescript(module.resolve())
    found = {str(path.relative_to(BINDINGS)): path.read_text() for path in BINDINGS.rglob("*.ts")}
    stale = sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))
    assert not stale, "run: npm run generate, in examples/arena/web"
