"""A row list that is made in parts is the one that is made at once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gamedb.wire.rows import EMPTY, RowListBuilder, encode_row_list


def made_in_parts(parts: list[list[bytes]], fixed_size: int | None) -> bytes:
    builder = RowListBuilder(fixed_size)
    for part in parts:
        builder.add(part)
    return builder.finish()


@given(st.lists(st.lists(st.binary(max_size=5), max_size=4), max_size=4))
def test_rows_of_different_sizes(parts: list[list[bytes]]) -> None:
    assert made_in_parts(parts, None) == encode_row_list([row for part in parts for row in part], None)


@given(st.lists(st.lists(st.binary(min_size=3, max_size=3), max_size=4), max_size=4))
def test_rows_of_one_size(parts: list[list[bytes]]) -> None:
    assert made_in_parts(parts, 3) == encode_row_list([row for part in parts for row in part], 3)


def test_no_rows() -> None:
    assert made_in_parts([[]], 3) == made_in_parts([], None) == EMPTY
