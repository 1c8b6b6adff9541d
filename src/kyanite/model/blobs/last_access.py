"""When block blobs were last accessed, in accounts that keep track of it.

The time has a row of its own and is no part of the record, so it changes no ETag. A write of the blob writes it in its
own transaction. A read that has to move it writes nothing else, and needs no sync: when the power fails, the time may
go back to the access before. The row stays when the blob is deleted. A later blob of the name does not have it, and
maintenance removes it.

Only base blobs have such a time; snapshots and previous versions have none.
"""

from collections.abc import Awaitable, Iterable, Mapping, Sequence

from kyanite.engine.api import STEP_ROWS, Engine, Snapshot, Steps, Transaction
from kyanite.model import keys
from kyanite.model.blobs.container import ContainerKey
from kyanite.model.blobs.records import BLOCK_BLOB, BlobRecord, decode_blob, decode_container
from kyanite.model.records import Value
from kyanite.rules import last_access
from kyanite.values import Instant

_ROWS_PER_STEP = 200


def record_write(tx: Transaction, blob_key: bytes, record: BlobRecord) -> None:
    """A blob is created or written anew in this transaction."""
    if record.kind == BLOCK_BLOB:
        tx.put(keys.last_access_of(blob_key), keys.number(tx.now))


class LastAccess(Value, frozen=True):
    """When a blob was last accessed, and whether a read now is recorded."""

    accessed_at: Instant | None
    is_due: bool
    row: bytes = b""


_UNKNOWN = LastAccess(None, is_due=False)


def find(engine: Engine, key: ContainerKey, name: str) -> Awaitable[LastAccess]:
    return engine.read(lambda snap: _find(snap, key, name))


def record_read(engine: Engine, key: ContainerKey, name: str) -> Awaitable[None]:
    """The bytes of the blob are read now."""

    def body(tx: Transaction) -> None:
        found = _find(tx, key, name)
        if found.is_due:
            tx.put(found.row, keys.number(tx.now))

    return engine.run(body, durable=False)


def _find(snap: Snapshot, key: ContainerKey, name: str) -> LastAccess:
    """Of what is not a block blob, or not there any more, nothing is recorded."""
    container_row = snap.get(key.key)
    if container_row is None:
        return _UNKNOWN
    blob_key = keys.blob(decode_container(container_row).id, name)
    row = keys.last_access_of(blob_key)
    stored, accessed = snap.get_many((blob_key, row))
    record = None if stored is None else decode_blob(stored)
    if record is None or record.kind != BLOCK_BLOB:
        return _UNKNOWN
    accessed_at = last_access.visible(_decode(accessed), record.created_at)
    return LastAccess(accessed_at, last_access.is_due(accessed_at, snap.now), row)


def find_all(engine: Engine, key: ContainerKey, names: Sequence[str]) -> Awaitable[Mapping[str, Instant]]:
    """What is recorded for the names of a list. Times of former blobs are among them."""

    def body(snap: Snapshot) -> Steps[Mapping[str, Instant]]:
        stored = snap.get(key.key)
        found: dict[str, Instant] = {}
        if stored is None:
            return found
        container_id = decode_container(stored).id
        for first in range(0, len(names), STEP_ROWS):
            some = names[first : first + STEP_ROWS]
            rows = snap.get_many([keys.last_access_of(keys.blob(container_id, name)) for name in some])
            found.update(_decoded(zip(some, rows, strict=True)))
            yield
        return found

    return engine.read_in_steps(body)


def _decoded(pairs: Iterable[tuple[str, bytes | None]]) -> Iterable[tuple[str, Instant]]:
    return ((name, Instant(int.from_bytes(row, "big"))) for name, row in pairs if row is not None)


def _decode(row: bytes | None) -> Instant | None:
    return None if row is None else Instant(int.from_bytes(row, "big"))


# Maintenance


def without_blob(snap: Snapshot, start: bytes) -> tuple[list[bytes], bytes]:
    """Keys of rows in one page of all whose blob does not exist, and where the next page begins; b"" after the last."""
    end = keys.after(keys.LAST_ACCESSES)
    rows = [key for key, _ in snap.scan(start or keys.LAST_ACCESSES, end, limit=_ROWS_PER_STEP)]
    return _orphans(snap, rows), rows[-1] + b"\0" if len(rows) == _ROWS_PER_STEP else b""


def remove_without_blob(tx: Transaction, found: list[bytes]) -> None:
    for row in _orphans(tx, found):
        tx.delete(row)


def _orphans(snap: Snapshot, rows: list[bytes]) -> list[bytes]:
    blobs = snap.get_many([keys.blob_accessed(row) for row in rows])
    return [row for row, blob in zip(rows, blobs, strict=True) if blob is None]
