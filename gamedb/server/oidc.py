"""The public keys of issuers that the operator trusts, by OpenID Connect discovery.

Only configured issuers are ever asked: what a token says about itself never decides where we connect to. Keys are kept;
an unknown key id asks again, but not more often than `REFRESH_SECONDS_MIN`. Blocking reads run off the loop.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

import jwt
import msgspec

from gamedb.errors import SchemaError, TokenError

REFRESH_SECONDS_MIN: Final = 30.0
"""How long an issuer is left in peace after it was asked, whatever came of it."""
KEYS_SECONDS_MAX: Final = 3600.0
"""From when on kept keys are asked for again; if that fails they go on being used."""
DOCUMENT_BYTES_MAX: Final = 1 << 20
FETCH_SECONDS_MAX: Final = 10.0
ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Asymmetric ones alone: with a shared secret, whoever can verify can sign."""

Fetch = Callable[[str], bytes]


class TrustedIssuer(msgspec.Struct, frozen=True):
    """An issuer whose tokens are accepted, for one of these audiences (none given: for any)."""

    url: str
    audiences: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, text: str) -> TrustedIssuer:
        """From `URL=AUDIENCE[,AUDIENCE]`; `URL=*` accepts tokens that were made for anybody."""
        url, equals, audiences = text.rpartition("=")
        if not equals or not audiences:
            raise SchemaError(
                f"issuer {text!r}: say for which audience (your client id there) its tokens must be: "
                f"{text or 'https://accounts.example.com'}=my-game; '=*' takes tokens that were made for any program"
            )
        check_url(url)
        return cls(url, frozenset() if audiences == "*" else frozenset(audiences.split(",")))


def check_url(url: str) -> None:
    """`SchemaError` unless a URL is https, or http to this very machine."""
    parts = urlsplit(url)
    if parts.scheme == "https" and parts.hostname:
        return
    if parts.scheme == "http" and _is_loopback(parts.hostname):
        return
    raise SchemaError(f"{url!r} cannot be trusted to say who somebody is; use an https:// address")


def _is_loopback(host: str | None) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False


class IssuerKeys:
    """The keys of one issuer."""

    def __init__(self, issuer: TrustedIssuer, seconds: Callable[[], float], fetch: Fetch | None = None) -> None:
        self.issuer = issuer
        self._seconds = seconds
        self._fetch = fetch or fetch_document
        self._lock: asyncio.Lock | None = None
        self._keys: list[jwt.PyJWK] = []
        self._asked = float("-inf")
        self._got = float("-inf")
        self._problem = "it was not asked yet"

    async def candidates(self, key_id: str | None, algorithm: str) -> list[jwt.PyJWK]:
        """The keys that a token with this header may be signed with; `TokenError` when there is none."""
        found = self._matching(key_id, algorithm)
        if found and 0 <= self._seconds() - self._got < KEYS_SECONDS_MAX:
            return found
        await self._ask()
        found = self._matching(key_id, algorithm)
        if found:
            return found
        if not self._keys:
            raise TokenError(
                "issuer_unreachable", f"the keys of {self.issuer.url} cannot be had: {self._problem}; try again later"
            )
        raise TokenError("signature", f"{self.issuer.url} has no {algorithm} key {key_id!r}; sign in again")

    def _matching(self, key_id: str | None, algorithm: str) -> list[jwt.PyJWK]:
        return [
            key
            for key in self._keys
            if key.algorithm_name == algorithm and (key_id is None or key.key_id is None or key.key_id == key_id)
        ]

    async def _ask(self) -> None:
        if self._lock is None:
            self._lock = asyncio.Lock()
        async with self._lock:
            now = self._seconds()
            if 0 <= now - self._asked < REFRESH_SECONDS_MIN:  # below 0: the clock was put back
                return
            self._asked = now
            try:
                self._keys = await asyncio.to_thread(self._discover)
                self._got = now
            except Exception as error:  # whatever a foreign server answers
                self._problem = f"{type(error).__name__}: {error}"

    def _discover(self) -> list[jwt.PyJWK]:
        url = f"{self.issuer.url.rstrip('/')}/.well-known/openid-configuration"
        document = json.loads(self._fetch(url))
        if document.get("issuer") != self.issuer.url:
            raise ValueError(f"{url} describes the issuer {document.get('issuer')!r}")
        check_url(document["jwks_uri"])
        keys = []
        for described in json.loads(self._fetch(document["jwks_uri"]))["keys"]:
            key = _key(described)
            if key is not None:
                keys.append(key)
        return keys


def _key(described: dict[str, Any]) -> jwt.PyJWK | None:
    """A key of a JWKS that can verify tokens; `None` for those of other kinds and uses."""
    if described.get("use", "sig") != "sig":
        return None
    try:
        key = jwt.PyJWK(described)
    except jwt.PyJWTError:
        return None
    return key if key.algorithm_name in ALGORITHMS else None


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_args: Any, **_kwargs: Any) -> None:
        return None


_opener = urllib.request.build_opener(_NoRedirects)


def fetch_document(url: str) -> bytes:
    """The body behind a URL; redirects are not followed, large bodies are refused."""
    request = urllib.request.Request(url, headers={"Accept": "application/json", "User-Agent": "gamedb"})
    with _opener.open(request, timeout=FETCH_SECONDS_MAX) as answer:
        body: bytes = answer.read(DOCUMENT_BYTES_MAX + 1)
    if len(body) > DOCUMENT_BYTES_MAX:
        raise ValueError(f"{url} is longer than {DOCUMENT_BYTES_MAX} bytes")
    return body
