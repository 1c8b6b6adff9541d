"""The file that user delegation keys depend on besides the store: whoever has the store alone can make none.

It is the key file that the operator names, or one that the server makes beside the store. A file that is lost is made
anew, which revokes all user delegation keys: tokens that were signed with them are refused, and new ones work.
"""

import hmac
import os
from pathlib import Path

from kyanite.server.derived_keys import derive_key
from kyanite.server.failures import Failure
from kyanite.server.issuer import private_files

NAME = "delegation.key"
_SECRET_BYTES = 32
_FILE_BYTES_MAX = 64 * 1024
_PURPOSE = b"kyanite user delegation keys"


def load_or_make(location: Path, key_file: Path | None) -> bytes:
    """The secret of the file. To be called by one process only."""
    if key_file is not None:
        return _derived(_read_given(key_file))
    folder = private_files.identity_folder(location)
    private_files.make_private_folder(folder)
    path = folder / NAME
    secret = private_files.read(path)
    if secret is None or len(secret) < _SECRET_BYTES:
        secret = os.urandom(_SECRET_BYTES)
        private_files.write(path, secret)
    return _derived(secret)


def secret_of_account(secret: bytes, account: str, stored: bytes) -> bytes:
    """What the keys of an account are derived from: of the file and of what is stored, so that either revokes them."""
    return hmac.digest(secret, account.encode() + b"\0" + stored, "sha256")


def _read_given(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_FILE_BYTES_MAX).strip()
    except OSError as error:
        raise Failure(f"Cannot read the key file {path}: {error.strerror}.") from None


def _derived(secret: bytes) -> bytes:
    return derive_key(secret, _PURPOSE, _SECRET_BYTES)
