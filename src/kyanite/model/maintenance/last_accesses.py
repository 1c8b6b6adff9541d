"""Removing times of the last access whose blobs were deleted."""

from kyanite.engine.api import Snapshot, Transaction
from kyanite.model.blobs import last_access

WALK_EVERY_SECONDS = 3600.0


def find_unneeded(snap: Snapshot, start: bytes) -> tuple[list[bytes], bytes]:
    return last_access.without_blob(snap, start)


def remove_unneeded(tx: Transaction, found: list[bytes]) -> None:
    last_access.remove_without_blob(tx, found)
