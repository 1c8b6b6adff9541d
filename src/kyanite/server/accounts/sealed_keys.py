"""Account keys at rest: encrypted with a key that is in a file, beside the store or where the operator says.

The file is made when the first account is added, unless the operator names one. Whoever has the store and not this file
cannot read the keys; without it the server cannot either, and says so.
"""

import base64
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from kyanite.server.derived_keys import derive_key
from kyanite.server.failures import Failure

NAME = "account-keys.key"
_SECRET_BYTES = 32
_FILE_BYTES_MAX = 64 * 1024
_NONCE_BYTES = 12
_PURPOSE = b"kyanite account keys"


class Sealer:
    """Encrypts and decrypts keys. A sealed key is bound to its account: in another's row it cannot be opened."""

    def __init__(self, secret: bytes) -> None:
        # Imported here and below, since a server without accounts in its store need not load it.
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._cipher = AESGCM(derive_key(secret, _PURPOSE))

    def seal(self, account: str, key: bytes) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, key, account.encode())

    def open(self, account: str, sealed: bytes) -> bytes | None:
        """None if it was sealed with another secret, or for another account."""
        from cryptography.exceptions import InvalidTag

        try:
            return self._cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], account.encode())
        except (InvalidTag, ValueError):
            return None


class KeyFile:
    def __init__(self, path: Path, *, may_make: bool) -> None:
        self.path = path
        self._may_make = may_make

    @property
    def is_of_one_node(self) -> bool:
        """Whether it is in the folder of this node, and not where the operator says."""
        return self._may_make

    def sealer(self) -> Sealer:
        """Reads the file, every time: it may have been lost or replaced since."""
        try:
            with self.path.open("rb") as file:
                secret = file.read(_FILE_BYTES_MAX).strip()
        except FileNotFoundError:
            raise Failure(
                f"The key file {self.path} is missing, and without it the keys of accounts in the store cannot be read."
            ) from None
        except OSError as error:
            raise Failure(f"Cannot read the key file {self.path}: {error.strerror}.") from None
        if len(secret) < _SECRET_BYTES:
            raise Failure(
                f"The key file {self.path} is too short for a key: it needs {_SECRET_BYTES} bytes or more."
            )
        return Sealer(secret)

    def sealer_for_new_key(self, sealed: Iterable[tuple[str, bytes]]) -> Sealer:
        """For a key that is to be stored beside others, which must open with the same file. The first one makes it."""
        present = next(iter(sealed), None)
        if present is None and self._may_make:
            self._make()
        sealer = self.sealer()
        if present is not None:
            self.opened(sealer, *present)
        return sealer

    def opened(self, sealer: Sealer, account: str, sealed: bytes) -> bytes:
        key = sealer.open(account, sealed)
        if key is None:
            raise Failure(
                f"The key file {self.path} is not the one that the key of account {account} was stored with."
            )
        return key

    def _make(self) -> None:
        """Whole or not at all, also across a power cut: a key that was sealed with it must stay readable."""
        try:
            with suppress(FileExistsError):
                fresh = self.path.with_name(f"{self.path.name}.new")
                descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
                with os.fdopen(descriptor, "wb") as file:
                    file.write(base64.b64encode(os.urandom(_SECRET_BYTES)) + b"\n")
                    file.flush()
                    os.fsync(descriptor)
                if self.path.exists():
                    fresh.unlink()
                    return
                fresh.rename(self.path)
                folder = os.open(self.path.parent, os.O_RDONLY)
                try:
                    os.fsync(folder)
                finally:
                    os.close(folder)
        except OSError as error:
            raise Failure(f"Cannot write the key file {self.path}: {error.strerror}.") from None
