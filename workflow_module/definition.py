"""A compiled workflow: what an engine runs, and what tools ask about.

`start` and `resume` are pure functions of their arguments and of what `ctx` answers; a step that raised can be
run again from the same state and event. Nothing here stores, schedules or decides which wait is ready.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import msgspec

from .codec import decode, encode
from .compiler import Code, compile_function
from .context import WorkflowContext, active
from .errors import StateError, StateMismatch
from .language import ContinueAsNewRequest, Timer
from .mentions import Mentions, mentions_of
from .outcome import Completed, ContinueAsNew, Event, Outcome, Suspended, SuspensionPoint, Throw, Value
from .state import UNSET, FrameCodec, decode_frames, encode_frames
from .structs import Signal
from .subroutine import Enter, Subroutine
from .waits import Arm, CallWait, Handle, SignalWait, SpawnWait, TimerWait, Wait

InitT = TypeVar("InitT")
ResultT = TypeVar("ResultT")
Migration = Callable[[dict[str, Any]], dict[str, Any]]

SUBROUTINE_DEPTH_MAX = 500
"""How deep subroutines may call each other before `RecursionError`, as in plain Python."""


class StateView:
    """A stored state to look at: `init`, and each stored variable by name. Unbound ones raise."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"this state holds no variable {name!r}; it holds {', '.join(self.__dict__)}")

    def __repr__(self) -> str:
        return f"StateView({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"


class _Start(msgspec.Struct):
    _wf_init: Any


class WorkflowDefinition(Generic[InitT, ResultT]):
    """A compiled workflow. Made by `@workflow`.

    `name` and `version` are saved in every state. `init_type` and `result_type` are its annotations
    (NoneType where there is none), `retention` how long its finished runs are kept
    (None: for ever; UNSET: as `install` says).
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None,
        version: int,
        retention: timedelta | msgspec.UnsetType | None,
    ) -> None:
        self.function = function
        """The `async def` as it was written."""
        self.name = name or function.__name__
        """What states, tables and clients call it."""
        self.version = version
        """Goes into every state, for `migrate`."""
        self.retention = retention
        """How long finished runs are kept; `None`: for ever, `UNSET`: as `install` says."""
        self.code: Code = compile_function(function, takes_init=True, name=self.name)
        self.init_type: Any = self.code.init_type
        """The annotation of its second parameter; `NoneType` when it has none."""
        self.result_type: Any = self.code.result_type
        """The annotation of what it returns."""
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self.__module__ = function.__module__
        self._frame = FrameCodec(self.code, self.name)
        self._migration: Migration | None = None

    def __repr__(self) -> str:
        return f"<workflow {self.name} version {self.version}>"

    if not TYPE_CHECKING:  # a type checker says that it cannot be called

        def __call__(self, *_, **__):
            raise TypeError(
                f"{self.name} is a workflow, and is not called: write Workflows(db).start({self.name}, init) outside, "
                f"await spawn({self.name}, init) or start({self.name}, init) in a workflow"
            )

    # running

    def start(self, ctx: WorkflowContext, init: InitT) -> Outcome:
        """Run from the beginning to the first wait or the end. Exceptions of the workflow propagate."""
        return self._run(ctx, [self._frame], [_Start(init)], 0, None, None)

    def resume(self, ctx: WorkflowContext, state: bytes, event: Event, frame: Any = None) -> Outcome:
        """Run from a stored state to the next wait or the end. `frame` is what came with the state, if it is there.

        Raises `StateMismatch` when the state does not fit, `StateError` when a new one cannot be stored, and
        whatever the workflow raises.
        """
        if type(frame) is self.code.layout.state:
            codecs, frames = [self._frame], [frame]
        else:
            codecs, frames = self._decode(state)
        init = frames[0]._wf_init if self._frame.init_is_fixed else UNSET
        entry = codecs[-1].code.points[frames[-1]._wf_at].entry
        if type(event) is Value:
            return self._run(ctx, codecs, frames, entry, event.value, None, init)
        assert type(event) is Throw
        return self._run(ctx, codecs, frames, entry, None, event.error, init)

    def _run(
        self,
        ctx: WorkflowContext,
        codecs: list[FrameCodec],
        frames: list[Any],
        entry: int,
        value: Any,
        error: BaseException | None,
        stored_init: Any = UNSET,
    ) -> Outcome:
        token = active.set(ctx)
        try:
            while True:
                try:
                    frame, found = codecs[-1].code.run(ctx, frames[-1], entry, value, error)
                except BaseException as raised:
                    if len(frames) == 1:
                        raise
                    value, error = None, raised
                else:
                    error = None
                    if frame is not None:
                        frames[-1] = frame
                        if not isinstance(found, Enter):
                            return self._suspended(codecs, frames, found, stored_init)
                        if len(frames) <= SUBROUTINE_DEPTH_MAX:
                            codecs.append(found.subroutine.frame)
                            frames.append(found.arguments)
                            entry = 0
                            continue
                        entry = codecs[-1].code.points[frame._wf_at].entry
                        error = RecursionError("maximum recursion depth exceeded")
                        continue
                    if len(frames) == 1:
                        return Completed(found, self.encode_result(found))
                    value = found
                codecs.pop()
                frames.pop()
                entry = codecs[-1].code.points[frames[-1]._wf_at].entry
        except ContinueAsNewRequest as request:
            try:
                self.decode_init(request.init)
            except (msgspec.DecodeError, ValueError) as problem:
                raise StateError(f"continue_as_new of {self.name} with an init that does not fit: {problem}") from None
            return ContinueAsNew(request.init)
        finally:
            active.reset(token)

    def _suspended(self, codecs: list[FrameCodec], frames: list[Any], wait: Wait, stored_init: Any) -> Suspended:
        code, label = codecs[-1].code, frames[-1]._wf_at
        line = code.points[label].line
        try:
            if not isinstance(wait, Arm):
                raise StateError(f"{wait!r} is not a wait")
            state, kept = encode_frames(codecs, frames, self.version, stored_init)
        except StateError as error:
            raise StateError(f"{code.source.filename}:{line}: at {label} in {codecs[-1].name}: {error}") from error
        if len(frames) > 1:
            label = " > ".join([frame._wf_at for frame in frames])
        return Suspended(state, label, wait, line, frames[0] if kept else None)

    # states

    def _decode(self, state: bytes) -> tuple[list[FrameCodec], list[Any]]:
        if self._migration is None:
            return decode_frames(state, self._frame, self._subroutine)
        try:
            found = decode_frames(state, self._frame, self._subroutine)
            if found[1][0]._wf_version == self.version:
                return found
        except (StateMismatch, msgspec.DecodeError):
            pass
        return decode_frames(self.migrated(state), self._frame, self._subroutine)

    def _subroutine(self, name: str) -> FrameCodec | None:
        found = self.mentions.subroutines.get(name)
        return found.frame if found is not None else None

    def migrate(self, migration: Migration) -> Migration:
        """Decorate a function from an older state to one that fits, both as dicts of plain JSON.

        It is called when a stored state does not fit, or was saved by another `version`. The keys are `$at`
        (the label), `$version`, `init`, and the variables by name.
        """
        self._migration = migration
        return migration

    def migrated(self, state: bytes) -> bytes:
        """The state after `@migrate`, at the present version. Raises what the migration raises."""
        if self._migration is None:
            return state
        changed = self._migration(msgspec.json.decode(state))
        return msgspec.json.encode({"$workflow": self.name, **changed, "$version": self.version})

    def check_state(self, state: bytes) -> str | None:
        """None when the stored state fits this code (perhaps after `@migrate`), else what changed."""
        try:
            self._decode(state)
        except (StateMismatch, StateError, msgspec.DecodeError) as error:
            return str(error)
        except Exception as error:  # the author's migration
            return f"the migration of {self.name} raised {type(error).__name__}: {error}"
        return None

    def fits(self, state: bytes) -> bool:
        """Whether a stored state fits this code as it is, without `@migrate`."""
        try:
            frames = decode_frames(state, self._frame, self._subroutine)[1]
        except (StateMismatch, StateError, msgspec.DecodeError):
            return False
        return self._migration is None or bool(frames[0]._wf_version == self.version)

    def view(self, state: bytes | str) -> StateView:
        """A typed look at a stored state. Raises `StateMismatch` when it does not fit."""
        frame = self._decode(state.encode() if isinstance(state, str) else state)[1][0]
        values = {"init": frame._wf_init}
        for stored, _ in self.code.points[frame._wf_at].stored:
            value = getattr(frame, stored.identifier)
            if stored.name == stored.identifier and value is not msgspec.UNSET:
                values[stored.name] = value
        return StateView(values)

    # values

    def encode_init(self, init: InitT) -> bytes:
        """JSON of an init. Raises `StateError` when it is not of `init_type`."""
        return encode(init, self.init_type, "init")

    def decode_init(self, data: bytes | str) -> InitT:
        """The init again. Raises `msgspec.ValidationError` with the JSON path."""
        return cast(InitT, decode(data, self.init_type))

    def encode_result(self, result: ResultT) -> bytes:
        """JSON of a result. Raises `StateError` when it is not of `result_type`."""
        return encode(result, self.result_type, f"the result of {self.name}")

    def decode_result(self, data: bytes | str) -> ResultT:
        """The result again."""
        return cast(ResultT, decode(data, self.result_type))

    def decode_value(
        self,
        wait: Wait,
        data: bytes | str | None,
        workflows: Mapping[str, WorkflowDefinition[Any, Any]] | None = None,
    ) -> Any:
        """What a ready `wait` gives: the timer's member, None for a sleep or a signal's timeout (`data` None),
        a signal, or the typed result of a call or a child. `workflows` finds children that the code does not
        name. Raises `LookupError` for what the code does not know, `msgspec.ValidationError` for bad data.
        """
        if isinstance(wait, TimerWait):
            return self.timers[wait.timer]
        if data is None:
            return None
        if isinstance(wait, SignalWait):
            return decode(data, self.signals[wait.signal])
        if isinstance(wait, CallWait):
            return decode(data, procedure_result(self.procedures[wait.procedure]))
        if isinstance(wait, (SpawnWait, Handle)):
            name = wait.workflow if isinstance(wait, SpawnWait) else wait.workflow_type
            child = self.children.get(name) or (workflows or {})[name]
            return child.decode_result(data)
        raise LookupError(f"{type(wait).__name__} has no value of its own")

    # what the code mentions

    @cached_property
    def mentions(self) -> Mentions:
        """What the code and its subroutines name; read at first use, when all modules are there."""
        return mentions_of(self.code, self)

    @cached_property
    def signals(self) -> dict[str, type[Signal]]:
        """Signal classes by name."""
        return self.mentions.signals

    @cached_property
    def timers(self) -> dict[str, Timer]:
        """Timer members by value."""
        return self.mentions.timers

    @cached_property
    def procedures(self) -> dict[str, Any]:
        """Procedures by name."""
        return self.mentions.procedures

    @cached_property
    def children(self) -> dict[str, WorkflowDefinition[Any, Any]]:
        """Workflows that are spawned or started, by name."""
        return self.mentions.children

    @cached_property
    def subroutines(self) -> dict[str, Subroutine[..., Any]]:
        """Subroutines that may be waiting in a state, by name."""
        return self.mentions.subroutines

    @property
    def suspension_points(self) -> list[SuspensionPoint]:
        """The workflow's own places to wait, in source order."""
        return [
            SuspensionPoint(p.label, p.line, p.kind, {stored.name: stored.type for stored, _ in p.stored})
            for p in self.code.points.values()
        ]

    @property
    def compiled_source(self) -> str:
        """The step function as Python text."""
        return self.code.text

    def dump(self) -> str:
        """The intermediate form, for people who debug the compiler."""
        return self.code.program.dump()


@lru_cache(maxsize=1024)
def procedure_result(procedure: Any) -> Any:
    """The annotated result type of a procedure."""
    import typing

    return typing.get_type_hints(getattr(procedure, "function", procedure)).get("return", type(None))
