"""The operator's office: what somebody with the owner's token can ask of the server and tell it, over HTTP."""

from __future__ import annotations

import re
from typing import Any, Final

import httpx

from tests.soak.processes import DATABASE, Server

TIMEOUT_SECONDS: Final = 30.0
SAMPLE: Final = re.compile(r"^([a-z_]+)(?:\{(.*)\})? (\S+)$")


class Metrics:
    """What `/metrics` says, by names and labels."""

    def __init__(self, text: str) -> None:
        self._values: dict[tuple[str, str], float] = {}
        for line in text.splitlines():
            if (match := SAMPLE.match(line)) is not None:
                self._values[match[1], match[2] or ""] = float(match[3])

    def of(self, sample: str, /, **labels: str) -> float:
        """A sample of our database; 0 where there is none, as a counter that has not counted has none."""
        shown = ",".join(f'{key}="{value}"' for key, value in {"database": DATABASE, **labels}.items())
        return self._values.get((sample, shown), 0.0)


class Office:
    """Raises `httpx.TransportError` while there is no server, `Refused` for what it does not do."""

    def __init__(self, server: Server) -> None:
        self._server = server
        unkept = httpx.Limits(max_keepalive_connections=0)  # the server may close a kept one just as it is used again
        self._client = httpx.AsyncClient(timeout=TIMEOUT_SECONDS, limits=unkept)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def sql(self, query: str) -> list[list[Any]]:
        """The rows of a query, answered by the storage engine from what is on disk."""
        answer = await self._post("sql", content=query)
        rows: list[list[Any]] = answer.json()[0]["rows"]
        return rows

    async def number(self, query: str) -> int:
        """The one value of a query."""
        ((value,),) = await self.sql(query)
        return 0 if value is None else int(value)

    async def call(self, function: str, *arguments: Any) -> None:
        """Call a reducer."""
        await self._post(f"call/{function}", json=list(arguments))

    async def health(self) -> dict[str, Any]:
        """The health of our database; also when it is bad."""
        answer = await self._client.get(f"{self._server.url}/v1/health", headers=self._headers())
        found: dict[str, Any] = answer.json()
        return found

    async def metrics(self) -> Metrics:
        """What is counted."""
        answer = await self._client.get(f"{self._server.url}/metrics", headers=self._headers())
        return Metrics(answer.text)

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._server.token}"}

    async def _post(self, path: str, **body: Any) -> httpx.Response:
        url = f"{self._server.url}/v1/database/{DATABASE}/{path}"
        answer = await self._client.post(url, headers=self._headers(), **body)
        if answer.status_code != 200:
            raise Refused(answer.status_code, f"{path} {body}: {answer.status_code} {answer.text}")
        return answer


class Refused(Exception):
    """The server did not do it."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
