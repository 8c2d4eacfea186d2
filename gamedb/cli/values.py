"""Values of the HTTP API for people: from SATS-JSON to text, and from what somebody typed to SATS-JSON.

Both go by the type that the server's schema gives. What is typed stays near to how the values look: a bare word is
text or a variant, a date is a date, JSON is JSON.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

Json = dict[str, Any]

_TIMESTAMP: Final = "__timestamp_micros_since_unix_epoch__"
_DURATION: Final = "__time_duration_micros__"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_UNIT: Final[Json] = {"Product": {"elements": []}}


def _names(parts: Sequence[Json]) -> list[str]:
    return [str(part["name"].get("some", "")) for part in parts]


def _special(kind: Json) -> str:
    """The one field of a special product, or nothing."""
    elements = kind.get("Product", {}).get("elements", [])
    name = _names(elements)[0] if len(elements) == 1 else ""
    return name if name.startswith("__") else ""


# --- to text


def as_text(value: Any, kind: Json, nested: bool = False) -> str:
    """A value in its positional form, as people write it."""
    if "Sum" in kind:
        return _variant_text(value, kind["Sum"]["variants"], nested)
    if field := _special(kind):
        return _special_text(field, value[0])
    if "Product" in kind:
        elements = kind["Product"]["elements"]
        kinds = [element["algebraic_type"] for element in elements]
        shown = [f"{n}={as_text(v, k, True)}" for n, v, k in zip(_names(elements), value, kinds, strict=True)]
        return f"({', '.join(shown)})"
    if "Array" in kind:
        if kind["Array"] == {"U8": []}:
            return str(value)
        return f"[{', '.join(as_text(item, kind['Array'], True) for item in value)}]"
    if "Bool" in kind:
        return "true" if value else "false"
    if isinstance(value, str) and nested:
        return json.dumps(value, ensure_ascii=False)
    return "nan" if value is None else str(value)


def _variant_text(value: Any, variants: Sequence[Json], nested: bool) -> str:
    index, payload = value
    kind = variants[index]["algebraic_type"]
    names = _names(variants)
    if names == ["some", "none"]:
        return "" if index and not nested else "none" if index else as_text(payload, kind, nested)
    if names == ["Interval", "Time"]:
        return f"every {as_text(payload, kind)}" if index == 0 else as_text(payload, kind)
    return names[index] if kind == _UNIT else f"{names[index]}{as_text(payload, kind, True)}"


def _special_text(field: str, value: Any) -> str:
    if field == _TIMESTAMP:
        try:
            return (_EPOCH + timedelta(microseconds=value)).isoformat().replace("+00:00", "Z")
        except OverflowError:
            return f"{value} µs"
    if field == _DURATION:
        return str(timedelta(microseconds=value))
    if field == "__uuid__":
        return str(UUID(int=value))
    if field == "__connection_id__":
        return f"{value:032x}"
    return str(value).removeprefix("0x")


# --- to plain JSON


def as_plain(value: Any, kind: Json) -> Any:
    """A value in its positional form as JSON with names: what programs like to read."""
    if "Sum" in kind:
        index, payload = value
        variants = kind["Sum"]["variants"]
        names, inner = _names(variants), variants[index]["algebraic_type"]
        if names == ["some", "none"]:
            return None if index else as_plain(payload, inner)
        if names == ["Interval", "Time"]:
            return as_text(value, kind)
        return names[index] if inner == _UNIT else {names[index]: as_plain(payload, inner)}
    if field := _special(kind):
        return _special_text(field, value[0])
    if "Product" in kind:
        elements = kind["Product"]["elements"]
        pairs = zip(_names(elements), value, elements, strict=True)
        return {name: as_plain(item, element["algebraic_type"]) for name, item, element in pairs}
    if "Array" in kind and isinstance(value, list):
        return [as_plain(item, kind["Array"]) for item in value]
    return value


# --- from what was typed


class Typed:
    """Reads typed arguments by the types of a module definition (version 10)."""

    def __init__(self, schema: Json) -> None:
        sections = {name: content for section in schema["sections"] for name, content in section.items()}
        self._types: list[Json] = sections.get("Typespace", {}).get("types", [])
        self._functions: dict[str, list[Json]] = {
            function["source_name"]: function["params"]["elements"]
            for name in ("Reducers", "Procedures")
            for function in sections.get(name, [])
        }

    def arguments(self, function: str, texts: Sequence[str]) -> list[Any]:
        """The arguments of a call; what does not fit is left to the server to refuse."""
        parameters = self._functions.get(function, [])
        kinds = [parameter["algebraic_type"] for parameter in parameters]
        kinds += [{}] * (len(texts) - len(kinds))
        return [self._value(text, kind) for text, kind in zip(texts, kinds, strict=False)]

    def _value(self, text: str, kind: Json) -> Any:
        kind = self._types[kind["Ref"]] if "Ref" in kind else kind
        if "String" in kind:
            quoted = _json(text)
            return quoted if text.startswith('"') and isinstance(quoted, str) else text
        if "Sum" in kind:
            return self._variant(text, kind["Sum"]["variants"])
        if field := _special(kind):
            return self._special(field, text)
        if kind.get("Array") == {"U8": []}:
            return text.removeprefix("0x") if _json(text) is None or not text.startswith("[") else _json(text)
        found = _json(text)
        return text if found is None and text != "null" else found

    def _variant(self, text: str, variants: Sequence[Json]) -> Any:
        names = _names(variants)
        found = _json(text)
        if names == ["some", "none"]:
            if text in ("null", "none"):
                return {"none": []}
            if isinstance(found, dict) and len(found) == 1 and set(found) <= {"some", "none"}:
                return found
            return {"some": self._value(text, variants[0]["algebraic_type"])}
        if text in names:
            return {text: []}
        return text if found is None else found

    def _special(self, field: str, text: str) -> Any:
        found = _json(text)
        if isinstance(found, dict | list):
            return found
        try:
            if field == _TIMESTAMP and found is None:
                moment = datetime.fromisoformat(text)
                since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH
                return {field: since // timedelta(microseconds=1)}
            if field == "__identity__":
                return {field: f"0x{text.removeprefix('0x')}"}
            if field == "__connection_id__" and len(text.removeprefix("0x")) == 32:
                return {field: int(text.removeprefix("0x"), 16)}
            if field == "__uuid__":
                return {field: UUID(text).int}
        except ValueError:
            return text
        return {field: found}


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
