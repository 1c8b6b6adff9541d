"""Files in the store's folder that only its owner may read: the keys and certificates of the development issuer."""

import os
from pathlib import Path

from kyanite.server.failures import Failure

_FOLDER = "identity"


def identity_folder(location: Path) -> Path:
    """Where the issuer of a store keeps its files."""
    return location / _FOLDER


def make_identity_folder(location: Path) -> Path:
    folder = identity_folder(location)
    make_private_folder(folder)
    return folder


def make_private_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise Failure(f"Cannot make the folder {folder}: {error.strerror}.") from None


def read(path: Path) -> bytes | None:
    """The whole file; None if there is none."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Failure(f"Cannot read {path}: {error.strerror}.") from None


def write(path: Path, content: bytes) -> None:
    """Write the file whole or not at all, also across a power cut. Only its owner may read it."""
    fresh = path.with_name(f"{path.name}.new")
    try:
        # One that a crash has left may have another mode.
        fresh.unlink(missing_ok=True)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        fresh.rename(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise Failure(f"Cannot write {path}: {error.strerror}.") from None
