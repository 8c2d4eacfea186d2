"""Writes random programs of the workflow language, as source text, with a script of events to run them with.

`Generator(choose)` asks `choose(n)` for each decision (0 is always the simplest), so that Hypothesis can shrink
it and a plain `random.Random` can drive it at length.
"""

from __future__ import annotations

from collections.abc import Callable

ERRORS = ("ValueError", "KeyError", "GameError", "HardError")
CATCHES = (
    *ERRORS,
    "Exception",
    "(ValueError, KeyError)",
    "IndexError",
    "Cancelled",
    "BaseException",
    "UnboundLocalError",
)
INTS = ("a", "b", "c")
LISTS = ("xs", "ys")


class Generator:
    def __init__(self, choose: Callable[[int], int], size: int = 14) -> None:
        self.choose = choose
        self.budget = size
        self.lines: list[str] = []
        self.indent = 1
        self.loops = 0
        self.loop_depth = 0
        self.in_handler = 0
        self.fresh = 0
        self.subroutines = 0
        self.waits_allowed = True
        self.dict_loops = choose(2) == 0  # or deletions: taking the items first is the stated difference

    # helpers

    def pick(self, options: tuple[str, ...]) -> str:
        return options[self.choose(len(options))]

    def chance(self, one_in: int) -> bool:
        return self.choose(one_in) == one_in - 1

    def write(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def name(self, prefix: str) -> str:
        self.fresh += 1
        return f"{prefix}{self.fresh}"

    # expressions

    def wait(self, depth: int) -> str:
        kind = self.choose(7 if depth > 0 else 2)
        if kind == 2:
            return f"await call(ask, {self.int(depth - 1)})"
        if kind == 3:
            return "(await signal(Ping)).n"
        if kind == 4 and self.subroutines:
            return f"await helper{self.choose(self.subroutines)}(ctx, {self.int(depth - 1)})"
        if kind == 5:
            return f"(await gather(call(ask, {self.int(depth - 1)}), call(ask, 7)))[{self.choose(2)}]"
        if kind == 6:
            return "(await signal(Ping, timeout=SECOND) or Ping(5)).n"
        return f"await call(ask, {self.choose(9)})"

    def int(self, depth: int = 2) -> str:
        """An expression for a small int."""
        if depth <= 0:
            return self.pick(("1", "a", "b", "c", "2", "xs[0]", "len(ys)"))
        kind = self.choose(32)
        one, two = lambda: self.int(depth - 1), lambda: self.int(depth - 1)
        if kind <= 3 and self.waits_allowed:
            return f"({self.wait(depth)})"
        simple = {
            4: lambda: f"({one()} + {two()})",
            5: lambda: f"({one()} * {two()} % 97)",
            6: lambda: f"note({one()})",
            7: lambda: f"({one()} if {self.test(depth - 1)} else {two()})",
            8: lambda: f"({one()} and {two()})",
            9: lambda: f"({one()} or {two()})",
            10: lambda: f"({self.pick(INTS)} := {one()})",
            11: lambda: f"xs[{one()} % 3]",
            12: lambda: f"d[{one()} % 4]",
            13: lambda: f"add({one()}, {two()})",
            14: lambda: f"add({one()}, right={two()})",
            15: lambda: f"add(*[{one()}, {two()}])",
            16: lambda: f"add(*{self.list(depth - 1)}, {two()})",
            17: lambda: f"add(**{{'left': {one()}}}, right={two()})",
            18: lambda: f"len(f'{{{self.piece()}}}-{{{self.piece()}:>{{{self.piece()} % 7}}}}')",
            19: lambda: f"sum([{one()}, {two()}])",
            20: lambda: f"({one()}, {two()})[{one()} % 2]",
            21: lambda: f"sum([q + {self.quiet(one)} for q in {self.list(depth - 1)}])",
            22: lambda: f"(lambda q: q + a)({one()})",
            23: lambda: f"int({self.test(depth - 1)})",
            24: lambda: f"-{one()}",
            25: lambda: f"sum({self.list(depth - 1)}[{one()} % 2:{two()} % 5])",
            26: lambda: f"{{{one()} % 3: {two()}}}.get({one()} % 3, 0)",
            27: lambda: f"max({one()}, {two()})",
            28: lambda: f"Pair({one()}, {two()}).{self.pick(('left', 'right'))}",
            30: lambda: self.waiting(f"sum([q + {self.quiet(one)} for q in await gather(call(ask, 1), call(ask, 2))])"),
            31: lambda: self.waiting(
                f"len({{q: 1 for q in await gather(call(ask, 1), call(ask, {self.pick(INTS)}))}})"
            ),
            29: lambda: "bag.n" if self.chance(2) else f"len({{{one()}, {two()}}})",
        }
        return simple.get(kind, lambda: self.pick(INTS))()

    def waiting(self, text: str) -> str:
        """This text where waits are allowed, else something without one."""
        return text if self.waits_allowed else "b"

    def piece(self) -> str:
        """A part of an f-string: without quotes and braces."""
        options = (
            "a",
            "b",
            "note(c)",
            "add(a, 2)",
            "(a := 4)",
            "(await call(ask, 4))",
            "note(await call(ask, b))",
        )
        return self.pick(options if self.waits_allowed else options[:5])

    def quiet(self, make: Callable[[], str]) -> str:
        before, self.waits_allowed = self.waits_allowed, False
        try:
            return make().replace(":=", "+")
        finally:
            self.waits_allowed = before

    def test(self, depth: int) -> str:
        kind = self.choose(7)
        one, two = lambda: self.int(depth - 1), lambda: self.int(depth - 1)
        if kind == 0:
            return f"{one()} < {two()}"
        if kind == 1:
            return f"{one()} < {two()} <= {one()}"
        if kind == 2:
            return f"not {one()}"
        if kind == 3:
            return f"({one()} == {two()} and {one()} > 1)"
        if kind == 4:
            return f"({one()} > 2 or {two()} in xs)"
        if kind == 5:
            return f"{one()} in ({two()}, 3) != {two()}"
        return f"{one()} % 2 == 0"

    def list(self, depth: int) -> str:
        kind = self.choose(8)
        if kind <= 2:
            return self.pick(LISTS)
        if kind == 3:
            return f"[{self.int(depth - 1)}, {self.int(depth - 1)}]"
        if kind == 4:
            return f"[*xs, {self.int(depth - 1)}]"
        if kind == 5:
            return f"sorted({self.pick(LISTS)})"
        if kind == 6:
            return f"list(range({self.int(depth - 1)} % 4))"
        return f"[q * 2 for q in {self.pick(LISTS)}]"

    # statements

    def block(self, size: int = 3) -> None:
        """A nested block of a few statements."""
        self.indent += 1
        self.statements(1 + self.choose(size))
        self.indent -= 1

    def statements(self, count: int) -> None:
        for _ in range(count):
            self.statement()

    def statement(self) -> None:
        self.budget -= 1
        if self.budget < 0:
            self.simple()
            return
        kind = self.choose(20)
        compound = {
            9: self.if_, 10: self.while_, 11: self.for_, 12: self.try_, 13: self.match_, 14: self.for_,
            15: self.try_, 16: self.select_, 17: self.native_, 18: self.while_, 19: self.try_,
        }  # fmt: skip
        compound.get(kind, self.simple)()

    def simple(self) -> None:
        kind = self.choose(34)
        name = self.pick(INTS)
        one, two = lambda: self.int(2), lambda: self.int(2)
        if kind == 20 and (self.loop_depth or self.in_handler or self.chance(4)):
            self.jump()
            return
        texts = {
            1: lambda: f"{name} = {one()}",
            2: lambda: f"{name} += {one()}",
            3: lambda: f"emit({one()}, {two()})",
            4: lambda: f"a, b = {one()}, {two()}",
            5: lambda: f"xs.append({one()}) if len(xs) < 7 else None",
            6: lambda: f"xs[{one()} % 3] = {two()}",
            7: lambda: f"ys[{one()} % 2] += {two()}",
            8: lambda: f"d[{one()} % 4] = {two()}",
            9: lambda: f"d[{one()} % 4] += {two()}",
            10: lambda: f"bag.items.append({one()}) if len(bag.items) < 7 else None",
            11: lambda: f"bag.n += {one()}",
            12: lambda: f"bag.items[{one()} % 2] = {two()}",
            13: lambda: f"{self.pick(LISTS)} = {self.list(2)}" if self.chance(9) else f"ys = list({self.list(2)})",
            14: lambda: f"a, *ys = [{one()}, {two()}, {one()}]",
            15: lambda: (
                f"assert {self.test(2)} or True, {one()}" if self.chance(2) else f"assert {self.test(2)}, {one()}"
            ),
            16: lambda: f"bag.n = b = {one()}",
            17: lambda: f"xs[{one()} % 2], d[{two()} % 4] = {one()}, {two()}",
            18: lambda: f"if len(xs) < 7: xs[{one()} % 2:{two()} % 4] = [{one()}]",
            19: lambda: f"s = f'{{{self.piece()}}}{{{self.piece()}!r}}'",
            21: lambda: f"del {self.pick(self.deletable())}",
            22: lambda: "emit(repr(xs), repr(d), bag.n, bag.items)",
            23: lambda: "c = a",
            24: lambda: f"t = ({one()}, {two()})",
            25: lambda: "await sleep(SECOND)" if self.waits_allowed else "pass",
            26: lambda: f"emit(t[{self.choose(2)}], s)",
            27: lambda: f"if len(xs) < 7: xs += [{one()}]" if self.chance(2) else "xs.reverse()",
            28: lambda: f"emit({self.pick(INTS)})",
            29: lambda: f"u: int = {one()}",
            30: lambda: self.waiting(f"xs[(await call(ask, {one()})) % 2]: int = {two()}"),
            31: lambda: self.waiting(f"box(await call(ask, {one()})).n = {two()}"),
            32: lambda: self.waiting(f"del (xs[(await call(ask, 3)) % 3], ys[{one()} % 2]), box(await call(ask, 1)).n"),
            33: lambda: self.waiting(f"s = f'{{a:>{{await call(ask, {self.choose(9)})}}}}|{{note(b)}}'"),
        }
        self.write(texts.get(kind, lambda: f"{name} = {self.wait(1) if self.waits_allowed else '3'}")())

    def deletable(self) -> tuple[str, ...]:
        always = ("xs[-1]", "ys[-1]", "a", "b", "c", f"xs[{self.int(2)} % 2]")
        return always if self.dict_loops else (*always, "d[0]", f"d[{self.int(2)} % 4]")

    def jump(self) -> None:
        kind = self.choose(9)
        if kind in (0, 1, 6, 7) and self.loop_depth:
            self.write("break" if kind % 2 else "continue")
        elif kind == 2 and self.chance(2):
            self.write(f"return {self.int(2)}")
        elif kind == 3 and self.in_handler:
            self.write("raise")
        elif kind == 4:
            self.write(f"raise {self.pick(ERRORS)}({self.int(1)}) from None")
        else:
            self.write(f"raise {self.pick(ERRORS)}({self.int(2)})")

    def if_(self) -> None:
        self.write(f"if {self.test(2)}:")
        self.block()
        if self.chance(3):
            self.write(f"elif {self.test(2)}:")
            self.block()
        if self.chance(2):
            self.write("else:")
            self.block()

    def loop_body(self) -> None:
        self.loop_depth += 1
        self.block()
        self.loop_depth -= 1

    def loop_else(self) -> None:
        if self.chance(3):
            self.write("else:")
            self.block(2)

    def while_(self) -> None:
        counter = self.name("i")
        self.write(f"{counter} = 0")
        if self.chance(2):
            self.write(f"while {counter} < {1 + self.choose(3)}:")
        elif self.chance(2):
            self.write(f"while {counter} < 3 and {self.test(1)}:")
        else:
            self.write("while True:")
            self.indent += 1
            self.write(f"if {counter} >= {1 + self.choose(3)}:")
            self.write("    break")
            self.indent -= 1
        self.write(f"    {counter} += 1")
        self.loop_body()
        self.loop_else()

    def for_(self) -> None:
        item = self.pick(("x", "y", "a"))
        kind = self.choose(17)
        heads = {
            0: f"for {item} in range({1 + self.choose(3)}):",
            1: f"for {item} in xs:",
            2: f"for {item} in ys:",
            3: f"for {item} in bag.items:",
            4: f"for {item}, z in enumerate(xs):",
            5: f"for {item}, z in zip(xs, ys):",
            6: f"for {item}, z in {'d.items()' if self.dict_loops else 'sorted(d.items())'}:",
            7: f"for {item} in reversed(xs):",
            8: f"for {item} in sorted(xs):",
            9: f"for {item} in (1, {self.int(1)}):",
            10: f"for z in f'{{{self.piece()}}}':",
            11: f"for {item} in {self.list(2)}:",
            12: f"for {item} in {'d' if self.dict_loops else 'list(d)'}:",
            13: f"for {item}, (z, w) in enumerate(zip(xs, bag.items), {self.int(1)}):",
            15: f"for {item}, z in zip(xs, [4, 5, 6], strict=True):",
            16: f"for z, {item} in enumerate(xs, start={self.int(1)}):",
            14: f"for xs[{self.int(1)} % 2] in [1, 2]:",
        }
        self.write(heads[kind])
        self.indent += 1
        self.write("emit('round')")
        self.indent -= 1
        self.loop_body()
        self.loop_else()

    def try_(self) -> None:
        self.write("try:")
        self.block()
        handlers = self.choose(3)
        has_finally = handlers == 0 or self.chance(3)
        for index in range(handlers):
            caught = self.pick(CATCHES)
            named = self.chance(2)
            self.write(f"except {caught} as e:" if named else f"except {caught}:")
            self.in_handler += 1
            if named:
                self.write("    emit(type(e).__name__, e.args)")
            self.block()
            self.in_handler -= 1
            if index == handlers - 1 and self.chance(3):
                self.write("else:")
                self.block(2)
        if has_finally:
            self.write("finally:")
            before, self.in_handler = self.in_handler, 0
            self.block(2)
            self.in_handler = before

    def match_(self) -> None:
        self.write(f"match ({self.int(2)}) % 4, {self.int(1)}:")
        self.indent += 1
        patterns = ("(0, _)", "(1, a)", "(2 | 3 as b, c)", "(x, y)", "[*ys]")
        for pattern in patterns[self.choose(3) : 2 + self.choose(3)]:
            guard = f" if {self.test(1 + self.choose(2))}" if self.chance(2) else ""
            self.write(f"case {pattern}{guard}:")
            self.block(2)
        self.write("case _:")
        self.block(1)
        self.indent -= 1

    def select_(self) -> None:
        if not self.waits_allowed:
            self.simple()
            return
        self.write("match await select(timer(Clock.RING, after=SECOND), Ping, Quit, sleep(SECOND)):")
        self.indent += 1
        for pattern in ("Clock.RING", "Ping(a)", "Quit()", "None"):
            guard = f" if {self.test(1 + self.choose(2))}" if self.chance(3) else ""
            self.write(f"case {pattern}{guard}:")
            self.block(2)
        self.indent -= 1

    def native_(self) -> None:
        """Constructs that stay ordinary Python, with jumps out of them."""
        before, self.waits_allowed = self.waits_allowed, False
        if self.chance(2):
            self.write(f"with traced({self.int(1)}):")
            self.block()
        else:
            self.write("for q in (1, 2):")
            self.loop_body()
        self.waits_allowed = before


def program(choose: Callable[[int], int], size: int = 14) -> str:
    """Source text of a workflow called `program`, perhaps with subroutines."""
    text: list[str] = []
    count = choose(3)
    for index in range(count):
        generator = Generator(choose, size // 3)
        generator.subroutines = index
        generator.write("a, b, c, xs, ys, d = n, 2, 3, [n, 5, 1], [1, 2, 3], {0: 1, 1: n, 2: 5, 3: 6}")
        generator.write("bag = Bag([n, 2])")
        generator.statements(2 + choose(3))
        if choose(3) == 2:
            generator.write(f"if n > 90: return await helper{index}(ctx, n - 3)")
        generator.write(f"return {generator.int(2)}")
        text += [
            "@subroutine",
            f"async def helper{index}(ctx: WorkflowContext, n: int) -> int:",
            *generator.lines,
            "",
        ]
    generator = Generator(choose, size)
    generator.subroutines = count
    generator.write("xs, ys, d = [3, 1, 2], [4, 5, 6], {0: 10, 1: 11, 2: 12, 3: 13}")
    generator.write("bag = Bag([7, 8])")
    if choose(8) < 7:
        generator.write("a, b, c = 1, 2, 3")
    else:
        generator.write("if d[0] == 11: a, b, c, t, s = 1, 2, 3, (1, 2), ''")
    if choose(8) < 7:
        generator.write("t, s = (1, 2), ''")
    generator.statements(3 + choose(6))
    generator.write(f"return {generator.int(2)}")
    text += ["@workflow", "async def program(ctx: WorkflowContext) -> int:", *generator.lines, ""]
    return "\n".join(text)


def events(choose: Callable[[int], int], count: int = 40) -> list[object]:
    """What the awaits give, in order: numbers, and now and then an exception. See `event_value`."""
    found: list[object] = []
    for _ in range(count):
        kind = choose(26)
        found.append(kind % 12 if kind < 25 else (*ERRORS, "Cancelled")[choose(5)])
    return found
