"""Forged tokens, paths out of the directory, giant requests: at the edges of a server over real sockets."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from gamedb.server.limits import Limits
from gamedb.wire import messages
from tests.gamedb.server.fortress import TREASURE, Fortress, serving
from tests.gamedb.server.with_sockets import V3, Connection, raw, upgrade_answer

LIMIT = 1 << 20


@pytest.fixture(scope="module")
def fortress(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fortress]:
    with serving(tmp_path_factory.mktemp("fortress"), limits=Limits(message_bytes_max=LIMIT)) as fortress:
        yield fortress


def encoded(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def forged(fortress: Fortress) -> dict[str, str]:
    """Tokens that claim to be the owner's."""
    token = fortress.site.owner_token
    _, payload, signature = token.split(".")
    claims = jwt.decode(token, options={"verify_signature": False})
    public = fortress.request("GET", "/v1/identity/public-key").text
    hs256 = f"{encoded({'alg': 'HS256', 'typ': 'JWT'})}.{payload}"
    digest = hmac.new(public.encode(), hs256.encode(), hashlib.sha256).digest()
    mine = ec.generate_private_key(ec.SECP256R1())
    jwk = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(mine.public_key()))
    return {
        "alg none": f"{encoded({'alg': 'none', 'typ': 'JWT'})}.{payload}.",
        "alg none, signature kept": f"{encoded({'alg': 'none'})}.{payload}.{signature}",
        "HS256 with the public key": f"{hs256}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}",
        "another key": jwt.encode(claims, mine, "ES256"),
        "another key, in its header": jwt.encode(claims, mine, "ES256", headers={"jwk": jwk, "kid": "0001"}),
        "another key, by a URL": jwt.encode(claims, mine, "ES256", headers={"jku": "http://127.0.0.1:1/keys"}),
        "another issuer": jwt.encode({**claims, "iss": "https://evil.example.com"}, mine, "ES256"),
        "an issuer that is a path": jwt.encode({**claims, "iss": f"{fortress.url}/v1"}, mine, "ES256"),
        "a changed payload": f"{token.split('.')[0]}.{encoded({**claims, 'sub': 'x'})}.{signature}",
        "cut off": token[:-10],
        "a null byte": token + "%00",
        "nothing in it": "..",
    }


NAMES = [
    "alg none", "alg none, signature kept", "HS256 with the public key", "another key", "another key, in its header",
    "another key, by a URL", "another issuer", "an issuer that is a path", "a changed payload", "cut off",
    "a null byte", "nothing in it",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_forged_token_is_refused_everywhere(fortress: Fortress, name: str) -> None:
    token = forged(fortress)[name]
    before = fortress.db.last_tx_id
    assert fortress.call("open_vault", token=token).status == 401
    assert fortress.sql("SELECT * FROM vault", token).status == 401
    assert fortress.request("GET", "/metrics", token=token).status == 401
    assert fortress.request("GET", "/v1/database/fortress/logs", token=token).status == 401
    assert fortress.request("POST", "/v1/identity/websocket-token", b"", token).status == 401
    owner = fortress.site.owner.hex()
    assert fortress.request("GET", f"/v1/identity/{owner}/verify", token=token).status == 401
    protocol = f"Sec-WebSocket-Protocol: {V3}\r\n"
    answer = upgrade_answer_of(fortress, f"?token={token}", protocol)
    assert answer.startswith("HTTP/1.1 401 ")
    answer = upgrade_answer_of(fortress, "", f"{protocol}Authorization: Bearer {token}\r\n")
    assert answer.startswith("HTTP/1.1 401 ")
    assert fortress.db.last_tx_id == before


def upgrade_answer_of(fortress: Fortress, query: str, headers: str) -> str:
    return upgrade_answer(fortress, name="fortress", query=query, headers=headers)  # type: ignore[arg-type]


def test_no_token_is_somebody_new_and_nobody_s_operator(fortress: Fortress) -> None:
    for token in (None, ""):
        assert fortress.call("open_vault", token=token).status == 404


def get(fortress: Fortress, path: str) -> str:
    """What a server answers to this very path, which no client library has tidied up."""
    with raw(fortress) as connection:  # type: ignore[arg-type]
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while data := connection.recv(65536):
            answer += data
        return answer.decode(errors="replace")


@pytest.mark.parametrize(
    "path",
    [
        "/../outside.txt", "/..%2foutside.txt", "/%2e%2e/outside.txt", "/%2e%2e%2foutside.txt",
        "/sub/../../outside.txt",
        "/sub/..%2f..%2foutside.txt", "/..%5coutside.txt", "//../outside.txt", "/./../outside.txt", "/link",
        "/../data/owner.token", "/..%2fdata%2fkeys%2f0001.pem", "/....//outside.txt", "/%252e%252e/outside.txt",
        "/.env", "/sub/../.env", "/%2eenv", "/outside.txt%00.html", "/%00", "/" + "a" * 5000, "/~root", "/etc/passwd",
        "//etc/passwd", "/file:///etc/passwd", "/sub",
    ],
)  # fmt: skip
def test_no_path_leads_out_of_the_directory(fortress: Fortress, path: str) -> None:
    answer = get(fortress, path)
    assert TREASURE not in answer
    assert "hidden" not in answer
    assert "PRIVATE KEY" not in answer
    assert "root:" not in answer
    assert fortress.site.owner_token not in answer
    assert answer.startswith(("HTTP/1.1 404 ", "HTTP/1.1 400 ", "HTTP/1.1 307 "))


def test_what_is_in_the_directory_is_served(fortress: Fortress) -> None:
    assert "<h1>Fortress" in get(fortress, "/")
    assert get(fortress, "/sub/page.js").startswith("HTTP/1.1 200 ")
    assert "nosniff" in get(fortress, "/sub/page.js")


def test_giant_bodies_are_refused(fortress: Fortress) -> None:
    body = b'["' + b"x" * (2 * LIMIT) + b'"]'
    headers = {"Content-Type": "application/json"}
    answer = fortress.request("POST", "/v1/database/fortress/call/set_password", body, **headers)
    assert answer.status == 413
    assert fortress.request("POST", "/v1/database/fortress/sql", b"x" * (2 << 20)).status == 413
    assert fortress.call("set_password", "small").status == 200


def test_a_body_without_end_is_cut(fortress: Fortress) -> None:
    """Chunk after chunk, without saying how much will come."""
    with raw(fortress) as connection:  # type: ignore[arg-type]
        connection.sendall(b"POST /v1/database/fortress/sql HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
        sent = 0
        try:
            while sent < 64 << 20:
                connection.sendall(chunk)
                sent += len(chunk)
        except OSError:
            pass
        assert sent < 64 << 20
    assert fortress.request("GET", "/v1/ping").status == 200


def test_giant_headers_are_refused(fortress: Fortress) -> None:
    with raw(fortress) as connection:  # type: ignore[arg-type]
        connection.sendall(b"GET /v1/ping HTTP/1.1\r\nHost: x\r\nX: " + b"x" * (1 << 20))
        answer = connection.recv(65536)
        assert answer == b"" or answer.startswith(b"HTTP/1.1 4")
    assert fortress.request("GET", "/v1/ping").status == 200


def test_a_giant_websocket_message_ends_its_connection_alone(fortress: Fortress) -> None:
    with Connection(fortress.url, database="fortress") as good, Connection(fortress.url, database="fortress") as bad:
        bad.send_bytes(bytes(2 * LIMIT))
        assert bad.closed()[0] == 1009
        good.send(messages.OneOffQuery(request_id=1, query="SELECT * FROM town"))
        assert isinstance(good.next(), messages.OneOffQueryResult)


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b"[" + b"9" * 100_000 + b"]",
        b"\xff\xfe",
        b'["\\ud800"]',
        b"[1e999999]",
        b"null",
    ],
)
def test_hostile_json_is_refused(fortress: Fortress, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    for function in ("set_password", "write"):
        answer = fortress.request("POST", f"/v1/database/fortress/call/{function}", body, **headers)
        assert answer.status == 400
        assert len(answer.text) < 2000


def test_a_page_of_another_origin_gets_nothing_that_it_does_not_bring(fortress: Fortress) -> None:
    """No cookies, no credentials by themselves: a page can only use a token that it has."""
    answer = fortress.request("GET", "/v1/database/fortress", Origin="https://evil.example.com")
    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.headers["access-control-allow-credentials"] is None
    assert answer.headers["set-cookie"] is None
    assert fortress.request("GET", "/metrics", Origin="https://evil.example.com").headers[
        "access-control-allow-origin"
    ] is None  # fmt: skip
