"""What is fetched from issuers, over real HTTP, and which of their keys are taken."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.error import HTTPError

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from gamedb import SchemaError, TokenError
from gamedb.server import oidc
from gamedb.server.oidc import IssuerKeys, TrustedIssuer, fetch_document


class Site(ThreadingHTTPServer):
    """Answers with what `documents` has for the path; a text is where to go instead."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Page)
        self.documents: dict[str, bytes | str] = {}
        self.asked: list[str] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class Page(BaseHTTPRequestHandler):
    server: Site

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        found = self.server.documents.get(self.path)
        self.send_response(404 if found is None else 302 if isinstance(found, str) else 200)
        if isinstance(found, str):
            self.send_header("Location", found)
        self.end_headers()
        if isinstance(found, bytes):
            self.wfile.write(found)

    def log_message(self, *_args: Any) -> None:
        pass


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as site:
        thread = threading.Thread(target=site.serve_forever, args=(0.01,))
        thread.start()
        yield site
        site.shutdown()
        thread.join()


def public(key_id: str, **more: str) -> dict[str, Any]:
    key = ec.generate_private_key(ec.SECP256R1()).public_key()
    return {**json.loads(jwt.algorithms.ECAlgorithm.to_jwk(key)), "kid": key_id, **more}


def describe(site: Site, *keys: dict[str, Any], issuer: str | None = None) -> None:
    discovery = {"issuer": issuer or site.url, "jwks_uri": f"{site.url}/keys"}
    site.documents["/.well-known/openid-configuration"] = json.dumps(discovery).encode()
    site.documents["/keys"] = json.dumps({"keys": keys}).encode()


def candidates(site: Site, key_id: str | None = None) -> list[str | None]:
    keys = IssuerKeys(TrustedIssuer.parse(f"{site.url}=my-game"), lambda: 0.0)
    return [key.key_id for key in asyncio.run(keys.candidates(key_id, "ES256"))]


def test_the_keys_of_an_issuer_are_found_by_its_discovery(site: Site) -> None:
    describe(site, public("one"), public("two"))
    assert candidates(site) == ["one", "two"]
    assert candidates(site, "two") == ["two"]


def test_keys_for_other_uses_and_of_unknown_kinds_are_left_out(site: Site) -> None:
    describe(site, public("encrypts", use="enc"), {"kty": "of the future", "kid": "odd"}, public("signs", use="sig"))
    assert candidates(site) == ["signs"]
    with pytest.raises(TokenError, match=r"has no ES256 key 'encrypts'; sign in again"):
        candidates(site, "encrypts")


def test_an_issuer_that_answers_with_nothing_is_named_with_what_was_wrong(site: Site) -> None:
    with pytest.raises(TokenError, match=f"the keys of {site.url} cannot be had: HTTPError: .*404") as caught:
        candidates(site)
    assert caught.value.code == "issuer_unreachable"


def test_a_redirect_is_not_followed(site: Site) -> None:
    site.documents |= {"/here": "/there", "/there": b"secret"}
    with pytest.raises(HTTPError, match="302") as caught:
        fetch_document(f"{site.url}/here")
    caught.value.close()
    assert site.asked == ["/here"]


def test_a_document_without_end_is_not_read_to_its_end(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oidc, "DOCUMENT_BYTES_MAX", 100)
    site.documents |= {"/long": b"x" * 101, "/full": b"x" * 100}
    assert len(fetch_document(f"{site.url}/full")) == 100
    with pytest.raises(ValueError, match="/long is longer than 100 bytes"):
        fetch_document(f"{site.url}/long")


@pytest.mark.parametrize("url", ["http://[::1]:80", "http://localhost", "http://127.0.0.9:1", "https://a.example"])
def test_plain_http_is_trusted_on_this_machine_alone(url: str) -> None:
    assert TrustedIssuer.parse(f"{url}=my-game").url == url
    with pytest.raises(SchemaError, match="use an https:// address"):
        TrustedIssuer.parse("http://10.0.0.1=my-game")
