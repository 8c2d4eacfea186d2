"""The directive `commands`: the command line, from what the typer application declares."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import typer
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from typer.models import ArgumentInfo, OptionInfo
from typer.utils import get_params_from_function

from gamedb.cli import app

logger = logging.getLogger(__name__)


class CommandsDirective(SphinxDirective):
    """A section for each command and subcommand."""

    def run(self) -> list[nodes.Node]:
        text = "\n".join(line for path, command in _commands("gamedb", app) for line in _section(path, command))
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def _commands(path: str, application: typer.Typer) -> Iterator[tuple[str, Callable[..., Any]]]:
    for command in application.registered_commands:
        assert command.callback is not None
        yield f"{path} {command.name or command.callback.__name__.replace('_', '-')}", command.callback
    for group in application.registered_groups:
        assert group.typer_instance is not None
        yield from _commands(f"{path} {group.name}", group.typer_instance)


def _section(path: str, command: Callable[..., Any]) -> Iterator[str]:
    if not command.__doc__:
        logger.warning("the command %s has no docstring", path)
    arguments, options = _parameters(command)
    usage = [path, "[OPTIONS]" if options else "", *(word for word, _ in arguments)]
    yield from (f"## {path}", "", "```text", " ".join(filter(None, usage)), "```", "")
    for paragraph in inspect.cleandoc(command.__doc__ or "").split("\n\n"):
        title, _, rest = paragraph.partition("\n")
        yield from ("```text", inspect.cleandoc(rest), "```", "") if title == "Examples:" else (_plain(paragraph), "")
    for word, told in (*arguments, *options):
        if not told:
            logger.warning("%s: %s has no help", path, word)
        yield f"- `{word}`: {told}"
    yield ""


def _parameters(command: Callable[..., Any]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The arguments and the options: how each is written, and its help."""
    arguments: list[tuple[str, str]] = []
    options: list[tuple[str, str]] = []
    for name, parameter in get_params_from_function(command).items():
        info = parameter.default
        if isinstance(info, ArgumentInfo):
            word = info.metavar or name.upper()
            optional = info.default is not ... and not word.startswith("[")
            arguments.append((f"[{word}]" if optional else word, _plain(info.help or "")))
        elif isinstance(info, OptionInfo) and not info.hidden:
            words = ", ".join(info.param_decls or (f"--{name.replace('_', '-')}",))
            told = _plain(info.help or "")
            if info.default not in (..., None, False, "") and isinstance(info.default, str | int):
                told += f" Default: `{info.default}`."
            options.append((f"{words} {info.metavar}" if info.metavar else words, told))
    return arguments, options


def _plain(text: str) -> str:
    """Without the marks of rich."""
    return re.sub(r"\[/?[a-z ]+\]", "", text)


def setup(app: Sphinx) -> None:
    app.add_directive("commands", CommandsDirective)
