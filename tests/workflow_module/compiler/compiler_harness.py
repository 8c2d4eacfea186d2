"""Runs the same program twice, compiled and natively, from the same script of events.

The compiled run goes through stored bytes at every wait. The native run is CPython's own coroutine under a
small driver.
"""

from __future__ import annotations

import contextlib
import itertools
import linecache
import sys
import textwrap
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import compiler_support

from workflow_module.context import WorkflowContext, active
from workflow_module.outcome import Completed, ContinueAsNew, Suspended, Throw, Value
from workflow_module.waits import encode_wait

_numbers = itertools.count()

PRELUDE = """
from __future__ import annotations
from datetime import datetime, timedelta
from typing import Any
from workflow_module import *
import compiler_support
from compiler_support import *
"""


class Context(WorkflowContext):
    """The least that the language needs, remembering what was done."""

    def __init__(self) -> None:
        self._now = datetime(2026, 1, 1, tzinfo=UTC)
        self.workflow_id = 1
        self.entity_id = self.correlation_id = self.parent_id = None
        self.done: list[tuple[Any, ...]] = []

    def subscribe(self, signal_name: str, key: Any) -> None:
        self.done.append(("subscribe", signal_name, key))

    def unsubscribe(self, signal_name: str, key: Any) -> None:
        self.done.append(("unsubscribe", signal_name, key))

    def signal(self, workflow_id: int, message: Any) -> None:
        self.done.append(("signal", workflow_id, message))

    def start_child(self, workflow_type: str, init: bytes, **options: Any) -> int:
        self.done.append(("start", workflow_type, init))
        return 100 + len(self.done)


def load(source: str, *, native: bool = False) -> dict[str, Any]:
    """Execute source text as a module of its own, with its lines known to tracebacks."""
    filename = f"<program {next(_numbers)}>"
    text = PRELUDE
    if native:
        text += "workflow = subroutine = lambda function: function\n"
    else:
        text += "\n"
    text += source
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    module = types.ModuleType(f"program_{filename}")
    sys.modules[module.__name__] = module
    names: dict[str, Any] = module.__dict__
    log: list[Any] = []
    names["emit"] = lambda *values: log.append(repr(values))
    names["LOG"] = log
    exec(compile(text, filename, "exec"), names)
    return names


@dataclass
class Run:
    """What can be seen of a run: effects and waits in order, and how it ended."""

    trace: list[Any] = field(default_factory=list)
    ending: Any = None
    notes: list[str] = field(default_factory=list)


def ending_of(error: BaseException) -> tuple[Any, ...]:
    return ("raised", type(error).__name__, repr(error.args))


def run_native(
    source: str,
    script: Callable[[int], Any],
    steps_max: int,
    name: str = "program",
    seen: list[bytes] | None = None,
) -> Run:
    """Drive CPython's coroutine."""
    names = load(source, native=True)
    ctx, run = Context(), Run()
    coroutine = names[name](ctx)
    event: Any = Value(None)
    token = active.set(ctx)
    try:
        for step in range(steps_max):
            try:
                wait = coroutine.send(event.value) if isinstance(event, Value) else coroutine.throw(event.error)
            except StopIteration as done:
                run.ending = ("returned", repr(done.value))
                break
            except BaseException as error:
                run.ending = ending_of(error)
                break
            finally:
                run.trace.append(("log", list(names["LOG"])))
            run.trace.append(("wait", encode_wait(wait)))
            if seen is not None:
                seen.append(run.trace[-1][1])
            event = script(step)
        else:
            run.ending = ("unfinished",)
    finally:
        active.reset(token)
        run.notes = list(compiler_support.NOTES)
        with contextlib.suppress(BaseException):
            coroutine.close()
    return run


def run_compiled(
    source: str,
    script: Callable[[int], Any],
    steps_max: int,
    name: str = "program",
    seen: list[bytes] | None = None,
) -> Run:
    """Drive the compiled workflow, storing and reading its state at every wait."""
    names = load(source)
    definition, run = names[name], Run()
    event: Any = None
    state = b""
    for step in range(steps_max):
        try:
            outcome = definition.start(Context(), None) if event is None else definition.resume(Context(), state, event)
        except BaseException as error:
            run.ending = ending_of(error)
            break
        finally:
            run.trace.append(("log", list(names["LOG"])))
        if isinstance(outcome, Completed):
            run.ending = ("returned", repr(outcome.result))
            break
        if isinstance(outcome, ContinueAsNew):
            run.ending = ("continued", outcome.init)
            break
        assert isinstance(outcome, Suspended)
        assert definition.check_state(outcome.state) is None
        if outcome.frame is not None:
            assert repr(outcome.frame) == repr(definition._decode(outcome.state)[1][0])
        state = bytes(outcome.state)
        run.trace.append(("wait", encode_wait(outcome.wait)))
        if seen is not None:
            seen.append(run.trace[-1][1])
        event = script(step)
    else:
        run.ending = ("unfinished",)
    run.notes = list(compiler_support.NOTES)
    return run


def script_of(events: list[Any]) -> Callable[[int], Any]:
    """Events by step; plain values are resumed with, exceptions are thrown, then zeros for ever."""

    def event(step: int) -> Any:
        found = events[step] if step < len(events) else 0
        if isinstance(found, type) and issubclass(found, BaseException):
            found = found(f"event {step}")
        return Throw(found) if isinstance(found, BaseException) else Value(found)

    return event


def assert_same(source: str, events: list[Any] | None = None, steps_max: int = 60, name: str = "program") -> Run:
    """Both runs show the same. Gives the native run, for more assertions."""
    script = script_of(events or [])
    native = run_native(source, script, steps_max, name)
    compiled = run_compiled(source, script, steps_max, name)
    for index, (ours, cpython) in enumerate(zip(compiled.trace, native.trace, strict=False)):
        assert ours == cpython, f"event {index} with {events}:\n{source}"
    assert compiled.ending == native.ending, f"with {events}:\n{source}"
    assert len(compiled.trace) == len(native.trace), f"with {events}:\n{source}"
    return native


def same(
    body: str, events: list[Any] | None = None, *, returns: str = "int", before: str = "", steps_max: int = 60
) -> Run:
    """`assert_same` for the body of a workflow called `program`."""
    lines = "\n".join("    " + line for line in textwrap.dedent(body).strip("\n").splitlines())
    head = f"@workflow\nasync def program(ctx: WorkflowContext) -> {returns}:\n"
    return assert_same(textwrap.dedent(before) + "\n" + head + lines + "\n", events, steps_max)


def define(source: str) -> dict[str, Any]:
    """Compile source text; gives its names."""
    return load(textwrap.dedent(source))


def drive(definition: Any, events: list[Any], init: Any = None, ctx: Any = None) -> Any:
    """Start, then resume with each event in turn; gives the last outcome."""
    script = script_of(events)
    outcome = definition.start(ctx or Context(), init)
    for step in range(len(events)):
        outcome = definition.resume(ctx or Context(), outcome.state, script(step))
    return outcome
