"""From `package.file:object` to the Module: imports the user's code, and tells what is wrong in the user's terms.

No traceback reaches the terminal: an error shows the line of the user's own code that it came from.
"""

from __future__ import annotations

import difflib
import glob
import importlib
import importlib.util
import linecache
import os
import pkgutil
import re
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Annotated, Final, NoReturn

import typer

from gamedb.cli.output import fail, prints_aside
from gamedb.errors import SchemaError
from gamedb.module import Module
from gamedb.resolved import Resolved

Target = Annotated[
    str,
    typer.Argument(
        metavar="MODULE:OBJECT",
        help="The game, such as game:module. ':OBJECT' may be left out when the file has only one.",
        show_default=False,
    ),
]

_USAGE: Final = "A game is named like this: gamedb describe game:module"
_OURS: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def database_file(data_dir: Path, module: Module) -> Path:
    """Where the database of a module stands in a data directory."""
    return data_dir / f"{module.name}.db"


def load_module(target: str) -> Module:
    """The Module that `target` names; ends the command with an error when there is none."""
    dotted, _, attribute = target.partition(":")
    if dotted.endswith(".py") or "/" in dotted or os.sep in dotted:
        name = re.sub(r"[/\\]+", ".", dotted.removesuffix(".py").removeprefix("./"))
        fail(f"{dotted!r} is a file name.", f"Write it as a module: {name}:{attribute or 'module'}")
    if not all(part.isidentifier() for part in dotted.split(".")):
        fail(f"{dotted!r} is not the name of a Python module.", _USAGE)
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    return _pick(_import(dotted, attribute), dotted, attribute)


def resolve(module: Module) -> Resolved:
    """Everything that the module declares; ends the command when it does not fit together."""
    try:
        return module.resolve()
    except SchemaError as error:
        fail(f"module {module.name!r} cannot work: {error}")


def _import(dotted: str, attribute: str) -> ModuleType:
    try:
        with prints_aside():
            return importlib.import_module(dotted)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{dotted}.".startswith(f"{error.name}."):
            _not_found(dotted, error.name, attribute)
        _fail_import(dotted, error)
    except SyntaxError as error:
        place = f"{_shown(error.filename or dotted)}:{error.lineno}"
        line = (error.text or "").strip()
        fail(f"{dotted!r} cannot be imported.", f"  {place}\n    {line}\n  SyntaxError: {error.msg}")
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever the user's code does, SystemExit included
        _fail_import(dotted, error)


def _not_found(dotted: str, missing: str, attribute: str) -> NoReturn:
    parent, _, last = missing.rpartition(".")
    where = f"package {parent!r}" if parent else f"the current directory ({_shown(os.getcwd(), home=True)})"
    if parent and not hasattr(sys.modules[parent], "__path__"):
        fail(f"{parent!r} is a file, not a package; it has no {last!r}.", f"Did you mean {parent}:{last}?")
    if missing == "examples" and importlib.util.find_spec("gamedb_examples"):
        colon = ":" if attribute else ""
        fail(f"there is no module {missing!r} in {where}.", f"Did you mean gamedb_{dotted}{colon}{attribute}?")
    known = list(_modules_in(parent))
    if not parent and (inside := _directory_with(last)):
        fail(f"there is no module {missing!r} in {where}.", f"There is one in {inside}/: cd {inside}")
    close = difflib.get_close_matches(last, known, 1, cutoff=0.5)
    if close:
        guess = dotted.replace(missing, f"{parent}.{close[0]}" if parent else close[0], 1)
        hint = f"Did you mean {guess}{':' if attribute else ''}{attribute}?"
    elif known:
        hint = f"It has: {', '.join(sorted(known)[:12])}{', ...' if len(known) > 12 else ''}"
    else:
        hint = "Change to the directory that holds it, or put that directory on PYTHONPATH."
    fail(f"there is no module {missing!r} in {where}.", hint)


def _modules_in(package: str) -> Iterable[str]:
    """The modules that could have been meant: of the package, or of the current directory."""
    path = list(sys.modules[package].__path__) if package else [os.getcwd()]
    names = {info.name for info in pkgutil.iter_modules(path)}
    for directory in path:  # folders without __init__.py can be imported, too
        for entry in os.scandir(directory):
            if entry.is_dir() and entry.name.isidentifier() and any(Path(entry.path).glob("*.py")):
                names.add(entry.name)
    return names - {"setup", "conftest", "__pycache__"}


def _directory_with(name: str) -> str | None:
    """The one directory below the current one that has this module, as after `gamedb init`."""
    found = sorted(path.parent.name for path in Path.cwd().glob(f"*/{glob.escape(name)}.py"))
    return found[0] if len(found) == 1 else None


def _fail_import(dotted: str, error: BaseException) -> NoReturn:
    text = str(error)
    if isinstance(error, SchemaError):
        headline, shown = f"{dotted!r} declares something that cannot work: {text}", ""
    else:
        headline = f"{dotted!r} cannot be imported."
        shown = f"  {type(error).__name__}{': ' if text else ''}{text}"
    place = _user_line(error)
    hint = ""
    if isinstance(error, ModuleNotFoundError):
        hint = f"\nIs {(error.name or '').partition('.')[0]!r} installed in this environment ({_shown(sys.prefix)})?"
    fail(headline, f"{place}{shown}{hint}".rstrip("\n"))


def _user_line(error: BaseException) -> str:
    """The innermost line of the user's own code on the way to the error."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if _is_users(f.filename)]
    if not frames:
        return ""
    filename, number = frames[-1].filename, frames[-1].lineno or 1
    line = linecache.getline(filename, number).strip()
    return f"  {_shown(filename)}:{number}\n    {line}\n"


def _is_users(filename: str) -> bool:
    library = os.path.dirname(os.__file__) + os.sep
    return not filename.startswith((_OURS, library, "<")) and f"{os.sep}site-packages{os.sep}" not in filename


def _shown(path: str, home: bool = False) -> str:
    """A path as short as it can be written."""
    here = os.getcwd() + os.sep
    if path.startswith(here):
        return path.removeprefix(here)
    return path.replace(os.path.expanduser("~"), "~", 1) if home else path


def _pick(found: ModuleType, dotted: str, attribute: str) -> Module:
    modules = {name: value for name, value in vars(found).items() if isinstance(value, Module)}
    listed = ", ".join(f"{dotted}:{name}" for name in modules)
    if not attribute:
        if len({id(m) for m in modules.values()}) == 1:
            return next(iter(modules.values()))
        if modules:
            fail(f"{dotted!r} has several modules.", f"Say which one: {listed}")
        fail(f"{dotted!r} has no gamedb.Module in it.", 'It needs a line such as: module = Module("arena")')
    value = vars(found).get(attribute, found)
    if isinstance(value, Module):
        return value
    if value is found:
        problem = f"{dotted!r} has no {attribute!r}."
    else:
        problem = f"{dotted}:{attribute} is of type {type(value).__name__}, not a gamedb.Module."
    if modules:
        fail(problem, f"It has {'this module' if len(modules) == 1 else 'these modules'}: {listed}")
    fail(problem, 'There is no Module in it at all; it needs a line such as: module = Module("arena")')
