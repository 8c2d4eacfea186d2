"""Every refusal: at decoration, with file, line, column, a caret, and what to write instead."""

# ruff: noqa: E501  (programs and tables are easier to read on one line)

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from compiler_harness import define

import workflow_module
from workflow_module import CompileError

REFUSALS = [
    ("async for", "async for x in ask(ctx, 1):\n    pass", "async for", "collect the items in a procedure"),
    ("async with", "async with ask(ctx, 1):\n    pass", "async with", "procedure"),
    ("with around a wait", "with traced(1):\n    await sleep(SECOND)", "a wait inside with", "try/finally"),
    ("a wait in a comprehension", "xs = [await call(ask, x) for x in (1, 2)]", "a wait inside a comprehension", "gather"),
    ("a wait in a later iterable", "xs = [y for x in (1, 2) for y in await call(ask_list, x)]", "a wait inside a comprehension", "for loop"),
    ("an async comprehension", "xs = [x async for x in ask(ctx, 1)]", "a wait inside a comprehension", "for loop"),
    ("a nested async function", "async def inner() -> None:\n    await sleep(SECOND)", "a nested async function", "@subroutine"),
    ("yield in a lambda", "f = lambda: (yield)\nf()", "cannot yield", "select"),
    ("global", "global SECOND\nSECOND = 1", "global SECOND", "local variable"),
    ("nonlocal", "x = 1\ndef f() -> None:\n    nonlocal x\n    x = 2\nf()", "nonlocal x", "local variable"),
    ("eval", "eval('1')", "eval()", "name the variables"),
    ("exec", "exec('1')", "exec()", "name the variables"),
    ("locals", "emit(locals())", "locals()", "name the variables"),
    ("vars", "emit(vars())", "vars()", "name the variables"),
    ("except*", "try:\n    await sleep(SECOND)\nexcept* ValueError:\n    pass", "except*", "except"),
    ("asyncio.sleep", "import asyncio\nawait asyncio.sleep(1)", "is not known to be a wait", "sleep"),
    ("asyncio.sleep of the module", "await asyncio.sleep(1)", "asyncio's waits cannot be stored", "sleep(...)"),
    ("a plain coroutine", "await plain(ctx)", "a plain coroutine cannot be stored", "@subroutine"),
    ("a signal class", "await Ping", "a class is not a wait", "await signal(Ping)"),
    ("an unknown value", "x = given()\nawait x", "is not known to be a wait", "annotate"),
    ("never awaited", "sleep(SECOND)", "sleep is built and never awaited", "await sleep(SECOND)"),
    ("assigned and never awaited", "w = timer(Clock.RING, after=SECOND)", "timer(RING) is built", "write await timer"),
    ("a subroutine never awaited", "helper(ctx)", "helper is built and never awaited", "await helper(ctx)"),
    ("a subroutine without ctx", "await helper(5)", "first argument is ctx", "helper(ctx, ...)"),
    ("a subroutine in gather", "await gather(helper(ctx))", "subroutine cannot be an argument of gather", "spawn"),
    ("select in select", "await select(select(Ping), Quit)", "select cannot be an argument of select", "spawn"),
    ("an arm that is no wait", "await select(Ping, 5)", "5 is not a wait", "timer(...)"),
    ("a computed name", "n = 'x'\nawait sleep(SECOND, name=n)", "the name of a wait is computed", 'name="..."'),
    ("two waits of one name", "await sleep(SECOND, name='a')\nawait sleep(SECOND, name='a')", "two waits are named 'a'", "name of its own"),
    ("a wait in an except type", "try:\n    pass\nexcept await call(ask, 1):\n    pass", "except clause's type", "before the try"),
    ("an unknown type", "x = given()\nawait sleep(SECOND)\nemit(x)", "the variable x lives across the wait", "annotate it where it is assigned first"),
    ("an empty list", "xs = []\nawait sleep(SECOND)\nemit(xs)", "the variable xs lives across the wait", "annotate it"),
    ("a function", "def f() -> int:\n    return 1\nawait sleep(SECOND)\nf()", "the variable f lives across the wait", "after the wait"),
    ("a lambda", "f = lambda: 1\nawait sleep(SECOND)\nf()", "the variable f lives across the wait", "after the wait"),
    ("an open file", "f = opened()\nawait sleep(SECOND)\nf.read()", "TextIOWrapper objects cannot be stored", "after the wait"),
    ("a generator", "g = (x for x in (1, 2))\nawait sleep(SECOND)\nnext(g)", "cannot be stored", "after the wait"),
    ("an iterator", "it = iter([1])\nawait sleep(SECOND)\nnext(it)", "cannot be stored", "after the wait"),
    ("Any", "x: Any = 1\nawait sleep(SECOND)\nemit(x)", "Any and object say nothing", "after the wait"),
    ("object", "x: object = 1\nawait sleep(SECOND)\nemit(x)", "Any and object say nothing", "after the wait"),
    ("a bare list", "x: list = []\nawait sleep(SECOND)\nemit(x)", "does not say what is in it", "after the wait"),
    ("a plain class", "x = Plain()\nawait sleep(SECOND)\nemit(x)", "Plain objects cannot be stored", "after the wait"),
    ("a missing annotation", "x: Missing = 1\nawait sleep(SECOND)", "the annotation Missing of x cannot be evaluated", "above the workflow"),
    ("an operand of unknown type", "emit(given(), await call(ask, 1))", "the value of given()", "to a variable with a type annotation"),
    ("a path that is rebound", "b = [[1]]\nb[0].append(await call(ask, len(b := [[2]])))", "is assigned before", "split the expression"),
    ("items of unknown type", "for x in given():\n    await sleep(SECOND)", "for x: items lives across", "assign given()"),
    ("a module's list", "xs = MODULE_LIST\nawait sleep(SECOND)\nemit(xs)", "the module's own MODULE_LIST", "copy it here"),
    ("a signal that cannot be stored", "await signal(BadSignal)", "the signal BadSignal cannot be stored: BadSignal.x", "plain values"),
    ("a procedure's result that cannot be stored", "await call(bad_procedure)", "the result of bad_procedure cannot be stored", "plain values"),
    ("an import", "import json\nawait sleep(SECOND)\njson.dumps(1)", "is imported inside the workflow", "top of the module"),
    ("a class that is no signal", "await signal(Plain)", "signal waits for Signal classes, and Plain is not one", "class Plain(Signal)"),
    ("an arm that is no signal", "await select(Ping, Plain)", "select waits for Signal classes, and Plain is not one", "class Plain(Signal)"),
    ("a signal's name", "await signal('Ping')", "signal waits for Signal classes, and 'Ping' is not one", "declare class"),
    ("a class without parentheses", "match await select(Ping, Quit):\n    case Quit():\n        pass\n    case Ping:\n        pass", "case Ping: takes everything", "write case Ping():"),
    ("a timer with parentheses", "match await select(timer(Clock.RING, after=SECOND), Quit):\n    case Clock.RING():\n        pass", "Clock.RING is a value, not a class", "write case Clock.RING:"),
    ("a list of arms", "await select([Ping, sleep(SECOND)])", "select takes its waits as arguments", "write select(a, b)"),
    ("a list of parts", "await gather([signal(Ping), sleep(SECOND)])", "gather takes its waits as arguments", "gather(*[...])"),
    ("too few arguments for a procedure", "await call(ask)", "call(ask, ...): missing a required argument: 'key'", "after its context it takes (key)"),
    ("too many arguments for a procedure", "await call(ask, 1, 2)", "call(ask, ...): too many positional arguments", "takes (key)"),
    ("an argument that no procedure has", "await call(ask, 1, speed=2)", "call(ask, ...): got an unexpected keyword argument 'speed'", "takes (key)"),
    ("wrong arguments in an arm", "await select(call(ask, attempts=2), timer(Clock.RING, after=SECOND))", "missing a required argument: 'key'", "takes (key)"),
    ("a lambda as procedure", "await call(lambda ctx: 1)", "a lambda has no name", "def charge(ctx: StepContext"),
    ("a misspelt timer", "await timer(Clock.RNIG, after=SECOND)", "Clock has no member RNIG; it has", "write Clock.RING"),
    ("a misspelt timer in a pattern", "match await select(timer(Clock.RING, after=SECOND), Ping):\n    case Clock.RNIG:\n        pass", "Clock has no member RNIG", "write Clock.RING"),
    ("a timer's name", "await timer('ring', after=SECOND)", "'ring' is not a member of a Timer class", "class MyTimer(Timer)"),
    ("a timer without a time", "await timer(Clock.RING)", "timer needs either after=... or at=...", "timer(Clock.RING, after=timedelta(...))"),
    ("a number of seconds", "await sleep(5)", "sleep needs a timedelta, not a number", "write timedelta(seconds=5)"),
    ("a number in a variable", "n = 5.0\nawait signal(Ping, timeout=n)", "signal(timeout=...) needs a timedelta", "timedelta(seconds=n)"),
    ("a number in an arm", "await select(Ping, timer(Clock.RING, after=5))", "timer(after=...) needs a timedelta", "timedelta(seconds=5)"),
    ("an attribute of a wait", "ping = signal(Ping)\nemit(ping.n)", "ping is a wait, and has no n before it is awaited", "(await ping).n"),
    ("a workflow that is called", "await other(ctx, None)", "a workflow is not called", "write await spawn(other, None)"),
    ("a procedure that is called", "await charged(ctx, 1)", "a procedure is not called by the workflow itself", "write await call(charged, 1)"),
    ("a procedure called in call", "await call(charged(1))", "this calls the procedure here", "write call(charged, 1)"),
    ("an open file of open()", "f = open('x')\nawait sleep(SECOND)\nf.read()", "the variable f lives across the wait", "open it again after it"),
    ("an empty list's example", "xs = []\nawait sleep(SECOND)\nemit(xs)", "cannot be inferred", "xs: list[str] = []"),
    ("an empty dict's example", "xs = {}\nawait sleep(SECOND)\nemit(xs)", "cannot be inferred", "xs: dict[str, int] = {}"),
    ("an empty set's example", "xs = set()\nawait sleep(SECOND)\nemit(xs)", "cannot be inferred", "xs: set[str] = set()"),
    ("a signal that is made", "await signal(Ping(1))", "Ping(1) is a signal, not a class of them", "write Ping"),
    ("a misspelt signal", "await signal(Pimg)", "Pimg is not defined", "write Ping"),
    ("a misspelt signal in select", "await select(sleep(SECOND), Pimg)", "is not", "write "),
    ("a misspelt timer class", "await timer(Clok.RING, after=SECOND)", "Clok is not defined", "write Clock"),
    ("a misspelt procedure", "await call(chargd, 1)", "chargd is not defined", "write charged"),
    ("nothing like it", "await signal(Xyzzy)", "Xyzzy is not defined", "define or import it"),
    ("a procedure's name", "await call('charged', 1)", "call takes a procedure itself, not its name", "plainly"),
    ("a procedure that is spawned", "await spawn(charged, None)", "spawn starts workflows, and charged is not one", "write call(charged, ...)"),
    ("a subroutine that is started", "start(helper, None)", "start starts workflows, and helper is not one", "@workflow"),
    ("a compiler's name", "_wf_x = 1", "names that begin with _wf_", "another name"),
    ("ctx is assigned", "ctx = 1", "ctx is assigned", "another name"),
    ("a variable called init", "init = 1\nawait sleep(SECOND)\nemit(init)", "init lives across a wait", "another name"),
]  # fmt: skip
BEFORE = """
import asyncio, io
MODULE_LIST = [1, 2]
class Plain:
    pass
class BadSignal(Signal):
    x: Plain
async def bad_procedure(ctx: Any) -> Plain: ...
def given() -> Any: ...
def opened() -> io.TextIOWrapper: ...
async def plain(ctx: WorkflowContext) -> int:
    return 1
@subroutine
async def helper(ctx: WorkflowContext) -> int:
    return 1
@workflow
async def other(ctx: WorkflowContext) -> int:
    return 1
def charged(ctx: StepContext, n: int) -> int: ...
"""


@pytest.mark.parametrize(("body", "problem", "remedy"), [r[1:] for r in REFUSALS], ids=[r[0] for r in REFUSALS])
def test_refused_with_place_and_remedy(body: str, problem: str, remedy: str) -> None:
    text = (
        BEFORE
        + "@workflow\nasync def program(ctx: WorkflowContext) -> int:\n"
        + textwrap.indent(body, "    ")
        + "\n    return 0\n"
    )
    with pytest.raises(CompileError) as caught:
        define(text)
    error = caught.value
    assert problem in error.problem
    assert remedy in error.remedy
    assert error.line > 8
    assert error.column > 0
    shown = str(error).splitlines()
    assert shown[1] == f"  {error.filename}:{error.line}:{error.column}"
    assert set(shown[3].strip()) == {"^"}
    assert shown[2].strip() in text


SIGNATURES = [
    ("async def program(ctx: WorkflowContext, init) -> int:", "init has no type"),
    ("async def program(ctx: WorkflowContext):", "does not say what it returns"),
    ("async def program(ctx: WorkflowContext, a: int, b: int) -> int:", "takes ctx and one init"),
    ("async def program() -> int:", "has no ctx"),
    ("def program(ctx: WorkflowContext) -> int:", "not an async def"),
    ("async def program(ctx: WorkflowContext, init: Bag) -> int:", "Bag is not frozen"),
    ("async def program(ctx: WorkflowContext, init: Any) -> int:", "init cannot be stored"),
    ("async def program(ctx: WorkflowContext) -> Any:", "result cannot be stored"),
    ("async def program(ctx: WorkflowContext) -> Missing:", "cannot be evaluated"),
]


@pytest.mark.parametrize(("head", "problem"), SIGNATURES)
def test_refused_signatures(head: str, problem: str) -> None:
    with pytest.raises(CompileError) as caught:
        define(f"@workflow\n{head}\n    return 1\n")
    assert problem in caught.value.problem


def test_init_is_not_reassigned() -> None:
    with pytest.raises(CompileError, match="init is assigned"):
        define(
            "@workflow\nasync def program(ctx: WorkflowContext, init: Pair) -> int:\n    init = Pair(1, 2)\n    return init.left\n"
        )


def test_a_closure_is_refused() -> None:
    with pytest.raises(CompileError, match=r"program is a closure: it uses secret"):
        define(
            """
            def make() -> None:
                secret = 1
                @workflow
                async def program(ctx: WorkflowContext) -> int:
                    return secret
            make()
            """
        )


def test_a_workflow_without_source_is_refused() -> None:
    names: dict[str, object] = {}
    exec("async def program(ctx):\n    return 1", names)
    from workflow_module import workflow

    with pytest.raises(CompileError, match="source of program cannot be read"):
        workflow(names["program"])  # type: ignore[call-overload]


def test_an_import_prints_the_place_and_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "my_game.py").write_text(
        textwrap.dedent(
            """
            import asyncio
            from workflow_module import WorkflowContext, workflow

            @workflow
            async def program(ctx: WorkflowContext) -> None:
                await asyncio.sleep(1)
            """
        )
    )
    found = subprocess.run(
        [sys.executable, "-c", "import my_game"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(Path(workflow_module.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 1
    assert found.stderr.splitlines()[-5:] == [
        "workflow_module.compiler.source.CompileError: await asyncio.sleep(1): asyncio's waits cannot be stored",
        f"  {tmp_path}/my_game.py:7:11",
        "    await asyncio.sleep(1)",
        "          ^^^^^^^^^^^^^^^^",
        "  instead: use sleep(...), gather(...), select(...) or call(procedure) of workflow_module",
    ]


def test_what_is_not_refused() -> None:
    define(
        """
        import logging, random, time
        from pydantic import BaseModel

        class Settings(BaseModel):
            rate: int = 2

        @workflow
        async def program(ctx: WorkflowContext) -> int:
            f = lambda x: x + 1
            total: int = f(Settings().rate) + int(time.time()) + random.randint(1, 2)
            logging.getLogger(__name__).debug("x")
            def helper(x: int) -> int:
                return x
            total = helper(total)
            with traced(1):
                pass
            await sleep(SECOND)
            g = [x for x in range(3)]
            return total + len(g)
        """
    )
