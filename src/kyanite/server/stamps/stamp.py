"""A stamp: one engine and one extent store, in which some of the accounts live. No transaction spans two.

The *main* stamp is the store of the options. The others are stated in the configuration file, or were added to the
running server and are in a file of the main store's folder, ``stamps.json``: it may hold credentials, so it is for the
owner only. What this machine keeps of a stamp is in ``stamps/<name>`` of that folder.
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from kyanite.server.failures import Failure
from kyanite.server.store.api import StoreKind

MAIN = "main"
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
FILE = "stamps.json"


class Stamp(msgspec.Struct, frozen=True):
    name: str
    kind: StoreKind

    def folder(self, location: Path) -> Path:
        return location / "stamps" / self.name


class _Added(msgspec.Struct, frozen=True):
    name: str
    engine: str
    extents: str


def all_stamps(location: Path, stated: Sequence[Stamp]) -> list[Stamp]:
    """All stamps but the main one: what is stated, and what was added. Raises a Failure."""
    names = {stamp.name for stamp in stated}
    return [*stated, *(stamp for stamp in load_added(location) if stamp.name not in names)]


def load_added(location: Path) -> list[Stamp]:
    path = location / FILE
    try:
        added = msgspec.json.decode(path.read_bytes(), type=list[_Added])
    except FileNotFoundError:
        return []
    except OSError as error:
        raise Failure(f"Cannot read {path}: {error.strerror}.") from None
    except msgspec.DecodeError:
        raise Failure(f"The file {path} cannot be read: it has other contents than stamps.") from None
    return [Stamp(each.name, StoreKind(each.engine, each.extents)) for each in added]


def save_added(location: Path, stamps: Sequence[Stamp]) -> None:
    """Write the file whole or not at all, also across a power cut."""
    path = location / FILE
    encoded = msgspec.json.encode([_Added(each.name, each.kind.engine, each.kind.extents) for each in stamps])
    fresh = path.with_name(f"{FILE}.new")
    try:
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(encoded)
            file.flush()
            os.fsync(file.fileno())
        fresh.rename(path)
        folder = os.open(location, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise Failure(f"Cannot write {path}: {error.strerror}.") from None
