"""HTTP to a running server, for the commands that talk to one; what goes wrong is said in the user's terms.

The owner's token is found in the data directory, and is sent to this very machine only: to another server it must be
named.
"""

from __future__ import annotations

import difflib
import http.client
import ipaddress
import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NoReturn
from urllib.parse import quote, urlsplit

from gamedb.cli.options import shown
from gamedb.cli.output import REFUSED, fail

SECONDS_MAX: Final = 60.0
NOBODY: Final = "none"


class Remote:
    """One database on a server."""

    def __init__(self, server: str, database: str, token: str | None, data_dir: Path) -> None:
        parts = urlsplit(server)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            fail(f"--server {server!r} is no address.", "Write it like this: --server http://127.0.0.1:3000")
        self.server = server.rstrip("/")
        self.database = database
        self._token, self._token_hint = token_for(token, data_dir, parts.hostname)

    def post(self, path: str, body: bytes, content_type: str) -> bytes:
        """The body of a successful answer."""
        with self._open("POST", path, body, {"Content-Type": content_type}) as answer:
            return bytes(answer.read())

    def get_json(self, path: str) -> Any:
        """The JSON of a successful answer."""
        with self._open("GET", path) as answer:
            return json.loads(answer.read())

    def lines(self, path: str) -> Iterator[bytes]:
        """The lines of an answer, as they come."""
        try:
            with self._open("GET", path, seconds=None) as answer:
                yield from answer
        except (OSError, http.client.HTTPException) as error:
            fail(f"the connection to {self.server} broke: {error}")

    def _open(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        seconds: float | None = SECONDS_MAX,
    ) -> Any:
        url = f"{self.server}/v1/database/{quote(self.database, safe='')}{path}"
        request = urllib.request.Request(url, body, dict(headers or {}), method=method)
        if self._token is not None:
            request.add_unredirected_header("Authorization", f"Bearer {self._token}")
        try:
            return urllib.request.urlopen(request, timeout=seconds)
        except urllib.error.HTTPError as error:
            self._refused(error)
        except urllib.error.URLError as error:
            self._unreachable(error.reason)
        except (OSError, http.client.HTTPException) as error:
            self._unreachable(error)

    def _refused(self, error: urllib.error.HTTPError) -> NoReturn:
        text = error.read().decode(errors="replace").strip() or f"the server answered {error.code} {error.reason}"
        if error.code == 404 and text == f"`{self.database}` not found":
            self._no_database()
        hint = ""
        if error.code in (401, 403):
            hint = self._token_hint
        fail(text, hint, REFUSED)

    def _no_database(self) -> NoReturn:
        known: list[str] = []
        try:
            with urllib.request.urlopen(f"{self.server}/v1/health", timeout=SECONDS_MAX) as answer:
                known = list(json.loads(answer.read())["databases"])
        except (OSError, ValueError, KeyError, TypeError):
            pass
        close = difflib.get_close_matches(self.database, known, 1)
        hint = f"Did you mean {close[0]}?" if close else f"It has: {', '.join(known)}" if known else ""
        fail(f"there is no database {self.database!r} at {self.server}.", hint)

    def _unreachable(self, reason: object) -> NoReturn:
        why = getattr(reason, "strerror", None) or reason
        fail(
            f"no server answers at {self.server}: {why}.",
            "Start one with: gamedb start MODULE:OBJECT   (another address: --server URL)",
        )


def token_for(given: str | None, data_dir: Path, host: str) -> tuple[str | None, str]:
    """The token to send, and what to do when it is not enough."""
    path = data_dir / "owner.token"
    how = "Name it with --token TOKEN, or in the environment as GAMEDB_TOKEN."
    if given == NOBODY:
        return None, "You are nobody (--token none)."
    if given is not None:
        return given.strip(), "Is that the token of the owner or of an operator?"
    if not _is_here(host):
        return None, f"The owner's token is not sent to another machine by itself. {how}"
    try:
        return path.read_text().strip(), f"The token was the one in {shown(path)}; is the server's data elsewhere?"
    except FileNotFoundError:
        return None, f"There is no {shown(path)}; say where the server's data is with --data-dir DIR. {how}"
    except OSError as error:
        fail(f"{shown(path)} cannot be read: {error.strerror}.", "Only the user who runs the server may.")


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
