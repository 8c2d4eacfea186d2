"""`Http`: uvicorn's HTTP protocol, which waits for a request to be complete only so long.

Else connections that never say anything, or never finish saying it, would pile up until none can be accepted.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, cast

from uvicorn.protocols.http.auto import AutoHTTPProtocol

BYTES_PER_SECOND_MIN: Final = 10_000
"""What has come of a request buys it so much more time."""

_Base: Any = asyncio.Protocol if TYPE_CHECKING else AutoHTTPProtocol


class Http(_Base):  # type: ignore[misc]
    """One connection, until it becomes a websocket."""

    def __init__(self, seconds_max: float, **options: Any) -> None:
        super().__init__(**options)
        self._seconds_max = seconds_max
        self._patience: asyncio.TimerHandle | None = None
        self._until: float | None = None
        """When the request that is coming must be complete; `None` while none is."""
        self._complete: Any = None
        """The last request that was."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._until = asyncio.get_running_loop().time() + self._seconds_max
        self._look(cast("asyncio.Transport", transport))

    def data_received(self, data: bytes) -> None:
        if self._until is None:
            self._until = asyncio.get_running_loop().time() + self._seconds_max
        self._until += len(data) / BYTES_PER_SECOND_MIN
        super().data_received(data)
        cycle = getattr(self, "cycle", None)
        if cycle is not None and cycle is not self._complete and not cycle.more_body:
            self._complete, self._until = cycle, None

    def connection_lost(self, error: Exception | None) -> None:
        self._lose_patience()
        super().connection_lost(error)

    def handle_websocket_upgrade(self, *event: Any) -> None:
        self._lose_patience()  # which would keep all this for a while
        super().handle_websocket_upgrade(*event)

    def _lose_patience(self) -> None:
        if self._patience is not None:
            self._patience.cancel()

    def _look(self, transport: asyncio.Transport) -> None:
        loop = asyncio.get_running_loop()
        if self._until is not None and loop.time() >= self._until:
            transport.abort()
        else:
            self._patience = loop.call_later(self._seconds_max, self._look, transport)
