"""JSON text of single values by their declared type."""

from __future__ import annotations

from typing import Any

import msgspec

from workflow_module.errors import StateError

from .base import codec_for

_encoder = msgspec.json.Encoder()
_decoders: dict[Any, tuple[msgspec.json.Decoder[Any], Any]] = {}


def encode(value: Any, annotation: Any, path: str) -> bytes:
    """JSON of `value` as the type `annotation`; `path` names it in errors.

    Raises `StateError` when the value is not of that type, `Unstorable` when the type cannot be stored.
    """
    packed = codec_for(annotation).pack(value, path)
    try:
        return _encoder.encode(packed)
    except (UnicodeEncodeError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise StateError(f"{path} cannot be stored: {error}") from error


def decode(data: bytes | str, annotation: Any) -> Any:
    """The value again. Raises `msgspec.ValidationError` or `msgspec.DecodeError` with the JSON path."""
    known = _decoders.get(annotation)
    if known is None:
        codec = codec_for(annotation)
        known = _decoders[annotation] = (msgspec.json.Decoder(codec.stored), codec.unpack)
    decoder, unpack = known
    value = decoder.decode(data)
    return unpack(value) if unpack is not None else value
