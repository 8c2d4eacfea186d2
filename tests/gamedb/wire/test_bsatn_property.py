"""Any value of any type goes to bytes and back unchanged, and no bytes do harm."""

from __future__ import annotations

import os
import tracemalloc
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gamedb.columns import ColumnType, FrozenList, OptionType, exact_function, inside
from gamedb.errors import WireError
from gamedb.wire import messages
from gamedb.wire.bsatn import codec
from tests.gamedb.wire.random_types import typed_values
from tests.gamedb.wire.recursive_types import recursive_types, recursive_values

EXAMPLES = max(10, int(os.environ.get("GAMEDB_FUZZ_STEPS", "1000")) // 15)


@st.composite
def recursive(draw: st.DrawFn) -> tuple[ColumnType, Any]:
    kind = draw(recursive_types())
    return kind, kind.coerce(draw(recursive_values(kind)), "v")


def is_declarable(typed: tuple[ColumnType, Any]) -> bool:
    """Whether there is an annotation for the type: `T | None | None` is `T | None`."""
    kinds = (typed[0], *inside(typed[0]))
    return not any(isinstance(kind, OptionType) and isinstance(kind.inner, OptionType) for kind in kinds)


ANYTHING = typed_values().filter(is_declarable) | recursive()
SEARCH = settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def same(kind: ColumnType, left: Any, right: Any) -> bool:
    """Whether two values are equal bit by bit."""
    exact = exact_function(kind)
    return bool(left == right if exact is None else exact(left) == exact(right))


def is_canonical(kind: ColumnType, value: Any) -> bool:
    scope: dict[str, Any] = {}
    return bool(eval(kind.fast("v", scope), scope, {"v": value})) or same(kind, kind.coerce(value, "v"), value)


@SEARCH
@given(ANYTHING, st.binary(max_size=3), st.binary(max_size=3))
def test_values_come_back(typed: tuple[ColumnType, Any], before: bytes, behind: bytes) -> None:
    kind, value = typed
    data = codec(kind).encode(value)
    assert codec(kind).encode(value) == data
    decoded, end = codec(kind).decode(before + data + behind, len(before))
    assert end == len(before) + len(data)
    assert same(kind, decoded, value)
    assert is_canonical(kind, decoded)
    assert codec(kind).encode(decoded) == data
    size = codec(kind).fixed_size
    assert size is None or size == len(data)


@SEARCH
@given(ANYTHING, st.data())
def test_cut_values_are_refused(typed: tuple[ColumnType, Any], data: st.DataObject) -> None:
    kind, value = typed
    encoded = codec(kind).encode(value)
    if not encoded:
        return
    end = data.draw(st.integers(0, len(encoded) - 1))
    with pytest.raises(WireError):
        codec(kind).decode(encoded[:end])


def check_any_bytes(kind: ColumnType, data: bytes) -> None:
    """Either a canonical value that has bytes again, or a `WireError`."""
    try:
        value, end = codec(kind).decode(data)
    except WireError:
        return
    assert 0 <= end <= len(data)
    assert is_canonical(kind, value)
    again = codec(kind).encode(value)
    assert len(again) == end
    assert same(kind, codec(kind).decode_whole(again), value)


@SEARCH
@given(ANYTHING, st.data())
def test_changed_bytes_are_values_or_errors(typed: tuple[ColumnType, Any], data: st.DataObject) -> None:
    kind, value = typed
    encoded = bytearray(codec(kind).encode(value))
    for _ in range(data.draw(st.integers(1, 4))):
        if encoded:
            encoded[data.draw(st.integers(0, len(encoded) - 1))] = data.draw(st.integers(0, 255))
    check_any_bytes(kind, bytes(encoded))


@SEARCH
@given(ANYTHING, st.binary(max_size=60))
def test_random_bytes_are_values_or_errors(typed: tuple[ColumnType, Any], data: bytes) -> None:
    check_any_bytes(typed[0], data)


@SEARCH
@given(ANYTHING)
def test_huge_counts_allocate_nothing(typed: tuple[ColumnType, Any]) -> None:
    kind = typed[0]
    codec(kind)
    for head in (b"", b"\x00", b"\x01"):
        data = (head + b"\xff" * 20)[:20]
        tracemalloc.start()
        try:
            check_any_bytes(kind, data)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 200_000


# --- messages


@SEARCH
@given(st.binary(max_size=80))
def test_random_messages_are_messages_or_errors(payload: bytes) -> None:
    for decode in (messages.decode_client, messages.decode_server):
        try:
            decode(payload)
        except WireError:
            continue


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
IDS = st.integers(0, 2**32 - 1)
CLIENT_MESSAGES = st.one_of(
    st.builds(
        messages.Subscribe,
        request_id=IDS,
        query_set_id=IDS,
        queries=st.lists(TEXTS, max_size=3).map(FrozenList),
    ),
    st.builds(messages.Unsubscribe, request_id=IDS, query_set_id=IDS, flags=st.sampled_from(messages.UnsubscribeFlags)),
    st.builds(messages.OneOffQuery, request_id=IDS, query=TEXTS),
    st.builds(messages.CallReducer, request_id=IDS, reducer=TEXTS, arguments=st.binary(max_size=9)),
    st.builds(messages.CallProcedure, request_id=IDS, procedure=TEXTS, arguments=st.binary(max_size=9)),
)


@SEARCH
@given(st.lists(CLIENT_MESSAGES, min_size=1, max_size=4), st.data())
def test_packed_messages_come_apart(sent: list[messages.ClientMessage], data: st.DataObject) -> None:
    payload = b"".join(map(messages.encode_client, sent))
    assert messages.decode_client(payload) == sent
    changed = bytearray(payload)
    changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    try:
        received = messages.decode_client(bytes(changed))
    except WireError:
        return
    assert b"".join(map(messages.encode_client, received)) == changed
