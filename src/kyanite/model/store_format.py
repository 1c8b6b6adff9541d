"""The format of a store: one number for everything in it, kept in the engine.

A record's own row says how its fields have grown (``records.py``); the format says which upgrades the rows of a store
have been through. A store of an older format is upgraded before it is served (``server/store/upgrades.py``), one of a
newer format is refused.

    1   What commit 394e107 and earlier versions wrote. These stores have no row for their format.
    2   The first with a row.
    3   No name of a blob has a backslash.
    4   A row that counts messages may be negative: processes count in rows of their own. No row is rewritten.
    5   Blobs may have tags, which are indexed, and what is deleted may be kept. No row is rewritten, but older versions
        would lose both.
"""

from collections.abc import Callable

import msgspec

from kyanite.engine.api import Snapshot, Transaction

FORMAT = 5
"""What this version writes."""

UNMARKED_FORMAT = 1
"""What a store has that holds rows, but none for its format."""

KEY = b"f"


class StoreFormat(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Stored, and read by versions of every format: fields are only ever added at the end, with a default."""

    format: int
    """All upgrades to this format are complete."""
    is_testing: bool = False
    """Whether its clock can be moved. Decided when the store is made."""
    steps_done: int = 0
    """Of the upgrade to the next format: how many steps are complete."""
    cursor: bytes = b""
    """Where the step after those continues."""


encode: Callable[[object], bytes] = msgspec.msgpack.Encoder().encode
decode: Callable[[bytes], StoreFormat] = msgspec.msgpack.Decoder(StoreFormat).decode


def load(snap: Snapshot, *, is_testing: bool = False) -> StoreFormat:
    """The format of the store. A store without any row is new, so it has the present format."""
    stored = snap.get(KEY)
    if stored is not None:
        return decode(stored)
    if any(True for _ in snap.scan(b"", b"\xff", limit=1)):
        return StoreFormat(UNMARKED_FORMAT)
    return StoreFormat(FORMAT, is_testing)


def save(tx: Transaction, store_format: StoreFormat) -> None:
    tx.put(KEY, encode(store_format))
