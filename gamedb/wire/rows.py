"""Row lists: the rows of one table in a message, one after the other, with a hint where each begins.

Writing only: `messages.RowList` reads them.
"""

from __future__ import annotations

import itertools
import struct
import sys
from array import array
from collections.abc import Sequence
from typing import Final

from gamedb.errors import WireError

_FIXED: Final = struct.Struct("<BHI")
_LENGTH: Final = struct.Struct("<I")
_SIZE_MAX: Final = 2**16 - 1
_BYTES_MAX: Final = 2**32 - 1

EMPTY: Final = b"\x01" + bytes(8)
"""The row list without rows."""


def encode_row_list(rows: Sequence[bytes], fixed_size: int | None) -> bytes:
    """The row list of encoded rows; `fixed_size` is that of their codec."""
    if not rows:
        return EMPTY
    data = b"".join(rows)
    if len(data) > _BYTES_MAX:
        raise WireError(f"{len(rows)} rows take {len(data)} bytes; a row list holds {_BYTES_MAX}")
    if fixed_size and fixed_size <= _SIZE_MAX:
        return _FIXED.pack(0, fixed_size, len(data)) + data
    count = len(rows)
    starts = itertools.accumulate(map(len, rows[:-1]), initial=0)
    return b"".join((struct.pack(f"<BI{count}Q", 1, count, *starts), _LENGTH.pack(len(data)), data))


class RowListBuilder:
    """A row list that is made in parts, so that no part takes long."""

    def __init__(self, fixed_size: int | None) -> None:
        self._fixed_size = fixed_size if fixed_size and fixed_size <= _SIZE_MAX else None
        self._starts = array("Q")
        self._parts: list[bytes] = []
        self._length = 0

    def add(self, rows: Sequence[bytes]) -> None:
        """Append encoded rows."""
        self._parts.append(b"".join(rows))
        if self._fixed_size is None:
            starts = list(itertools.accumulate(map(len, rows), initial=self._length))
            self._length = starts.pop()
            self._starts.extend(starts)
        else:
            self._length += len(self._parts[-1])
        if self._length > _BYTES_MAX:
            raise WireError(f"the rows take {self._length} bytes; a row list holds {_BYTES_MAX}")

    def finish(self) -> bytes:
        """All of it, as `encode_row_list` would give it. Called once."""
        if self._fixed_size is not None and self._length:
            return b"".join((_FIXED.pack(0, self._fixed_size, self._length), *self._parts))
        if not self._starts:
            return EMPTY
        if sys.byteorder == "big":
            self._starts.byteswap()
        head = struct.pack("<BI", 1, len(self._starts))
        return b"".join((head, self._starts, _LENGTH.pack(self._length), *self._parts))
