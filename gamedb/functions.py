"""Reducers, procedures and views as declared: names, parameters and results, and how a call is bound to them.

`Function.bind` is generated for each function: it takes the caller's arguments in any of their forms and gives the
canonical ones, or an `ArgumentError` that names what is wrong. It knows no database.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec

from gamedb.columns import ColumnType, Names, OptionType, ProductType, column_type, product_type, resolve_hints, shown
from gamedb.errors import ArgumentError, ColumnError, SchemaError
from gamedb.schema import Row

Kind = Literal["reducer", "procedure", "view"]
Lifecycle = Literal["init", "client_connected", "client_disconnected"]


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """One parameter after the context."""

    name: str
    type: ColumnType
    default: Any
    """`msgspec.NODEFAULT` when the caller must give it."""
    keyword_only: bool = False


class Function(msgspec.Struct, frozen=True, kw_only=True):
    """One declared function."""

    name: str
    kind: Kind
    function: Callable[..., Any]
    parameters: tuple[Parameter, ...]
    bind: Callable[..., tuple[Any, ...]]
    """Arguments as given to canonical arguments in parameter order."""
    invoke: Callable[..., Any]
    """`invoke(ctx, *arguments)`: the function itself unless it has keyword-only parameters."""
    is_async: bool = False
    lifecycle: Lifecycle | None = None
    private: bool = False
    """Not for clients: lifecycle and scheduled functions, procedures with a queue, what is declared `private=True`."""
    returns: ColumnType | None = None
    """The type of a procedure's result (`None`: it has none), or of the rows of a view."""
    row: type[Row] | None = None
    """The row class of a view's result."""
    many: bool = False
    """Whether a view gives a list (otherwise a row or `None`)."""
    public: bool = True
    """Whether clients may subscribe to a view."""
    queue: str | None = None
    """The queue from which workers in other processes take the calls of a procedure; `None`: it runs here."""

    def arguments_from(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        """The canonical arguments of an in-process call; `ArgumentError` names what does not fit."""
        try:
            return self.bind(*args, **kwargs)
        except ColumnError as error:
            raise ArgumentError(f"{self.kind} {self.name!r}: {error}") from None
        except TypeError:
            raise ArgumentError(self._mismatch(args, kwargs)) from None

    def arguments_from_json(self, arguments: bytes | str | list[Any] | dict[str, Any]) -> tuple[Any, ...]:
        """The canonical arguments from JSON: an array in parameter order, or an object by parameter name."""
        if isinstance(arguments, bytes | str):
            try:
                arguments = msgspec.json.decode(arguments)
            except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
                raise ArgumentError(f"{self.kind} {self.name!r}: the arguments are not JSON: {error}") from None
        try:
            return self.arguments_decoded(arguments, lambda kind, value, name: kind.from_json(value, name))
        except ColumnError as error:
            raise ArgumentError(f"{self.kind} {self.name!r}: {error}") from None

    def arguments_decoded(self, given: Any, decode: Callable[[ColumnType, Any, str], Any]) -> tuple[Any, ...]:
        """The canonical arguments from an array in parameter order or an object by name, in some form of JSON.

        `decode(type, value, name)` reads a value; what it raises goes on.
        """
        if isinstance(given, list) and len(given) <= len(self.parameters):
            given = {p.name: value for p, value in zip(self.parameters, given, strict=False)}
        if not isinstance(given, dict):
            count = f"{len(self.parameters)} argument{'' if len(self.parameters) == 1 else 's'} ({self.signature})"
            found = f"an array of {len(given)}" if isinstance(given, list) else shown(given)
            raise ArgumentError(f"{self.kind} {self.name!r}: takes {count} as a JSON array or object, got {found}")
        types = {p.name: p.type for p in self.parameters}
        values = {name: decode(types[name], v, name) if name in types else v for name, v in given.items()}
        return self.arguments_from((), values)

    @property
    def signature(self) -> str:
        """The parameters as text: `player_id: u64, amount: u32 = 1`."""
        parts = []
        for p in self.parameters:
            default = "" if p.default is msgspec.NODEFAULT else f" = {shown(p.default)}"
            parts.append(f"{p.name}: {p.type.name}{default}")
        return ", ".join(parts)

    def _mismatch(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        names = [p.name for p in self.parameters]
        positional = [p.name for p in self.parameters if not p.keyword_only]
        given = set(positional[: len(args)]) | set(kwargs)
        missing = [p.name for p in self.parameters if p.name not in given and p.default is msgspec.NODEFAULT]
        unknown = [name for name in kwargs if name not in names]
        twice = [name for name in positional[: len(args)] if name in kwargs]
        if unknown:
            problem = f"has no parameter {unknown[0]!r}"
        elif len(args) > len(positional):
            problem = f"takes {len(positional)} positional arguments, got {len(args)}"
        elif twice:
            problem = f"got {twice[0]!r} twice"
        else:
            problem = f"needs {', '.join(map(repr, missing))}"
        return f"{self.kind} {self.name!r} {problem}; it takes ({self.signature})"


def declare(
    function: Callable[..., Any],
    kind: Kind,
    *,
    name: str | None = None,
    lifecycle: Lifecycle | None = None,
    private: bool = False,
    public: bool = True,
    queue: str | None = None,
    scope: Names = None,
) -> Function:
    """Read a decorated function; `SchemaError` says what a game function cannot have."""
    if not inspect.isfunction(function):
        raise SchemaError(f"@module.{kind} is for functions, not {shown(function)}")
    where = f"{kind} {function.__name__}"
    hints = resolve_hints(function, where, scope)
    _check_shape(function, kind, where)
    _check_context(function, hints, where)
    parameters = _parameters(function, hints, where, scope)
    if queue == "":
        raise SchemaError(f"{where}: queue='' is no name; give one, such as queue=\"llm\"")
    if lifecycle is not None and parameters:
        raise SchemaError(f"{where}: a lifecycle reducer takes the context alone, not {parameters[0].name!r}")
    returned = hints.get("return", type(None))
    row: type[Row] | None = None
    many = False
    returns: ColumnType | None = None
    if kind == "view":
        row, many = _view_result(returned, where, scope)
        returns = product_type(row, f"{where}: result", scope)
    elif kind == "procedure" and returned is not type(None):
        returns = column_type(returned, f"{where}: result", scope)
    return Function(
        name=name or function.__name__,
        kind=kind,
        function=function,
        parameters=parameters,
        bind=_binder(function, parameters),
        invoke=_invoker(function, parameters),
        is_async=inspect.iscoroutinefunction(function),
        lifecycle=lifecycle,
        private=private or lifecycle is not None or queue is not None,
        returns=returns,
        row=row,
        many=many,
        public=public,
        queue=queue,
    )


def _check_shape(function: Callable[..., Any], kind: Kind, where: str) -> None:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise SchemaError(f"{where} is a generator; return a value instead of yielding")
    if inspect.iscoroutinefunction(function) and kind != "procedure":
        raise SchemaError(
            f"{where} is async, but a transaction cannot wait; use def, or @module.procedure for work that waits"
        )
    if not inspect.signature(function).parameters:
        raise SchemaError(f"{where} needs the context as its first parameter: def {function.__name__}(ctx, ...)")


def _check_context(function: Callable[..., Any], hints: dict[str, Any], where: str) -> None:
    """Refuse a first parameter that is plainly no context: the caller's first argument, where `ctx` was forgotten."""
    first = next(iter(inspect.signature(function).parameters))
    kind = hints.get(first)
    kind = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    if kind in (bool, int, float, str) or (isinstance(kind, type) and issubclass(kind, bytes | Row)):
        raise SchemaError(
            f"{where} needs the context as its first parameter, before {first!r}: "
            f"def {function.__name__}(ctx, {first}, ...)"
        )


def _parameters(function: Callable[..., Any], hints: dict[str, Any], where: str, scope: Names) -> tuple[Parameter, ...]:
    result = []
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise SchemaError(f"{where}: *{parameter.name} cannot come over the wire; name each parameter")
        if parameter.name.startswith("_"):
            raise SchemaError(f"{where}: parameter {parameter.name!r} must not begin with an underscore")
        if parameter.name not in hints:
            raise SchemaError(f"{where}: parameter {parameter.name!r} needs a type, such as {parameter.name}: u64")
        kind = column_type(hints[parameter.name], f"{where}: parameter {parameter.name}", scope)
        default: Any = msgspec.NODEFAULT
        if parameter.default is not parameter.empty:
            try:
                default = kind.coerce(parameter.default, parameter.name)
            except ColumnError as error:
                raise SchemaError(f"{where}: the default of {error}") from None
        keyword_only = parameter.kind is parameter.KEYWORD_ONLY
        result.append(Parameter(name=parameter.name, type=kind, default=default, keyword_only=keyword_only))
    return tuple(result)


def _view_result(returned: Any, where: str, scope: Names) -> tuple[type[Row], bool]:
    origin, args = typing.get_origin(returned), typing.get_args(returned)
    candidate = args[0] if origin is list else returned
    if origin is not list and args:
        kind = column_type(returned, f"{where}: result", scope)
        inner = kind.inner if isinstance(kind, OptionType) else kind
        candidate = inner.cls if isinstance(inner, ProductType) else None
    if not (isinstance(candidate, type) and issubclass(candidate, Row)):
        raise SchemaError(f"{where} must return a Row, a Row or None, or a list of Rows; annotate it: -> list[Player]")
    return candidate, origin is list


def _binder(function: Callable[..., Any], parameters: Sequence[Parameter]) -> Callable[..., tuple[Any, ...]]:
    scope: dict[str, Any] = {}
    heads, lines = [], []
    starred = False
    for number, p in enumerate(parameters):
        if p.keyword_only and not starred:
            heads.append("*")
            starred = True
        if p.default is msgspec.NODEFAULT:
            heads.append(p.name)
        else:
            scope[f"_default{number}"] = p.default
            heads.append(f"{p.name}=_default{number}")
        scope[f"_coerce_argument{number}"] = p.type.coerce
        lines.append(f"    if not {p.type.fast(p.name, scope)}:")
        lines.append(f"        {p.name} = _coerce_argument{number}({p.name}, {p.name!r})")
    values = "".join(f"{p.name}, " for p in parameters)
    source = "\n".join([f"def bind({', '.join(heads)}):", *lines, f"    return ({values})"])
    exec(compile(source, f"<gamedb call {function.__name__}>", "exec"), scope)
    bind: Callable[..., tuple[Any, ...]] = scope["bind"]
    return bind


def _invoker(function: Callable[..., Any], parameters: Sequence[Parameter]) -> Callable[..., Any]:
    if not any(p.keyword_only for p in parameters):
        return function
    split = sum(not p.keyword_only for p in parameters)
    names = [p.name for p in parameters[split:]]

    def invoke(ctx: Any, *arguments: Any) -> Any:
        return function(ctx, *arguments[:split], **dict(zip(names, arguments[split:], strict=True)))

    return invoke
