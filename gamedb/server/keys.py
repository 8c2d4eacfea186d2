"""The server's own signing keys: ES256 (ECDSA on P-256), PEM files in a directory beside the data.

The file with the highest number signs; the others still verify what they signed, until they are deleted. The
directory is looked at again when it changes, so that keys can be rotated while a server runs.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from gamedb.errors import StorageError
from gamedb.server.secrets import read_secret, secret_directory, write_secret

KEYS_MAX: Final = 16
"""How many keys are tried on a token; older ones must be deleted first."""
_FILE: Final = re.compile(r"([0-9]{4,})\.pem\Z")


class Keys:
    """The keys in a directory (made with a first key when it has none), or one that lives with the process."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._seen: tuple[str, ...] = ()
        self._keys: list[ec.EllipticCurvePrivateKey] = []
        self.verifying: list[ec.EllipticCurvePublicKey] = []
        """The public halves of all keys, the newest first."""
        if directory is None:
            self._take([ec.generate_private_key(ec.SECP256R1())])
            return
        secret_directory(directory)
        if not self._names():
            self.rotate()
        self.refresh()

    @property
    def signing(self) -> ec.EllipticCurvePrivateKey:
        """The newest key."""
        return self._keys[0]

    def public_pem(self) -> str:
        """The newest public key, as PEM of a SubjectPublicKeyInfo."""
        return self.verifying[0].public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()

    def rotate(self) -> Path | None:
        """Make a new key, which signs from now on. Gives its file; `None` when keys are not kept in files."""
        key = ec.generate_private_key(ec.SECP256R1())
        if self._directory is None:
            self._take([key, *self._keys])
            return None
        names = self._names()
        if len(names) >= KEYS_MAX:
            oldest = self._directory / names[-1]
            raise StorageError(
                f"{self._directory} holds {len(names)} keys already; delete the oldest, {oldest}, of which tokens stop "
                "working then"
            )
        number = int(names[0].removesuffix(".pem")) + 1 if names else 1
        path = self._directory / f"{number:04}.pem"
        write_secret(path, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode())
        self.refresh()
        return path

    def refresh(self) -> bool:
        """Take in keys that were added or deleted; says whether there were any."""
        if self._directory is None:
            return False
        names = self._names()
        if tuple(names) == self._seen:
            return False
        if not names:
            raise StorageError(f"{self._directory} has no key any more; put one back, or start again to make one")
        self._take([_read(self._directory / name) for name in names])
        self._seen = tuple(names)
        return True

    def _take(self, keys: list[ec.EllipticCurvePrivateKey]) -> None:
        self._keys = keys
        self.verifying = [key.public_key() for key in keys]

    def _names(self) -> list[str]:
        """The key files, the newest first."""
        assert self._directory is not None
        try:
            found = [entry.name for entry in self._directory.iterdir() if _FILE.match(entry.name)]
        except OSError as error:
            raise StorageError(f"{self._directory} cannot be read: {error.strerror}") from None
        return sorted(found, key=lambda name: int(name.removesuffix(".pem")), reverse=True)


def _read(path: Path) -> ec.EllipticCurvePrivateKey:
    try:
        key = load_pem_private_key(read_secret(path).encode(), None)
    except (ValueError, TypeError) as error:
        raise StorageError(f"{path} is no private key in PEM form: {error}") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise StorageError(f"{path} is not a P-256 key; make one with: gamedb token --rotate")
    return key
