"""What mypy --strict makes of workflows: results are inferred, mistakes are found."""

# ruff: noqa: E501  (programs and tables are easier to read on one line)

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path

import pytest

import workflow_module

mypy_api = pytest.importorskip("mypy.api")
ROOT = Path(workflow_module.__file__).parents[1]
SAMPLE = """
from datetime import timedelta
from typing import reveal_type

from workflow_module import (
    Arm, Handle, Signal, Struct, Timer, WorkflowContext, call, continue_as_new, gather, select, signal, sleep,
    spawn, start, subroutine, timer, wait_all, workflow,
)


class T(Timer):
    END = "end"


class Bid(Signal):
    amount: int


class Quit(Signal): ...


class Init(Struct):
    price: int


class Open(Struct, frozen=False):
    n: int = 0


class ProcedureContext: ...


async def fetch(ctx: ProcedureContext, item: str, day: int = 0) -> float:
    return 1.0


def sync(ctx: ProcedureContext, item: str) -> bytes:
    return b""


@workflow
async def child(ctx: WorkflowContext, init: Init) -> str:
    return "x"


@workflow(name="parent", version=2)
async def parent(ctx: WorkflowContext, init: Init) -> int:
    d = timedelta(seconds=1)
    reveal_type(await select(timer(T.END, after=d), Bid, Quit, sleep(d)))  # R: T | Bid | Quit | None
    reveal_type(await select(Bid, Quit, Bid, Quit, Bid, Quit, Bid, Quit, sleep(d), timer(T.END, after=d)))  # R: Bid | Quit | None | T
    reveal_type(await signal(Bid))  # R: Bid
    reveal_type(await signal(Bid, timeout=d))  # R: Bid | None
    reveal_type(await call(fetch, "a"))  # R: float
    reveal_type(await call(fetch, "a", day=3))  # R: float
    reveal_type(await call(fetch, "a", 1, attempts=3, timeout=d))  # R: float
    reveal_type(await call(sync, "a", attempts=3))  # R: bytes
    reveal_type(await spawn(child, Init(1)))  # R: str
    reveal_type(start(child, Init(1)))  # R: Handle[str]
    reveal_type(await start(child, Init(1)))  # R: str
    reveal_type(await gather(spawn(child, Init(1)), signal(Bid)))  # R: tuple[str, Bid]
    reveal_type(await gather(spawn(child, Init(1)), return_exceptions=True))  # R: tuple[str | BaseException]
    reveal_type(await gather(*[spawn(child, Init(i)) for i in range(3)]))  # R: tuple[str, ...]
    reveal_type(await gather())  # R: tuple[()]
    reveal_type(await wait_all(Bid, Quit))  # R: tuple[Bid, Quit]
    reveal_type(await wait_all(Bid, Quit, timeout=d))  # R: tuple[Bid | None, Quit | None]
    reveal_type(await helper(ctx, 3))  # R: list[int]
    match await select(timer(T.END, after=d), Bid):
        case T.END:
            pass
        case Bid(amount):
            reveal_type(amount)  # R: int
    Open().n = 5
    if init.price:
        continue_as_new(Init(1))
    return 1


@subroutine
async def helper(ctx: WorkflowContext, n: int) -> list[int]:
    return [n]


reveal_type(parent.init_type)  # R: Any
reveal_type(parent.decode_result(b"1"))  # R: int
Init(1).price = 2  # E: read-only
Init("a")  # E: incompatible type
call(sync, 5)  # E: incompatible type
call(fetch, "a", 1, atempts=3)  # E: Unexpected keyword argument
spawn(child, 5)  # E: Cannot infer value
timer("end", after=timedelta(0))  # E: cannot be "str"
signal(Init)  # E: cannot be "Init"
select(5)  # E: No overload variant
wait_all(Init)  # E: cannot be
T.MISSING  # E: no attribute
"""


def test_mypy_infers_results_and_finds_mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "sample.py"
    path.write_text(textwrap.dedent(SAMPLE))
    monkeypatch.setenv("MYPYPATH", str(ROOT))
    options = [
        "--strict",
        "--no-error-summary",
        f"--cache-dir={tmp_path / 'cache'}",
        f"--python-executable={sys.executable}",
    ]
    output, problems, _ = mypy_api.run([*options, "--config-file=", str(path)])
    assert problems == ""
    by_line: dict[int, str] = {}
    for line in output.splitlines():
        found = re.match(r".*sample\.py:(\d+): (.*)", line)
        assert found, line
        by_line[int(found[1])] = by_line.get(int(found[1]), "") + found[2] + "\n"
    for number, line in enumerate(SAMPLE.splitlines(), 1):
        said = (
            by_line.pop(number, "")
            .replace("workflow_module.waits.", "")
            .replace("sample.", "")
            .replace("datetime.", "")
        )
        if "# R: " in line:
            assert f'Revealed type is "{line.split("# R: ")[1]}"' in said, (number, said)
        elif "# E: " in line:
            assert "error" in said, (number, line)
            assert line.split("# E: ")[1] in said, (number, said)
        else:
            assert "error" not in said, (number, said)
    assert not any("error" in said for said in by_line.values())
