"""Messages as bytes: known vectors, both sides, packing, and what is refused."""

from __future__ import annotations

import pytest

from gamedb import types
from gamedb.columns import column_type
from gamedb.errors import WireError
from gamedb.types import ConnectionId, Identity
from gamedb.wire import messages as m
from gamedb.wire.bsatn import codec
from gamedb.wire.rows import EMPTY, encode_row_list

IDENTITY = Identity.from_hex("c200" + "00" * 29 + "7f")
CONNECTION = ConnectionId(bytes(range(16)))
TEXT = codec(column_type(str, "a text"))
NUMBER = codec(column_type(types.u32, "a number"))

CLIENT = [
    (
        m.Subscribe(request_id=1, query_set_id=2, queries=['SELECT * FROM "t"']),
        "000100000002000000010000001100000053454c454354202a2046524f4d20227422",
    ),
    (
        m.Unsubscribe(request_id=3, query_set_id=2, flags=m.UnsubscribeFlags.SEND_DROPPED_ROWS),
        "01030000000200000001",
    ),
    (m.OneOffQuery(request_id=4, query="q"), "02040000000100000071"),
    (
        m.CallReducer(request_id=5, reducer="r", arguments=NUMBER.encode(1)),
        "03050000000001000000720400000001000000",
    ),
    (m.CallProcedure(request_id=6, procedure="p", arguments=b""), "040600000000010000007000000000"),
]


@pytest.mark.parametrize(("message", "hexed"), CLIENT)
def test_client_messages(message: m.ClientMessage, hexed: str) -> None:
    assert m.encode_client(message).hex() == hexed
    assert m.decode_client(bytes.fromhex(hexed)) == [message]


NUMBERS = encode_row_list([NUMBER.encode(1), NUMBER.encode(2)], NUMBER.fixed_size)
TEXTS = encode_row_list([TEXT.encode("a"), TEXT.encode("b")], TEXT.fixed_size)
NUMBER_LIST = m.RowList(m.FixedSize(4), bytes.fromhex("0100000002000000"))
TEXT_LIST = m.RowList(m.RowOffsets([0, 5]), bytes.fromhex("01000000610100000062"))
NO_ROWS = m.RowList(m.RowOffsets([]), b"")

SERVER = [
    (
        m.initial_connection(IDENTITY, CONNECTION, "ab"),
        "007f" + "00" * 29 + "00c2" + "0f0e0d0c0b0a09080706050403020100" + "020000006162",
        m.InitialConnection(IDENTITY, CONNECTION, "ab"),
    ),
    (
        m.subscribe_applied(1, 2, [m.table_rows("t", TEXTS)]),
        "0101000000020000000100000001000000740102000000000000000000000005000000000000000a00000001000000610100000062",
        m.SubscribeApplied(1, 2, [m.TableRows("t", TEXT_LIST)]),
    ),
    (
        m.transaction_update([m.query_set_update(2, [m.table_update("t", NUMBERS, EMPTY)])]),
        "0401000000020000000100000001000000740100000000000400080000000100000002000000010000000000000000",
        m.TransactionUpdate(
            [m.QuerySetUpdate(2, [m.TableUpdate("t", [m.PersistentRows(NUMBER_LIST, NO_ROWS)])])],
        ),
    ),
    (
        m.transaction_update([m.query_set_update(2, [m.event_update("e", NUMBERS)])]),
        "0401000000020000000100000001000000650100000001000400080000000100000002000000",
        m.TransactionUpdate([m.QuerySetUpdate(2, [m.TableUpdate("e", [m.EventRows(NUMBER_LIST)])])]),
    ),
    (m.unsubscribe_applied(3, 2, None), "02030000000200000001", m.UnsubscribeApplied(3, 2, None)),
    (m.unsubscribe_applied(3, 2, []), "0203000000020000000000000000", m.UnsubscribeApplied(3, 2, m.DroppedRows([]))),
    (m.subscription_error(1, 2, "no"), "03000100000002000000020000006e6f", m.SubscriptionError(1, 2, "no")),
    (m.subscription_error(None, 2, "no"), "030102000000020000006e6f", m.SubscriptionError(None, 2, "no")),
    (
        m.reducer_ok(5, 1, b"", []),
        "06050000000100000000000000000000000000000000",
        m.ReducerResult(5, 1, m.ReducerOk(b"", [])),
    ),
    (None, "0605000000010000000000000001", m.ReducerResult(5, 1, m.ReducerOkEmpty())),
    (
        m.reducer_error(5, 1, "no"),
        "060500000001000000000000000206000000020000006e6f",
        m.ReducerResult(5, 1, m.ReducerFailed(TEXT.encode("no"))),
    ),
    (
        m.reducer_internal_error(5, 1, "no"),
        "0605000000010000000000000003020000006e6f",
        m.ReducerResult(5, 1, m.InternalError("no")),
    ),
    (
        m.procedure_returned(6, 1, 2, NUMBER.encode(7)),
        "070004000000070000000100000000000000020000000000000006000000",
        m.ProcedureResult(m.ProcedureReturned(NUMBER.encode(7)), 1, 2, 6),
    ),
    (
        m.procedure_error(6, "no"),
        "0701020000006e6f" + "00" * 16 + "06000000",
        m.ProcedureResult(m.InternalError("no"), 0, 0, 6),
    ),
    (m.one_off_error(4, "no"), "050400000001020000006e6f", m.OneOffQueryResult(4, m.QueryFailed("no"))),
    (
        m.one_off_result(4, [m.table_rows("t", NUMBERS)]),
        "050400000000" + "01000000" + "0100000074" + "000400080000000100000002000000",
        m.OneOffQueryResult(4, m.QueryRows([m.TableRows("t", NUMBER_LIST)])),
    ),
]


@pytest.mark.parametrize(("encoded", "hexed", "message"), SERVER)
def test_server_messages(encoded: bytes | None, hexed: str, message: m.ServerMessage) -> None:
    if encoded is not None:
        assert encoded.hex() == hexed
    assert m.decode_server(m.frame([bytes.fromhex(hexed)])) == [message]


def test_an_empty_row_list() -> None:
    assert encode_row_list([], 4) == encode_row_list([], None) == EMPTY
    assert EMPTY.hex() == "010000000000000000"


def test_rows_without_bytes_or_of_great_size_go_by_offsets() -> None:
    assert encode_row_list([b"", b""], 0)[0] == 1
    assert encode_row_list([bytes(2**16)], 2**16)[0] == 1
    assert encode_row_list([bytes(2**16 - 1)], 2**16 - 1)[0] == 0


def test_v3_packs_many_messages_and_v2_one() -> None:
    payload = b"".join(m.encode_client(message) for message, _ in CLIENT)
    assert m.decode_client(payload) == [message for message, _ in CLIENT]
    with pytest.raises(WireError, match="more than 1 message"):
        m.decode_client(payload, single=True)
    first = m.encode_client(CLIENT[0][0])
    assert m.decode_client(first, single=True) == [CLIENT[0][0]]

    answer = m.frame([m.subscription_error(1, 2, "no"), m.reducer_ok(5, 1, b"", [])])
    assert [type(message) for message in m.decode_server(answer)] == [m.SubscriptionError, m.ReducerResult]
    with pytest.raises(WireError, match="more than 1 message"):
        m.decode_server(answer, single=True)


def test_every_cut_is_an_error() -> None:
    for _, hexed in CLIENT:
        whole = bytes.fromhex(hexed)
        for end in range(len(whole)):
            with pytest.raises(WireError):
                m.decode_client(whole[:end])
    for _, hexed, _ in SERVER:
        whole = b"\x00" + bytes.fromhex(hexed)
        for end in range(len(whole)):
            with pytest.raises(WireError):
                m.decode_server(whole[:end])


@pytest.mark.parametrize(
    ("hexed", "text"),
    [
        ("", "the message is empty"),
        ("05", "no variant 5"),
        ("01030000000200000002", "an enum has a number"),
        ("0305000000010100000072" + "00000000", "flags 1; only 0"),
        ("01030000000200000001" + "ff", "no variant 255"),
        ("000100000002000000ffffffff", "bytes should follow"),
        ("0204000000ffffffff", "bytes should follow"),
    ],
)
def test_bad_client_messages(hexed: str, text: str) -> None:
    with pytest.raises(WireError, match=text):
        m.decode_client(bytes.fromhex(hexed))


def test_limits_of_client_messages() -> None:
    subscribe = m.encode_client(m.Subscribe(request_id=1, query_set_id=1, queries=["a", "b", "c"]))
    with pytest.raises(WireError, match="3 queries; at most 2"):
        m.decode_client(subscribe, m.Limits(queries_max=2))
    with pytest.raises(WireError, match="at most 10 are allowed"):
        m.decode_client(subscribe, m.Limits(payload_bytes_max=10))
    with pytest.raises(WireError, match="more than 2 messages"):
        m.decode_client(subscribe * 3, m.Limits(messages_max=2))


@pytest.mark.parametrize(
    ("payload", "text"),
    [(b"", "empty"), (b"\x00", "the message is empty"), (b"\x02\x1f", "compressed"), (b"\x00\x08", "no variant 8")],
)
def test_bad_server_messages(payload: bytes, text: str) -> None:
    with pytest.raises(WireError, match=text):
        m.decode_server(payload)


def test_error_texts_always_have_bytes() -> None:
    [result] = m.decode_server(m.frame([m.reducer_internal_error(1, 2, "lone \ud800")]))
    assert isinstance(result, m.ReducerResult)
    assert result.outcome == m.InternalError("lone ?")
