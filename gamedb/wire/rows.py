"""Row lists: the rows of one table in a message, one after the other, with a hint where each begins.

Writing only: `messages.RowList` reads them.
"""

from __future__ import annotations

import itertools
import struct
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
