"""The token that opens the commands on the admin port: a file of mode 0600 in the store's folder.

It is made once and stays, so that a program can be given it. Removing the file and starting the server makes a new one.
"""

import os
from contextlib import suppress
from pathlib import Path

from kyanite.server.failures import Failure

NAME = "admin.token"
_BYTES = 32
_CHARACTERS_MAX = 4096


def load_or_make(folder: Path) -> bytes:
    path = folder / NAME
    try:
        with suppress(FileExistsError):
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                file.write(os.urandom(_BYTES).hex() + "\n")
                file.flush()
                os.fsync(descriptor)
        with path.open("rb") as file:
            token = file.read(_CHARACTERS_MAX).strip()
    except OSError as error:
        raise Failure(f"Cannot read the file {path}: {error.strerror}.") from None
    if len(token) < _BYTES:
        raise Failure(f"The file {path} holds no token. Remove it, and the server makes a new one.")
    return token
