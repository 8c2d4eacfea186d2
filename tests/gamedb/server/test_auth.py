"""Tokens: what is issued, what is accepted, and that everything else is refused with its own code."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import os
import shutil
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from gamedb import ManualClock, SchemaError, StorageError, TokenError
from gamedb.identity import identity_of
from gamedb.server.auth import (
    KEYS_LOOK_SECONDS,
    TOKEN_BYTES_MAX,
    WEBSOCKET_TOKEN_SECONDS,
    Authenticator,
    Claims,
    owner_token,
)
from gamedb.server.keys import Keys
from gamedb.server.oidc import REFRESH_SECONDS_MIN, TrustedIssuer

ISSUER = "https://login.example.com"


def seconds(clock: ManualClock) -> int:
    return clock.micros() // 1_000_000


@pytest.fixture
def keys() -> Keys:
    return Keys(None)


@pytest.fixture
def auth(keys: Keys, clock: ManualClock) -> Authenticator:
    return Authenticator(keys, clock=clock)


def verify(auth: Authenticator, token: str) -> Claims:
    return asyncio.run(auth.verify(token))


def code(auth: Authenticator, token: str) -> str:
    with pytest.raises(TokenError) as refused:
        verify(auth, token)
    return refused.value.code


def forged(
    keys: Keys, clock: ManualClock, key: Any = None, algorithm: str = "ES256", drop: str = "", **changes: Any
) -> str:
    """A token with one thing different from what we would have issued."""
    payload = {"sub": "ann", "iss": "localhost", "aud": ["spacetimedb"], "iat": seconds(clock), **changes}
    payload.pop(drop, None)
    return jwt.encode(payload, keys.signing if key is None else key, algorithm)


class TestIssued:
    def test_a_token_gives_its_identity_at_any_later_time(self, auth: Authenticator, clock: ManualClock) -> None:
        claims, token = auth.issue()
        clock.advance(10 * 365 * 86_400)
        assert verify(auth, token) == claims
        assert claims.identity == identity_of("localhost", claims.subject)
        assert uuid.UUID(claims.subject).version == 4

    def test_it_looks_as_spacetimedb_makes_it(self, auth: Authenticator, clock: ManualClock) -> None:
        claims, token = auth.issue()
        opened = jwt.decode_complete(token, options={"verify_signature": False})
        assert opened["header"] == {"typ": "JWT", "alg": "ES256"}
        assert opened["payload"] == {
            "hex_identity": claims.identity.hex(),
            "sub": claims.subject,
            "iss": "localhost",
            "aud": ["spacetimedb"],
            "iat": seconds(clock),
        }

    def test_each_has_another_identity(self, auth: Authenticator) -> None:
        assert auth.issue()[0].identity != auth.issue()[0].identity

    def test_a_websocket_token_is_for_the_same_identity_and_good_for_a_minute(
        self, auth: Authenticator, clock: ManualClock
    ) -> None:
        claims, _ = auth.issue()
        short = auth.issue_for_websocket(claims)
        clock.advance(WEBSOCKET_TOKEN_SECONDS - 1)
        assert verify(auth, short).identity == claims.identity
        clock.advance(1)
        assert code(auth, short) == "expired"

    def test_a_websocket_token_cannot_be_renewed_by_itself(self, auth: Authenticator, clock: ManualClock) -> None:
        short = verify(auth, auth.issue_for_websocket(auth.issue()[0]))
        clock.advance(50)
        assert verify(auth, auth.issue_for_websocket(short)).expires_at == short.expires_at


class TestRefused:
    def test_text_that_is_no_token(self, auth: Authenticator) -> None:
        _, token = auth.issue()
        for text in [
            "",
            "x",
            "a.b.c",
            "...",
            token[:-20],
            token.replace(".", "", 1),
            "\x00.\x00.\x00",
            "é.é.é",
            token + ".",
        ]:
            assert code(auth, text) in ("malformed", "signature")

    def test_every_damaged_character(self, auth: Authenticator) -> None:
        _, token = auth.issue()
        for at in range(0, len(token) - 1, 7):
            damaged = token[:at] + ("A" if token[at] != "A" else "B") + token[at + 1 :]
            with pytest.raises(TokenError):
                verify(auth, damaged)

    def test_algorithm_none(self, auth: Authenticator, keys: Keys, clock: ManualClock) -> None:
        payload = auth.issue()[1].split(".")[1]
        for name in ("none", "None", "NONE"):
            bare = base64.urlsafe_b64encode(json.dumps({"alg": name, "typ": "JWT"}).encode()).rstrip(b"=").decode()
            assert code(auth, f"{bare}.{payload}.") == "algorithm"

    def test_hs256_with_the_public_key_as_secret(self, auth: Authenticator, keys: Keys, clock: ManualClock) -> None:
        def part(value: bytes) -> str:
            return base64.urlsafe_b64encode(value).rstrip(b"=").decode()

        header = part(json.dumps({"alg": "HS256", "typ": "JWT"}).encode())
        signed = f"{header}.{auth.issue()[1].split('.')[1]}"
        digest = hmac.new(keys.public_pem().encode(), signed.encode(), hashlib.sha256).digest()
        assert code(auth, f"{signed}.{part(digest)}") == "algorithm"

    def test_a_foreign_key(self, auth: Authenticator, keys: Keys, clock: ManualClock) -> None:
        assert code(auth, forged(keys, clock, ec.generate_private_key(ec.SECP256R1()))) == "signature"

    def test_an_issuer_that_nobody_allowed(self, auth: Authenticator, keys: Keys, clock: ManualClock) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        assert code(auth, forged(keys, clock, key, iss="https://evil.example.com")) == "issuer"

    def test_expired_and_not_yet_valid(self, auth: Authenticator, keys: Keys, clock: ManualClock) -> None:
        now = seconds(clock)
        assert code(auth, forged(keys, clock, exp=now)) == "expired"
        assert code(auth, forged(keys, clock, nbf=now + 60)) == "not_yet_valid"

    def test_an_identity_that_is_not_its_own(self, auth: Authenticator, keys: Keys, clock: ManualClock) -> None:
        right, wrong = identity_of("localhost", "ann").hex(), identity_of("localhost", "ben").hex()
        assert verify(auth, forged(keys, clock, hex_identity=right)).identity.hex() == right
        assert code(auth, forged(keys, clock, hex_identity=wrong)) == "identity"
        assert code(auth, forged(keys, clock, hex_identity=None)) == "identity"

    @pytest.mark.parametrize("name", ["iss", "sub", "iat"])
    def test_a_missing_claim(self, auth: Authenticator, keys: Keys, clock: ManualClock, name: str) -> None:
        assert code(auth, forged(keys, clock, drop=name)) == "claims"

    @pytest.mark.parametrize(
        "changes",
        [{"sub": ""}, {"sub": "x" * 129}, {"sub": "é" * 65}, {"iat": "1"}, {"iat": True}, {"iat": 1e300},
         {"exp": "soon"}, {"exp": None}, {"exp": float("inf")}, {"nbf": float("nan")}, {"nbf": [1]}],
        ids=str,
    )  # fmt: skip
    def test_a_claim_of_another_form(
        self, auth: Authenticator, keys: Keys, clock: ManualClock, changes: dict[str, Any]
    ) -> None:
        payload = {"sub": "ann", "iss": "localhost", "iat": seconds(clock), **changes}
        token = jwt.api_jws.encode(json.dumps(payload).encode(), keys.signing, "ES256")
        assert code(auth, token) == "claims"

    def test_one_that_is_too_long(self, auth: Authenticator, keys: Keys, clock: ManualClock) -> None:
        assert code(auth, forged(keys, clock, more="x" * TOKEN_BYTES_MAX)) == "too_long"

    def test_deeply_nested_claims(self, auth: Authenticator, keys: Keys, clock: ManualClock) -> None:
        nested = "[" * 3000
        token = jwt.api_jws.encode(f'{{"sub": {nested}'.encode(), keys.signing, "ES256")
        assert code(auth, token) == "malformed"


class TestKeys:
    def test_a_restart_keeps_identities(self, tmp_path: Path, clock: ManualClock) -> None:
        claims, token = Authenticator(Keys(tmp_path / "keys"), clock=clock).issue()
        assert verify(Authenticator(Keys(tmp_path / "keys"), clock=clock), token) == claims

    def test_key_files_are_for_their_owner_alone(self, tmp_path: Path) -> None:
        Keys(tmp_path / "keys")
        assert (tmp_path / "keys").stat().st_mode & 0o777 == 0o700
        assert [(f.name, f.stat().st_mode & 0o777) for f in (tmp_path / "keys").iterdir()] == [("0001.pem", 0o600)]

    def test_a_key_that_others_can_read_is_refused(self, tmp_path: Path) -> None:
        Keys(tmp_path / "keys")
        os.chmod(tmp_path / "keys" / "0001.pem", 0o644)
        with pytest.raises(StorageError, match=r"chmod 600"):
            Keys(tmp_path / "keys")

    def test_a_file_that_is_no_key_is_refused(self, tmp_path: Path) -> None:
        Keys(tmp_path / "keys")
        (tmp_path / "keys" / "0001.pem").write_text("nothing")
        with pytest.raises(StorageError, match="no private key"):
            Keys(tmp_path / "keys")
        other = rsa.generate_private_key(65537, 2048)
        pem = other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        (tmp_path / "keys" / "0001.pem").write_bytes(pem)
        with pytest.raises(StorageError, match="not a P-256 key"):
            Keys(tmp_path / "keys")

    def test_after_a_rotation_the_new_key_signs_and_the_old_one_still_verifies(
        self, tmp_path: Path, clock: ManualClock
    ) -> None:
        auth = Authenticator(Keys(tmp_path / "keys"), clock=clock)
        before, old = auth.issue()
        pem = auth.keys.public_pem()
        Keys(tmp_path / "keys").rotate()  # by another process
        after, new = auth.issue()
        assert auth.keys.public_pem() != pem
        assert verify(auth, old) == before
        assert verify(auth, new) == after
        (tmp_path / "keys" / "0001.pem").unlink()
        assert verify(Authenticator(Keys(tmp_path / "keys"), clock=clock), new) == after
        assert code(Authenticator(Keys(tmp_path / "keys"), clock=clock), old) == "signature"

    def test_a_running_server_notices_that_a_key_was_deleted(self, tmp_path: Path, clock: ManualClock) -> None:
        auth = Authenticator(Keys(tmp_path / "keys"), clock=clock)
        _, old = auth.issue()
        auth.keys.rotate()
        claims, new = auth.issue()
        for token in (old, new):
            verify(auth, token)
        (tmp_path / "keys" / "0001.pem").unlink()
        clock.advance(KEYS_LOOK_SECONDS)
        assert code(auth, old) == "signature"
        assert verify(auth, new) == claims

    def test_places_that_cannot_be_used_are_named(self, tmp_path: Path, auth: Authenticator) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(StorageError, match=r"file/keys cannot be made"):
            Keys(tmp_path / "file" / "keys")
        with pytest.raises(StorageError, match=r"file/owner.token cannot be written"):
            owner_token(tmp_path / "file" / "owner.token", auth)
        keys = Keys(tmp_path / "keys")
        shutil.rmtree(tmp_path / "keys")
        with pytest.raises(StorageError, match="keys cannot be read"):
            keys.refresh()

    def test_a_clock_that_is_put_back_keeps_tokens_good_and_deleted_keys_bad(
        self, tmp_path: Path, clock: ManualClock
    ) -> None:
        auth = Authenticator(Keys(tmp_path / "keys"), clock=clock)
        owner_token(tmp_path / "owner.token", auth)
        claims, old = auth.issue()
        clock.set(clock.now - timedelta(days=1))
        assert verify(auth, old) == claims
        assert verify(Authenticator(Keys(tmp_path / "keys"), clock=clock), old) == claims
        owner_token(tmp_path / "owner.token", Authenticator(Keys(tmp_path / "keys"), clock=clock))
        auth.keys.rotate()
        (tmp_path / "keys" / "0001.pem").unlink()
        clock.set(clock.now - timedelta(days=1))
        assert code(auth, old) == "signature"

    def test_what_was_verified_before_still_expires(self, tmp_path: Path, clock: ManualClock) -> None:
        auth = Authenticator(Keys(None), clock=clock)
        _, token = auth.issue(seconds=10)
        verify(auth, token)
        clock.advance(10)
        assert code(auth, token) == "expired"

    def test_not_every_token_is_remembered(self, auth: Authenticator, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("gamedb.server.auth.VERIFIED_MAX", 3)
        for _ in range(10):
            verify(auth, auth.issue()[1])
        assert len(auth._verified) == 3

    def test_a_running_server_takes_in_a_key_of_another_process(self, tmp_path: Path, clock: ManualClock) -> None:
        auth = Authenticator(Keys(tmp_path / "keys"), clock=clock)
        other = Keys(tmp_path / "keys")
        other.rotate()
        claims, token = Authenticator(other, clock=clock).issue()
        assert verify(auth, token) == claims


class TestOwner:
    def test_the_owner_token_is_made_once_for_its_owner_alone(
        self, tmp_path: Path, auth: Authenticator, clock: ManualClock
    ) -> None:
        path = tmp_path / "owner.token"
        claims, token = owner_token(path, auth)
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.read_text() == f"{token}\n"
        clock.advance(86_400)
        assert owner_token(path, auth) == (claims, token)

    def test_it_stays_the_same_owner_when_its_key_was_deleted(self, tmp_path: Path, clock: ManualClock) -> None:
        claims, token = owner_token(tmp_path / "owner.token", Authenticator(Keys(None), clock=clock))
        auth = Authenticator(Keys(None), clock=clock)
        again, renewed = owner_token(tmp_path / "owner.token", auth)
        assert again.identity == claims.identity
        assert renewed != token
        assert verify(auth, renewed) == again

    def test_a_damaged_owner_token_is_an_error(self, tmp_path: Path, auth: Authenticator) -> None:
        path = tmp_path / "owner.token"
        owner_token(path, auth)
        path.write_text("damaged")
        with pytest.raises(StorageError, match="delete the file"):
            owner_token(path, auth)


class Issuer:
    """An OpenID Connect issuer without a network."""

    def __init__(self, url: str = ISSUER) -> None:
        self.url = url
        self.keys: dict[str, Any] = {}
        self.asked: list[str] = []
        self.broken = False
        self.says = url
        self.jwks_uri = "https://keys.example.com/jwks"
        self.add("one", ec.generate_private_key(ec.SECP256R1()))

    def add(self, key_id: str, key: Any) -> None:
        self.keys[key_id] = key

    def fetch(self, url: str) -> bytes:
        self.asked.append(url)
        if self.broken:
            raise OSError("no route")
        if url == f"{self.url}/.well-known/openid-configuration":
            return json.dumps({"issuer": self.says, "jwks_uri": self.jwks_uri}).encode()
        assert url == self.jwks_uri
        return json.dumps({"keys": [self._described(key_id, key) for key_id, key in self.keys.items()]}).encode()

    def _described(self, key_id: str, key: Any) -> dict[str, Any]:
        if isinstance(key, rsa.RSAPrivateKey):
            described = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key()))
            return {**described, "kid": key_id, "alg": "RS256"}
        if isinstance(key, bytes):
            secret = base64.urlsafe_b64encode(key).rstrip(b"=").decode()
            return {"kty": "oct", "k": secret, "kid": key_id, "alg": "HS256"}
        return {**json.loads(jwt.algorithms.ECAlgorithm.to_jwk(key.public_key())), "kid": key_id}

    def token(self, key_id: str = "one", algorithm: str = "ES256", **changes: Any) -> str:
        payload = {"sub": "ann", "iss": self.url, "aud": "my-game", "iat": 1_767_225_600, **changes}
        return jwt.encode(payload, self.keys[key_id], algorithm, headers={"kid": key_id})


class TestForeignIssuers:
    @pytest.fixture
    def issuer(self) -> Issuer:
        return Issuer()

    @pytest.fixture
    def auth(self, keys: Keys, clock: ManualClock, issuer: Issuer) -> Authenticator:
        trusted = [TrustedIssuer.parse(f"{ISSUER}=my-game,other-game")]
        return Authenticator(keys, issuers=trusted, clock=clock, fetch=issuer.fetch)

    def test_a_token_of_a_trusted_issuer(self, auth: Authenticator, issuer: Issuer) -> None:
        claims = verify(auth, issuer.token())
        assert claims.identity == identity_of(ISSUER, "ann")
        assert not claims.own
        assert verify(auth, issuer.token(aud=["x", "other-game"])).identity == claims.identity
        assert len(issuer.asked) == 2  # discovery and keys, once

    def test_a_websocket_token_for_it_is_signed_by_us(self, auth: Authenticator, issuer: Issuer) -> None:
        claims = verify(auth, issuer.token())
        short = verify(auth, auth.issue_for_websocket(claims))
        assert (short.identity, short.own) == (claims.identity, True)

    def test_rsa_keys(self, auth: Authenticator, issuer: Issuer) -> None:
        issuer.add("two", rsa.generate_private_key(65537, 2048))
        assert verify(auth, issuer.token("two", "RS256")).subject == "ann"

    def test_a_shared_secret_is_no_key(self, auth: Authenticator, issuer: Issuer) -> None:
        issuer.add("secret", b"x" * 64)
        assert code(auth, issuer.token("secret", "HS256")) == "algorithm"

    @pytest.mark.parametrize("audience", ["else", [], ["else"], [["my-game"], {}], None, 5, {"my-game": 1}], ids=str)
    def test_a_wrong_audience(self, auth: Authenticator, issuer: Issuer, audience: Any) -> None:
        payload = {"sub": "ann", "iss": ISSUER, "iat": 1_767_225_600, "aud": audience}
        token = jwt.api_jws.encode(json.dumps(payload).encode(), issuer.keys["one"], "ES256", headers={"kid": "one"})
        assert code(auth, token) == "audience"

    def test_a_foreign_key_under_a_known_id(self, auth: Authenticator, issuer: Issuer) -> None:
        stranger = Issuer()
        assert code(auth, stranger.token()) == "signature"
        assert verify(auth, issuer.token())

    def test_expired_with_some_room_for_other_clocks(
        self, auth: Authenticator, issuer: Issuer, clock: ManualClock
    ) -> None:
        assert verify(auth, issuer.token(exp=seconds(clock) - 20))
        assert code(auth, issuer.token(exp=seconds(clock) - 40)) == "expired"
        assert verify(auth, issuer.token(iat=seconds(clock) + 20))
        assert code(auth, issuer.token(iat=seconds(clock) + 40)) == "not_yet_valid"

    def test_a_new_key_is_asked_for_but_not_again_and_again(
        self, auth: Authenticator, issuer: Issuer, clock: ManualClock
    ) -> None:
        verify(auth, issuer.token())
        issuer.add("two", ec.generate_private_key(ec.SECP256R1()))
        assert code(auth, issuer.token("two")) == "signature"
        clock.advance(REFRESH_SECONDS_MIN)
        assert verify(auth, issuer.token("two"))
        asked = len(issuer.asked)
        for number in range(100):
            issuer.keys[f"unknown{number}"] = issuer.keys["one"]
        for number in range(100):
            assert code(auth, issuer.token(f"unknown{number}")) == "signature"
        assert len(issuer.asked) == asked

    def test_a_clock_that_is_put_back_does_not_keep_from_asking(
        self, auth: Authenticator, issuer: Issuer, clock: ManualClock
    ) -> None:
        verify(auth, issuer.token(iat=0))
        issuer.add("two", ec.generate_private_key(ec.SECP256R1()))
        clock.set(clock.now - timedelta(days=1))
        assert verify(auth, issuer.token("two", iat=0))

    def test_known_keys_go_on_while_the_issuer_is_away(
        self, auth: Authenticator, issuer: Issuer, clock: ManualClock
    ) -> None:
        verify(auth, issuer.token())
        issuer.broken = True
        clock.advance(86_400)
        assert verify(auth, issuer.token())

    def test_an_issuer_that_cannot_be_reached_is_said_to_be_so(
        self, auth: Authenticator, issuer: Issuer, clock: ManualClock
    ) -> None:
        issuer.broken = True
        assert code(auth, issuer.token()) == "issuer_unreachable"
        issuer.broken = False
        clock.advance(REFRESH_SECONDS_MIN)
        assert verify(auth, issuer.token())

    def test_a_document_about_another_issuer_is_not_believed(self, auth: Authenticator, issuer: Issuer) -> None:
        issuer.says = "https://elsewhere.example.com"
        assert code(auth, issuer.token()) == "issuer_unreachable"

    def test_keys_over_plain_http_are_not_fetched(self, auth: Authenticator, issuer: Issuer) -> None:
        issuer.jwks_uri = "http://keys.example.com/jwks"
        assert code(auth, issuer.token()) == "issuer_unreachable"

    def test_a_token_never_decides_where_we_connect_to(self, auth: Authenticator, issuer: Issuer) -> None:
        evil = Issuer("https://evil.example.com")
        assert code(auth, evil.token()) == "issuer"
        assert evil.asked == issuer.asked == []

    def test_issuers_are_named_with_an_audience_and_by_https(self) -> None:
        assert TrustedIssuer.parse("https://a.example=*").audiences == frozenset()
        for text in ["https://a.example", "http://a.example=x", "a.example=x", "file:///etc/passwd=x", "=x"]:
            with pytest.raises(SchemaError):
                TrustedIssuer.parse(text)
