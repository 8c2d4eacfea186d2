"""The guides as a site: their order, the examples as pages, links that work here as they do where the code is hosted.

Nothing here changes a guide: all of it follows from plain Markdown.

* The lists of docs/README.md are the navigation. A page that no list names is a warning.
* A Python file of the examples is a page: its docstring, then its source.
* A link to a directory leads to its README; what lies in the repository but not on the site becomes plain text.
* Code such as `Database.call` leads to the reference; a member that the class does not have is a warning.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Final

import griffe
from docutils import nodes
from myst_parser.parsers.sphinx_ import MystParser
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

from docs.site import public

logger = logging.getLogger(__name__)

_FENCE: Final = "`" * 5
_SECTION: Final = re.compile(r"^## (?P<title>.+)\n(?P<text>(?:(?!## ).*\n)*)", re.MULTILINE)
_LISTED: Final = re.compile(r"^(?:\d+\.|[*-]) \[(?P<text>[^\]]+)\]\((?P<target>[^)#:]+)\)", re.MULTILINE)
_LINK: Final = re.compile(r"\]\((?P<target>[^)#:]+)\)")
_NAME: Final = re.compile(
    r"(?:(?P<package>gamedb|workflow_module)\.)?(?P<path>[A-Za-z_]\w*(?:\.[a-z_]\w*)?)(?:\(.*\))?", re.S
)


class ExampleParser(MystParser):
    """A Python file as a page."""

    supported = ("python",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        path = Path(document["source"]).relative_to(public.ROOT / "examples")
        tree = ast.parse(inputstring)
        told = ast.get_docstring(tree)
        skipped = 0 if told is None else tree.body[0].end_lineno or 0
        rest = "".join(inputstring.splitlines(keepends=True)[skipped:])
        first = skipped + 1 + len(rest) - len(rest.lstrip("\n"))
        block = f"{_FENCE}{{code-block}} python\n:lineno-start: {first}\n\n{rest.strip()}\n{_FENCE}"
        super().parse(f"# {path}\n\n{told or ''}\n\n{block}\n", document)


def add_navigation(app: Sphinx, docname: str, source: list[str]) -> None:
    """Each list of the front page is a part of the navigation; another README has the pages of its directory."""
    directory = Path(app.env.doc2path(docname)).parent
    parts: list[tuple[str, list[str]]] = []
    if docname == app.config.root_doc:
        for section in _SECTION.finditer(source[0]):
            entries: list[str] = []
            for text, target in _LISTED.findall(section["text"]):
                pages = _pages(app, directory / target)
                entries += [f"{text.replace('`', '')} </{pages[0]}>"] if len(pages) == 1 else _slashed(pages)
            parts.append((section["title"], entries))
    elif docname.endswith("/README"):
        linked = [page for target in _LINK.findall(source[0]) for page in _pages(app, directory / target)]
        below = [page for page in _below(app, directory) if page != docname]
        below.sort(key=lambda page: linked.index(page) if page in linked else len(linked))
        parts.append(("", _slashed(below)))
    for title, entries in parts:
        if entries:
            head = ["````{toctree}", ":hidden:", *([f":caption: {title}"] if title else []), ""]
            source[0] += "\n".join(["\n", *head, *entries, "````\n"])


def _slashed(pages: list[str]) -> list[str]:
    return [f"/{page}" for page in pages]


def _pages(app: Sphinx, path: Path) -> list[str]:
    """The page of a file; of a directory its README, or all pages when it has none."""
    if path.is_dir():
        below = _below(app, path)
        return [page for page in below if page.endswith("/README")][:1] or below
    page = app.env.path2doc(path.resolve())
    return [page] if page else []


def _below(app: Sphinx, directory: Path) -> list[str]:
    prefix = f"{directory.resolve().relative_to(public.ROOT).as_posix()}/"
    return [page for page in sorted(app.env.found_docs) if page.startswith(prefix)]


class RepositoryLinks(SphinxTransform):
    """Links to places of the repository that are no pages."""

    default_priority = 100

    def apply(self) -> None:
        directory = Path(self.env.doc2path(self.env.docname)).parent
        for link in list(self.document.findall(addnodes.pending_xref)):
            if link.get("reftype") != "myst":
                continue
            target = link["reftarget"]
            if link["refdomain"] == "doc":
                if target not in self.env.found_docs:
                    link.replace_self(link.children)
            elif target and not target.startswith("#") and (path := (directory / target).resolve()).is_dir():
                readme = f"{path.relative_to(public.ROOT).as_posix()}/README"
                if readme in self.env.found_docs:
                    link["refdomain"], link["reftarget"], link["reftargetid"] = "doc", readme, None
                else:
                    link.replace_self(link.children)


class CodeLinks(SphinxTransform):
    """Code that names something public leads to it."""

    default_priority = 800

    def apply(self) -> None:
        for literal in list(self.document.findall(nodes.literal)):
            if isinstance(literal.parent, nodes.reference | addnodes.pending_xref | addnodes.download_reference):
                continue
            if any(isinstance(part, nodes.title | addnodes.desc_signature) for part in _around(literal)):
                continue
            if target := self.target(literal):
                link = addnodes.pending_xref(
                    "", refdomain="py", reftype="obj", reftarget=target, refexplicit=True, refdoc=self.env.docname
                )
                literal.replace_self(link)
                link += literal

    def target(self, literal: nodes.literal) -> str | None:
        found = _NAME.fullmatch(literal.astext())
        if found is None:
            return None
        name, _, member = found["path"].partition(".")
        own = "" if member else _described(literal)
        if own and name in _members(own):
            return f"{own}.{name}"
        homes = [home for home in _homes().get(name, ()) if found["package"] in (None, home.partition(".")[0])]
        a_word = name.islower() and not found["package"] and "(" not in literal.astext()  # `signal` may be anything
        if len(homes) != 1 or a_word:
            return None
        [home] = homes
        if not member or member in _members(home):
            return f"{home}.{member}" if member else home
        if _members(home) and not public.has(home, member):
            logger.warning("`%s`: %s has no %r", literal.astext(), home, member, location=literal)
        return None


def _described(node: nodes.Node) -> str:
    """The class whose docstring, or whose member's docstring, this is in."""
    for part in _around(node):
        if isinstance(part, addnodes.desc) and part["objtype"] in ("class", "exception"):
            signature = part.children[0]
            assert isinstance(signature, addnodes.desc_signature)
            return f"{signature['module']}.{signature['fullname']}"
    return ""


def _around(node: nodes.Node) -> list[nodes.Element]:
    around = []
    while node.parent is not None:
        node = node.parent
        around.append(node)
    return around


@cache
def _homes() -> dict[str, list[str]]:
    """The public paths of each name."""
    homes: dict[str, list[str]] = {}
    for path in public.published().values():
        homes.setdefault(path.rpartition(".")[2], []).append(path)
    return homes


@cache
def _members(path: str) -> set[str]:
    cls = public.find(path)
    return {member.name for member in public.members(cls)} if isinstance(cls, griffe.Class) else set()


def add_entrance(app: Sphinx, error: Exception | None) -> None:
    """The pages lie as in the repository, so the front page is not the one that a server shows first."""
    if error is None and app.builder.format == "html":
        front = app.builder.get_target_uri(app.config.root_doc)
        (Path(app.outdir) / "index.html").write_text(
            f'<!doctype html><meta charset="utf-8"><title>{app.config.html_title}</title>'
            f'<meta http-equiv="refresh" content="0; url={front}"><a href="{front}">{app.config.html_title}</a>\n'
        )


def setup(app: Sphinx) -> None:
    app.add_source_suffix(".py", "python")
    app.add_source_parser(ExampleParser)
    app.add_transform(RepositoryLinks)
    app.add_transform(CodeLinks)
    app.connect("source-read", add_navigation)
    app.connect("build-finished", add_entrance)
