"""States to JSON and back: one frame for the workflow, and one for each subroutine that is waiting in it.

Checks on the way out that nothing is lost (types, shared mutable objects), and on the way in that the state
fits the code. Knows compiled code and codecs, not what runs it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from .codec import Codec
from .codec.base import Walk
from .compiler import Code
from .errors import StateError, StateMismatch

UNSET = msgspec.UNSET
_encoder = msgspec.json.Encoder()


class _Head(msgspec.Struct):
    at: str = msgspec.field(name="$at")
    subroutine: str = msgspec.field(name="$subroutine", default="")


_heads = msgspec.json.Decoder(_Head)


class FrameCodec:
    """Packs and unpacks the variables of one compiled function."""

    def __init__(self, code: Code, name: str) -> None:
        self.code = code
        self.name = name
        self.decoder = msgspec.json.Decoder(code.layout.state)
        self.init_codec: Codec | None = code.init_codec
        self.points: dict[str, _PointCodec] = {}
        for label, point in code.points.items():
            parts = [(stored.identifier, stored.name, stored.codec, surely) for stored, surely in point.stored]
            self.points[label] = _PointCodec(parts)
        init = self.init_codec
        self.has_mutable = (init is not None and init.walk is not None) or any(p.walks for p in self.points.values())
        self.init_is_fixed = init is not None and init.walk is None and init.unpack is None
        """Whether an init, as read from a state, can be written again as it is."""
        self.init_keeps = init.keeps if init is not None and self.init_is_fixed else None

    def pack(self, frame: Any, stored_init: Any = UNSET) -> list[tuple[str, Any]] | None:
        """Make the frame's variables what msgspec is to encode. Raises `StateError`.

        `stored_init` is the init that was read from the state, if `init_is_fixed`: it needs no second look. What
        comes back are the variables to put back to get the very frame that `unpack` would give; None if that is not
        to be had so.
        """
        before: list[tuple[str, Any]] | None = []
        if self.init_codec is not None:
            init = frame._wf_init
            if init is not stored_init:
                frame._wf_init = self.init_codec.pack(init, "init")
            if self.init_keeps is None or (init is not stored_init and not self.init_keeps(init)):
                before = None
        for identifier, name, codec, exact in self.points[frame._wf_at].packs:
            value = getattr(frame, identifier)
            if type(value) is not exact and value is not UNSET:
                packed = codec.pack(value, name)
                if before is not None and (codec.keeps is None or not codec.keeps(value)):
                    before = None
                if packed is not value:
                    setattr(frame, identifier, packed)
                    if before is not None:
                        before.append((identifier, value))
        return before

    def walks(self, frame: Any) -> list[tuple[str, Any, Walk]]:
        """Variables that hold mutable objects, with how to visit them."""
        found = [
            (name, getattr(frame, identifier), walk)
            for identifier, name, walk in self.points[frame._wf_at].walks
            if getattr(frame, identifier) is not UNSET
        ]
        if self.init_codec is not None and self.init_codec.walk is not None:
            found.append(("init", frame._wf_init, self.init_codec.walk))
        return found

    def unpack(self, data: bytes | msgspec.Raw) -> Any:
        """The frame again, with the workflow's own values. Raises `StateMismatch`."""
        try:
            frame = self.decoder.decode(data)
        except msgspec.ValidationError as error:
            raise StateMismatch(self._mismatch(data, str(error))) from None
        point = self.points.get(frame._wf_at)
        if point is None:
            raise StateMismatch(self._no_label(frame._wf_at))
        if self.init_codec is not None and self.init_codec.unpack is not None:
            frame._wf_init = self.init_codec.unpack(frame._wf_init)
        for identifier, unpack in point.unpacks:
            value = getattr(frame, identifier)
            if value is not UNSET:
                setattr(frame, identifier, unpack(value))
        for identifier, name in point.required:
            if getattr(frame, identifier) is UNSET:
                if name not in self.code.defaults:
                    raise StateMismatch(
                        f"{self.name} stopped at {frame._wf_at!r} without the variable {name}, which the code "
                        f"after that wait needs now"
                    )
                setattr(frame, identifier, self.code.defaults[name])
        return frame

    def _no_label(self, label: str) -> str:
        labels = ", ".join(repr(known) for known in self.points) or "no waits"
        return f"{self.name} stopped at {label!r}, which the code does not have any more; it has {labels}"

    def _mismatch(self, data: bytes | msgspec.Raw, problem: str) -> str:
        try:
            label = _heads.decode(data).at
        except (msgspec.ValidationError, msgspec.DecodeError):
            return f"this is not a state of {self.name}: {problem}"
        if label not in self.points:
            return self._no_label(label)
        return f"{self.name} stopped at {label!r} with variables that do not fit the code any more: {problem}"


class _PointCodec:
    def __init__(self, parts: list[tuple[str, str, Codec, bool]]) -> None:
        self.packs = [(identifier, name, codec, codec.exact) for identifier, name, codec, _ in parts]
        self.unpacks: list[tuple[str, Callable[[Any], Any]]] = [
            (identifier, codec.unpack) for identifier, _, codec, _ in parts if codec.unpack is not None
        ]
        self.walks = [(identifier, name, codec.walk) for identifier, name, codec, _ in parts if codec.walk is not None]
        self.required = [(identifier, name) for identifier, name, _, surely in parts if surely]


def encode_frames(
    codecs: list[FrameCodec], frames: list[Any], version: int, stored_init: Any = UNSET
) -> tuple[bytes, bool]:
    """JSON of a stack of frames, the workflow's first; whether it is one frame, which is as it would be read again.

    Raises `StateError`.
    """
    for codec in codecs:
        if codec.has_mutable:
            _check_sharing(codecs, frames)
            break
    top = frames[0]
    before = codecs[0].pack(top, stored_init)
    top._wf_version = version
    if len(frames) > 1:
        before = None
        for codec, frame in zip(codecs[1:], frames[1:], strict=True):
            codec.pack(frame)
        top._wf_frames = [msgspec.Raw(_encoder.encode(frame)) for frame in frames[1:]]
    try:
        state = _encoder.encode(top)
    except (UnicodeEncodeError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise StateError(f"the state cannot be written as JSON: {error}") from error
    if before:
        for identifier, value in before:
            setattr(top, identifier, value)
    return state, before is not None


def _check_sharing(codecs: list[FrameCodec], frames: list[Any]) -> None:
    seen: dict[int, tuple[str, Any]] = {}
    for codec, frame in zip(codecs, frames, strict=True):
        for name, value, walk in codec.walks(frame):
            walk(value, name if frame is frames[0] else f"{name} of {codec.name}", seen)


def decode_frames(
    data: bytes, top: FrameCodec, subroutine: Callable[[str], FrameCodec | None]
) -> tuple[list[FrameCodec], list[Any]]:
    """The stack again. Raises `StateMismatch`."""
    first = top.unpack(data)
    codecs, frames = [top], [first]
    if not first._wf_frames:
        return codecs, frames
    for raw in first._wf_frames:
        name = _heads.decode(raw).subroutine
        codec = subroutine(name)
        if codec is None:
            raise StateMismatch(f"{top.name} stopped inside the subroutine {name}, which it does not use any more")
        codecs.append(codec)
        frames.append(codec.unpack(raw))
    first._wf_frames = []
    return codecs, frames
