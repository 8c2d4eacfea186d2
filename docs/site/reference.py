"""The directive `public`: what a package promises, as signatures and docstrings.

    ```{public} gamedb
    Module
    Row
    ```

Signatures are shown as their author wrote them, with each name linked to where it is public; a name of ours that a
signature needs and that is nowhere public is a warning. Docstrings are Markdown. A public name that no page shows is a
warning, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import griffe
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from docs.site import public

logger = logging.getLogger(__name__)
OVERLOADS_SHOWN_MAX = 4
"""More would be a wall; then the signature of the implementation stands for them."""
_PROMPT = re.compile(r"^(?:>>>.*\n(?:(?!>>>)\S.*\n)*)+", re.MULTILINE)
_OURS = ("gamedb.", "workflow_module.")


class PublicDirective(SphinxDirective):
    """Shows the public names in its body, one a line, of the package that is its argument."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        package = self.arguments[0]
        lines = [f":::{{py:currentmodule}} {package}", ":::", ""]
        for name in filter(None, (line.strip() for line in self.content)):
            if name not in public.names(package):
                logger.warning("%s has no public name %r", package, name, location=self.get_location())
            else:
                lines += _Text(package).top(name)
        node = nodes.container()
        node.document = self.state.document
        self.state.nested_parse(StringList(lines, source=f"<{package}>"), self.content_offset, node)
        return node.children


class _Text:
    """Markdown of one public name."""

    def __init__(self, package: str) -> None:
        self.package = package

    def top(self, name: str) -> list[str]:
        thing = public.find(f"{self.package}.{name}")
        home = public.published()[thing.path]
        if home != f"{self.package}.{name}":
            return self.block("py:data", name, {"no-index": ""}, f"The same as `{home}`.")
        if isinstance(thing, griffe.Class):
            return self.a_class(name, thing)
        if isinstance(thing, griffe.Function):
            return self.function("py:function", name, thing)
        assert isinstance(thing, griffe.Attribute)
        return self.alias(name, thing)

    def block(
        self, directive: str, signature: str, options: dict[str, str], *content: str | Iterable[str]
    ) -> list[str]:
        """A directive, with text and blocks inside; the fence is longer than those within."""
        inside: list[str] = []
        for part in content:
            inside += ["", *(part.splitlines() if isinstance(part, str) else part)]
        fence = ":" * (1 + max([2, *(len(line) - len(line.lstrip(":")) for line in inside)]))
        head = [f"{fence}{{{directive}}} {signature}", *(f":{k}: {v}".rstrip() for k, v in options.items())]
        return [*head, *inside, fence, ""]

    def a_class(self, name: str, cls: griffe.Class) -> list[str]:
        base = next((base.path for base in cls.mro() if base.path in public.published()), None)
        told = "" if base is None else f"*Base:* {{py:class}}`~{public.published()[base]}`"
        inside = [line for member in public.members(cls) for line in self.member(member)]
        kind = "py:exception" if _is_error(cls) else "py:class"
        return self.block(kind, name + self.constructor(cls), {}, told, markdown(cls), inside)

    def constructor(self, cls: griffe.Class) -> str:
        """The parameters, when it is for users: not of errors and structs, nor where only we have what it takes."""
        init = cls.all_members.get("__init__")
        made = "Made by" in markdown(cls)
        if made or _is_error(cls) or public.is_data(cls) or init is None or not init.path.startswith(_OURS):
            return ""
        function = init.final_target if isinstance(init, griffe.Alias) else init
        if not isinstance(function, griffe.Function) or public.hidden(function):
            return ""
        return self.parameters(function, function)

    def member(self, member: griffe.Function | griffe.Attribute) -> list[str]:
        if isinstance(member, griffe.Function):
            return self.function("py:method", member.name, member)
        if "property" in member.labels or "cached" in member.labels:
            options = {"type": self.annotation(member.annotation)} if member.annotation is not None else {}
            return self.block("py:property", member.name, options, markdown(member))
        options = {}
        if member.annotation is not None:
            options["type"] = self.annotation(member.annotation)
        if member.value is not None and "class-attribute" in member.labels:
            options["value"] = str(member.value)
        return self.block("py:attribute", member.name, options, markdown(member))

    def function(self, directive: str, name: str, function: griffe.Function) -> list[str]:
        overloads = function.overloads or []
        shown = overloads if 0 < len(overloads) <= OVERLOADS_SHOWN_MAX else [function]
        options: dict[str, str] = {}
        if directive == "py:method":
            options |= {label: "" for label in ("classmethod", "staticmethod") if label in function.labels}
        if "async" in function.labels:
            options["async"] = ""
        lines: list[str] = []
        for number, each in enumerate(shown, 1):
            text = markdown(function) if number == len(shown) else ""
            lines += self.block(directive, name + self.signature(each, function), options, text)
            options = options | {"no-index": ""}
        return lines

    def alias(self, name: str, thing: griffe.Attribute) -> list[str]:
        value = public.alias_of(thing)
        options = {} if value is None else {"canonical": self.annotation(value)}
        markers = name in ("PrimaryKey", "AutoInc", "Unique", "Index")
        return self.block("py:type", f"{name}[T]" if markers else name, options, markdown(thing))

    # --- signatures

    def signature(self, function: griffe.Function, implementation: griffe.Function) -> str:
        returns = f" -> {self.annotation(function.returns)}" if function.returns is not None else ""
        return self.parameters(function, implementation) + returns

    def parameters(self, function: griffe.Function, implementation: griffe.Function) -> str:
        """`implementation` has the defaults for which an overload says `...`."""
        parts: list[str] = []
        before: griffe.ParameterKind | None = None
        parameters = [p for p in function.parameters if p.name not in ("self", "cls", "mcls")]
        kinds = griffe.ParameterKind
        for parameter in parameters:
            if before is kinds.positional_only and parameter.kind is not before:
                parts.append("/")
            if parameter.kind is kinds.keyword_only and before not in (kinds.keyword_only, kinds.var_positional):
                parts.append("*")
            before = parameter.kind
            stars = {kinds.var_positional: "*", kinds.var_keyword: "**"}.get(parameter.kind, "")
            text = stars + parameter.name
            if parameter.annotation is not None:
                text += f": {self.annotation(parameter.annotation)}"
            if parameter.default is not None and not stars:
                given = implementation if str(parameter.default) == "..." else function
                text += f"{' = ' if parameter.annotation is not None else '='}{self.default(given, parameter.name)}"
            parts.append(text)
        if before is kinds.positional_only:
            parts.append("/")
        return f"({', '.join(parts)})"

    def default(self, function: griffe.Function, name: str) -> str:
        """As it is written, a constant of ours as its value; what stands for `not given` is `...`."""
        value = function.parameters[name].default if name in function.parameters else None
        if value is None:
            return "..."
        target = public.meaning(value) if isinstance(value, griffe.ExprName) else None
        if isinstance(target, griffe.Attribute) and target.value is not None:
            text = str(target.value)
            return "..." if text == "object()" else text
        return str(value)

    def annotation(self, annotation: griffe.Expr | str) -> str:
        if isinstance(annotation, str):
            return annotation
        flat = annotation.iterate(flat=True)
        parts = [self.name(part) if isinstance(part, griffe.ExprName) else str(part) for part in flat]
        return re.sub(r"\s+", " ", "".join(parts)).strip()

    def name(self, name: griffe.ExprName) -> str:
        target = public.meaning(name)
        if target is None:
            return name.name
        if target.path in public.published():
            return f"~{public.published()[target.path]}"
        if isinstance(target, griffe.Attribute) and isinstance(target.value, griffe.Expr):
            return self.annotation(target.value)  # an alias of ours: what it stands for
        return f"~{target.path}"  # in full, so that it is not taken for a public thing of the same name


def _is_error(cls: griffe.Class) -> bool:
    every = [cls, *cls.mro()]
    return any(str(base).endswith(("Exception", "Error")) for one in every for base in one.bases)


def markdown(thing: griffe.Object) -> str:
    """Its docstring as Markdown: what is typed at a prompt becomes a block of code."""
    text = (public.docstring(thing) or "") + "\n"
    return _PROMPT.sub(lambda found: f"```pycon\n{found[0]}```\n", text).rstrip()


def check(app: Sphinx, env: BuildEnvironment) -> Iterable[str]:
    """Whether the reference has everything, and every type that it speaks of."""
    for path in public.published().values():
        if path not in env.domains.python_domain.objects:
            logger.warning("%s is public, and no page of docs/reference shows it", path)
    for path in public.undocumented():
        logger.warning("%s is public and has no docstring", path)
    for text in public.hidden_types():
        logger.warning("%s", text)
    return ()


def setup(app: Sphinx) -> None:
    app.add_directive("public", PublicDirective)
    app.connect("env-check-consistency", check)
