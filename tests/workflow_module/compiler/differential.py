"""Compares a generated program compiled with the same program in CPython; also a command for long runs.

python tests/workflow_module/compiler/differential.py SEED COUNT [SIZE]
"""

from __future__ import annotations

import random
import signal
import sys
import time
from typing import Any

import compiler_support
from compiler_harness import Run, run_compiled, run_native

from workflow_module import Cancelled, CompileError
from workflow_module.outcome import Throw, Value
from workflow_module.waits import decode_wait

STEPS_MAX = 40


class Different(AssertionError):
    """The two runs showed different things."""


def event_value(kind: Any, wait: Any) -> Any:
    """What a wait is resumed with, from an entry of the script."""
    if isinstance(kind, str):
        cls = (
            getattr(compiler_support, kind, None)
            or {"ValueError": ValueError, "KeyError": KeyError, "Cancelled": Cancelled}[kind]
        )
        return Throw(cls("thrown", 1))
    if wait.kind == "call":
        return Value(kind)
    if wait.kind == "signal":
        return Value(None if wait.timeout is not None and kind < 3 else compiler_support.Ping(kind))
    if wait.kind == "gather":
        return Value((kind, kind + 1))
    if wait.kind == "select":
        return Value(
            [compiler_support.Clock.RING, compiler_support.Ping(kind), compiler_support.Quit(), None][kind % 4]
        )
    return Value(None)


def compare(source: str, script: list[Any]) -> str:
    """Raises `Different`; else says how the program ended."""

    def driver(runner: Any) -> Run:
        compiler_support.NOTES.clear()
        notes: list[Any] = []
        seen: list[bytes] = []

        def event(step: int) -> Any:
            notes.append(list(compiler_support.NOTES))
            return event_value(script[step] if step < len(script) else 0, Kinded(seen[-1]))

        found: Run = runner(source, event, STEPS_MAX, seen=seen)
        found.trace.append(("notes", notes, found.notes))
        return found

    try:
        compiled = driver(run_compiled)
    except CompileError as error:
        if "is assigned before" in error.problem or "lives across the wait" in error.problem:
            return "refused: " + error.problem.partition("(")[0][-60:]
        raise
    if compiled.ending[:2] == ("raised", "StateError"):
        return "refused at a wait"
    native = driver(run_native)
    for index, (ours, theirs) in enumerate(zip(compiled.trace, native.trace, strict=False)):
        if ours != theirs:
            raise Different(
                f"event {index}: compiled {str(ours)[-300:]}, CPython {str(theirs)[-300:]}, then "
                f"{compiled.ending}, {native.ending}\nscript {script}\n{source}"
            )
    if compiled.ending != native.ending or len(compiled.trace) != len(native.trace):
        raise Different(f"compiled {compiled.ending!r}, CPython {native.ending!r}\nscript {script}\n{source}")
    return str(native.ending[0])


class Kinded:
    """A wait, with its kind as text."""

    def __init__(self, data: bytes) -> None:
        wait = decode_wait(data)
        self.kind = str(wait.__struct_config__.tag)
        self.timeout = getattr(wait, "timeout", None)


def _too_long(*_: Any) -> None:
    raise Different("a program that does not end")


def main() -> None:
    from program_generator import events, program

    first, count = int(sys.argv[1]), int(sys.argv[2])
    size = int(sys.argv[3]) if len(sys.argv) > 3 else 14
    began = time.monotonic()
    signal.signal(signal.SIGALRM, _too_long)
    endings: dict[str, int] = {}
    failures = 0
    for seed in range(first, first + count):
        choose = random.Random(seed).randrange
        source, script = program(choose, size), events(choose)
        signal.alarm(60)
        try:
            ending = compare(source, script)
        except Exception as error:
            failures += 1
            print(f"=== seed {seed}: {type(error).__name__}: {error}"[:6000])
            if not isinstance(error, Different):
                print(source)
            if failures >= 3:
                break
            continue
        endings[ending] = endings.get(ending, 0) + 1
    print(f"{sum(endings.values())} programs in {time.monotonic() - began:.1f} s, {failures} different: {endings}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
