"""What clients are doing to the blobs of an account now: leases, and blocks that are not committed yet.

There is no index of leases, since every write of a leased blob would have to keep it. So they are found by reading the
containers and blobs of the account, at most ``ROWS_MAX`` of them for a page; the next page goes on from there.
"""

from collections.abc import Awaitable
from itertools import islice
from typing import NamedTuple

from kyanite.engine.api import STEP_ROWS, Engine, Snapshot, Steps
from kyanite.model import keys
from kyanite.model.blobs.records import (
    ContainerRecord,
    Staging,
    decode_blob,
    decode_container,
    decode_staging,
)
from kyanite.rules import leases
from kyanite.rules.lease_records import Lease
from kyanite.values import Instant

ROWS_MAX = 20_000
_STAGINGS_MAX = 200
"""Of one container."""


class BlobPosition(NamedTuple):
    """Where a page begins: behind this blob; before the first if it has no name."""

    container: str = ""
    name: str = ""


class LeasedBlob(NamedTuple):
    container: str
    name: str
    """Empty when the container itself is leased."""
    lease: Lease
    state: leases.State


class UncommittedBlocks(NamedTuple):
    container: str
    name: str
    staging: Staging


class BlobActivity(NamedTuple):
    leased: list[LeasedBlob]
    uncommitted: list[UncommittedBlocks]
    next_start: BlobPosition | None
    """None when everything was read."""
    at: Instant


def find(
    engine: Engine, account: str, start: BlobPosition, rows_max: int = ROWS_MAX
) -> Awaitable[BlobActivity]:
    def body(snap: Snapshot) -> Steps[BlobActivity]:
        found = BlobActivity([], [], None, snap.now)
        base = keys.containers(account)
        left = rows_max
        for key, value in snap.scan(keys.container(account, start.container), keys.after(base)):
            name, record = key[len(base) :].decode(), decode_container(value)
            if left <= 0:
                return found._replace(next_start=BlobPosition(name))
            behind = start.name if name == start.container else ""
            if not behind:
                _note_container(snap, found, name, record)
                left -= 1
            limit = max(left, 1)
            rows = iter(snap.scan(_behind(record.id, behind), keys.after(keys.blobs(record.id)), limit=limit))
            while part := list(islice(rows, STEP_ROWS)):
                limit -= len(part)
                left -= len(part)
                behind = _note_blobs(found, name, part)
                yield
            if limit == 0:
                return found._replace(next_start=BlobPosition(name, behind))
            yield
        return found

    return engine.read_in_steps(body)


def _behind(container_id: int, name: str) -> bytes:
    return keys.blob(container_id, name) + b"\0" if name else keys.blobs(container_id)


def _note_container(snap: Snapshot, found: BlobActivity, name: str, record: ContainerRecord) -> None:
    _note(found, name, "", record.lease)
    base = keys.stagings(record.id)
    for key, value in snap.scan(base, keys.after(base), limit=_STAGINGS_MAX):
        staging = decode_staging(value)
        if staging.count and staging.is_alive(snap.now):
            found.uncommitted.append(UncommittedBlocks(name, key[len(base) :].decode(), staging))


def _note_blobs(found: BlobActivity, container: str, rows: list[tuple[bytes, bytes]]) -> str:
    """Note the leased ones; the name of the last."""
    for key, value in rows:
        record = decode_blob(value)
        if record.lease.id is not None:
            _note(found, container, key[9:].decode(), record.lease)
    return rows[-1][0][9:].decode()


def _note(found: BlobActivity, container: str, name: str, lease: Lease) -> None:
    state = leases.state_of(lease, found.at)
    if state in leases.LOCKED:
        found.leased.append(LeasedBlob(container, name, lease, state))
