"""Who a request comes from: tokens issued, tokens verified, who is an operator.

A token that was supplied and is not right is a `TokenError`, never an anonymous caller. Knows keys and issuers; no
HTTP and no database.
"""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import jwt
import msgspec

from gamedb.clock import Clock, SystemClock
from gamedb.errors import StorageError, TokenError
from gamedb.identity import identity_of
from gamedb.server.keys import Keys
from gamedb.server.oidc import ALGORITHMS, Fetch, IssuerKeys, TrustedIssuer
from gamedb.server.secrets import read_secret, write_secret
from gamedb.types import Identity

ISSUER: Final = "localhost"
"""The issuer in the tokens that we sign."""
AUDIENCE: Final = "spacetimedb"
TOKEN_BYTES_MAX: Final = 8192
NAME_BYTES_MAX: Final = 128
"""Of an issuer's name and of a subject."""
VERIFIED_MAX: Final = 4096
"""Tokens of ours whose signatures are remembered as right: a client shows its one with every request."""
KEYS_LOOK_SECONDS: Final = 1
"""How often it is looked whether keys were added or deleted."""
WEBSOCKET_TOKEN_SECONDS: Final = 60
CLOCK_SKEW_SECONDS_MAX: Final = 30
"""How much the clock of a foreign issuer may differ from ours."""
_SECONDS_END: Final = 1 << 40
_UNCHECKED: Final[dict[str, Any]] = {
    f"verify_{what}": False for what in ("exp", "nbf", "iat", "aud", "iss", "sub", "jti")
}


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    """Who a verified token stands for."""

    identity: Identity
    issuer: str
    subject: str
    issued_at: int
    """Seconds since the Unix epoch, as is `expires_at`."""
    expires_at: int | None = None
    """`None`: never."""
    own: bool = True
    """Whether we issued it."""


class Authenticator:
    """Issues and verifies tokens.

    `keys`: our own. `issuers`: others that the operator trusts. `clock`: what time it is. `fetch`: how the documents
    of issuers are read, for tests.
    """

    def __init__(
        self,
        keys: Keys,
        *,
        issuers: Iterable[TrustedIssuer] = (),
        clock: Clock | None = None,
        fetch: Fetch | None = None,
    ) -> None:
        self.keys = keys
        self._clock = clock if clock is not None else SystemClock()
        self._verified: OrderedDict[str, Claims] = OrderedDict()
        self._looked_at = self._now()
        self._issuers = {
            issuer.url: IssuerKeys(issuer, lambda: self._clock.micros() / 1_000_000, fetch) for issuer in issuers
        }

    # --- issuing

    def issue(self, subject: str | None = None, *, seconds: int | None = None) -> tuple[Claims, str]:
        """A token for a subject (a new one by default), for good or for so many seconds."""
        now = self._now()
        return self._sign(ISSUER, str(uuid.uuid4()) if subject is None else subject, now, seconds and now + seconds)

    def issue_for_websocket(self, claims: Claims) -> str:
        """A token for the same identity that is good for a minute, and never longer than the one it was asked with."""
        now = self._now()
        expires_at = now + WEBSOCKET_TOKEN_SECONDS
        if claims.expires_at is not None:
            expires_at = min(expires_at, claims.expires_at)
        return self._sign(claims.issuer, claims.subject, now, expires_at)[1]

    def _sign(self, issuer: str, subject: str, now: int, expires_at: int | None) -> tuple[Claims, str]:
        identity = identity_of(issuer, subject)
        payload: dict[str, Any] = {
            "hex_identity": identity.hex(),
            "sub": subject,
            "iss": issuer,
            "aud": [AUDIENCE],
            "iat": now,
        }
        if expires_at is not None:
            payload["exp"] = expires_at
        self.keys.refresh()
        token = jwt.encode(payload, self.keys.signing, "ES256")
        claims = Claims(identity=identity, issuer=issuer, subject=subject, issued_at=now, expires_at=expires_at)
        return claims, token

    # --- verifying

    async def verify(self, token: str) -> Claims:
        """Who a token stands for; `TokenError` says why it cannot be used. Asks foreign issuers for keys if need be."""
        known = self._known(token)
        if known is not None:
            return known
        header, payload = self._open(token)
        claims = self._by_own_keys(token, header, payload)
        if claims is not None:
            return self._remember(token, claims)
        issuer, algorithm = payload["iss"], header.get("alg")
        foreign = self._issuers.get(issuer)
        if foreign is None:
            if issuer == ISSUER:
                raise TokenError("signature", "the token was not signed by this server; sign in again to get a new one")
            raise TokenError(
                "issuer", f"the token comes from {issuer!r}, which this server does not trust; see --issuer"
            )
        if algorithm not in ALGORITHMS:
            raise TokenError("algorithm", f"the token is signed with {algorithm!r}; use one of {', '.join(ALGORITHMS)}")
        key_id = header.get("kid")
        for key in await foreign.candidates(key_id if isinstance(key_id, str) else None, algorithm):
            if _is_signed_by(token, key, algorithm):
                self._check_audience(payload.get("aud"), foreign.issuer)
                return self._claims(payload, own=False)
        raise TokenError("signature", f"the token was not signed by {issuer}; sign in again to get a new one")

    def verify_own(self, token: str) -> Claims:
        """As `verify`, for tokens that we signed, and without waiting."""
        self._known(token)
        header, payload = self._open(token)
        claims = self._by_own_keys(token, header, payload)
        if claims is None:
            raise TokenError("signature", "the token was not signed by this server; sign in again to get a new one")
        return claims

    def _known(self, token: str) -> Claims | None:
        """Who a token of ours stands for that was verified before, and is as good as it was."""
        now = self._now()
        if not 0 <= now - self._looked_at < KEYS_LOOK_SECONDS:  # below 0: the clock was put back
            self._looked_at = now
            if self.keys.refresh():
                self._verified.clear()
        claims = self._verified.get(token)
        if claims is None or (claims.expires_at is not None and now >= claims.expires_at):
            return None
        self._verified.move_to_end(token)
        return claims

    def _remember(self, token: str, claims: Claims) -> Claims:
        self._verified[token] = claims
        if len(self._verified) > VERIFIED_MAX:
            self._verified.popitem(last=False)
        return claims

    def _open(self, token: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Header and claims, their form checked; nothing of it is to be believed yet."""
        if len(token) > TOKEN_BYTES_MAX:
            raise TokenError("too_long", f"the token has {len(token)} characters; at most {TOKEN_BYTES_MAX} are read")
        try:
            opened = jwt.decode_complete(token, options={"verify_signature": False, **_UNCHECKED})  # type: ignore[arg-type]
        except (jwt.PyJWTError, ValueError, RecursionError) as error:
            raise TokenError("malformed", f"the token is damaged ({error}); sign in again to get a new one") from None
        header, payload = opened["header"], opened["payload"]
        for name in ("iss", "sub"):
            value = payload.get(name)
            if not isinstance(value, str) or not 1 <= len(value.encode(errors="replace")) <= NAME_BYTES_MAX:
                raise TokenError("claims", f"the token's claim {name!r} must be text of 1 to {NAME_BYTES_MAX} bytes")
        for name in ("iat", "exp", "nbf"):
            value = payload.get(name)
            given = name == "iat" or name in payload
            if given and not (type(value) in (int, float) and abs(value) < _SECONDS_END):
                raise TokenError("claims", f"the token's claim {name!r} must be a time in seconds")
        return header, payload

    def _by_own_keys(self, token: str, header: dict[str, Any], payload: dict[str, Any]) -> Claims | None:
        """The claims of a token that we signed; `None` when we did not."""
        if header.get("alg") != "ES256":
            if payload["iss"] in self._issuers:
                return None
            raise TokenError("algorithm", f"the token is signed with {header.get('alg')!r}; this server takes ES256")
        if not self._is_signed_by_us(token) and not (self.keys.refresh() and self._is_signed_by_us(token)):
            return None
        return self._claims(payload, own=True)

    def _is_signed_by_us(self, token: str) -> bool:
        return any(_is_signed_by(token, key, "ES256") for key in self.keys.verifying)

    def _claims(self, payload: dict[str, Any], *, own: bool) -> Claims:
        """The checked claims of a token whose signature is right."""
        now, skew = self._now(), 0 if own else CLOCK_SKEW_SECONDS_MAX
        expires_at = payload.get("exp")
        if expires_at is not None and now >= expires_at + skew:
            raise TokenError("expired", "the token has expired; sign in again to get a new one")
        begins_at = payload.get("nbf", 0 if own else payload["iat"])  # our own clock may have been put back since
        if begins_at > now + skew:
            raise TokenError("not_yet_valid", "the token is not valid yet; is the clock of one of the machines wrong?")
        issuer, subject = payload["iss"], payload["sub"]
        identity = identity_of(issuer, subject)
        if payload.get("hex_identity", identity.hex()) != identity.hex():
            raise TokenError("identity", "the token's hex_identity is not the identity of its issuer and subject")
        return Claims(
            identity=identity,
            issuer=issuer,
            subject=subject,
            issued_at=int(payload["iat"]),
            expires_at=None if expires_at is None else int(expires_at),
            own=own,
        )

    def _check_audience(self, given: Any, issuer: TrustedIssuer) -> None:
        named = given if isinstance(given, list) else [given]
        audiences = {name for name in named if isinstance(name, str)}
        if issuer.audiences and not audiences & issuer.audiences:
            wanted = " or ".join(sorted(issuer.audiences))
            raise TokenError("audience", f"the token was made for {given!r}, not for {wanted}")

    def _now(self) -> int:
        return self._clock.micros() // 1_000_000


def _is_signed_by(token: str, key: Any, algorithm: str) -> bool:
    try:
        jwt.decode(token, key, algorithms=[algorithm], options=_UNCHECKED)  # type: ignore[arg-type]
    except (jwt.PyJWTError, ValueError):
        return False
    return True


def owner_token(path: Path, authenticator: Authenticator) -> tuple[Claims, str]:
    """The token in a file, made (readable for its owner alone) when it is not there: who holds it is an operator.

    A token whose key was deleted is replaced by a new one for the same identity.
    """
    if not path.exists():
        claims, token = authenticator.issue()
        write_secret(path, f"{token}\n")
        return claims, token
    token = read_secret(path).strip()
    try:
        return authenticator.verify_own(token), token
    except TokenError as error:
        if error.code != "signature":
            raise StorageError(f"{path}: {error}; delete the file to get another owner with the next start") from None
        _, payload = authenticator._open(token)
        if payload["iss"] != ISSUER:
            raise StorageError(f"{path} holds a token of {payload['iss']!r}; delete it to get a new one") from None
        claims, token = authenticator.issue(payload["sub"])
        write_secret(path, f"{token}\n", replace=True)
        return claims, token
