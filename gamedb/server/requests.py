"""`Http`: uvicorn's HTTP protocol, which waits for the first request of a connection only so long.

Else connections that never say anything, or never finish saying it, would pile up until none can be accepted.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from uvicorn.protocols.http.auto import AutoHTTPProtocol

_Base: Any = asyncio.Protocol if TYPE_CHECKING else AutoHTTPProtocol


class Http(_Base):  # type: ignore[misc]
    """One connection, until it becomes a websocket."""

    def __init__(self, seconds_max: float, **options: Any) -> None:
        super().__init__(**options)
        self._seconds_max = seconds_max
        self._patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        loop = asyncio.get_running_loop()
        self._patience = loop.call_later(self._seconds_max, self._give_up, cast("asyncio.Transport", transport))

    def connection_lost(self, error: Exception | None) -> None:
        if self._patience is not None:
            self._patience.cancel()
        super().connection_lost(error)

    def _give_up(self, transport: asyncio.Transport) -> None:
        if transport.get_protocol() is self and getattr(self, "cycle", None) is None:  # no request is complete
            transport.abort()
