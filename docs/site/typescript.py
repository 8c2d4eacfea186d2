"""The directive `typescript`: what an entry of the npm package exports, with its comments, read by tree-sitter.

So the page needs no Node: the sources say it all, as they write out their types.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import tree_sitter_typescript
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from tree_sitter import Language, Node, Parser

from docs.site import public

logger = logging.getLogger(__name__)
SOURCES = public.ROOT / "client_ts" / "src"
_DECLARATIONS = ("class_declaration", "function_declaration", "interface_declaration", "type_alias_declaration")
_MEMBERS = ("method_definition", "public_field_definition")


class TypescriptDirective(SphinxDirective):
    """A section for each export of the file that is its argument."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        text = "\n".join(line for declaration in _exported(self.arguments[0]) for line in _section(declaration))
        return self.parse_text_to_nodes(text, allow_section_headings=True)


@cache
def _tree(file: str) -> Node:
    path = SOURCES / file
    language = tree_sitter_typescript.language_typescript()
    return Parser(Language(language)).parse(path.read_bytes()).root_node


def _exported(file: str) -> Iterator[Node]:
    """The declarations behind the exports of a file, its own and those that it takes from others."""
    for statement in _tree(file).named_children:
        if statement.type != "export_statement":
            continue
        source = statement.child_by_field_name("source")
        if source is None:
            if (own := _declaration(statement)) is not None:
                yield own
            continue
        other = Path(_text(source).strip("'\"")).with_suffix(".ts").as_posix()
        for specifier in _below(statement, "export_specifier"):
            name = _text(specifier.child_by_field_name("name"))
            found = [d for s in _tree(other).named_children if (d := _declaration(s)) is not None and _name(d) == name]
            if not found:
                logger.warning("%s exports %s, which is not declared in %s", file, name, other)
            yield from found


def _declaration(statement: Node) -> Node | None:
    if statement.type != "export_statement":
        return None
    declared = statement.child_by_field_name("declaration")
    return declared if declared is not None and declared.type in _DECLARATIONS else None


def _section(declaration: Node) -> Iterator[str]:
    name = _name(declaration)
    text = _text(declaration) if declaration.type != "class_declaration" else _class(declaration)
    if declaration.type == "function_declaration":
        text = _head(declaration)
    yield from (f"### {name}", "", *_told(declaration.parent, name), "```ts", text, "```", "")


def _class(declaration: Node) -> str:
    """What a class has for everybody, without what it does; comments stay."""
    body = declaration.child_by_field_name("body")
    assert body is not None
    shown = [_head(declaration) + " {"]
    for member in body.named_children:
        name, text = _name(member), _text(member)
        if member.type not in _MEMBERS or "#" in name or re.match(r"(private|override) ", text):
            continue
        comment = "\n".join(_comment(member))
        if not comment and name != "constructor":
            logger.warning("%s.%s of the npm package has no comment", _name(declaration), name)
        shown.append(f"{comment}\n{' ' * member.start_point.column}{_head(member)};".lstrip("\n"))
    return "\n".join([*shown, "}"])


def _head(node: Node) -> str:
    """Its text without its body."""
    body = node.child_by_field_name("body")
    text = node.text or b""
    return (text if body is None else text[: body.start_byte - node.start_byte]).decode().strip(" ;")


def _comment(node: Node | None) -> list[str]:
    """The lines of the comment in front."""
    before = node.prev_named_sibling if node is not None else None
    text = _text(before) if before is not None and before.type == "comment" else ""
    return [" " * before.start_point.column + text] if before is not None and text.startswith("/**") else []


def _told(node: Node | None, wanted_by: str) -> Iterator[str]:
    """The comment in front, as Markdown; that there is none is a warning."""
    comment = "\n".join(_comment(node)).strip()
    if not comment:
        logger.warning("%s of the npm package has no comment", wanted_by)
    yield from re.sub(r"^ *\* ?", "", comment[3:-2].strip(), flags=re.MULTILINE).split("\n")
    yield ""


def _below(node: Node, kind: str) -> Iterator[Node]:
    for child in node.named_children:
        if child.type == kind:
            yield child
        yield from _below(child, kind)


def _name(node: Node) -> str:
    return _text(node.child_by_field_name("name"))


def _text(node: Node | None) -> str:
    return "" if node is None or node.text is None else node.text.decode()


def setup(app: Sphinx) -> None:
    app.add_directive("typescript", TypescriptDirective)
