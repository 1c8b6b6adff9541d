"""File shares: the transactions over them and their listing.

A share is found by its name and keeps everything under its id. Deleting it removes the name and leaves the id to be
taken apart in the background. Its snapshots are in ``share_snapshots.py``, what is inside it in ``tree.py``.
"""

from collections.abc import Awaitable, Callable

import msgspec
from msgspec.structs import replace

from kyanite.engine.api import Engine, Snapshot, Transaction
from kyanite.model import keys
from kyanite.model.lease import LeaseRequest, Outcome, act
from kyanite.model.records import Policy, encode
from kyanite.rules import leases
from kyanite.rules.leases import NO_LEASE, Lease
from kyanite.rules.refusals import Reason, Refused
from kyanite.values import ETag, Instant, LeaseId, etag_of

DEFAULT_QUOTA_GIB = 5120
NEVER = Instant(0)


class ShareKey(msgspec.Struct, frozen=True, gc=False):
    account: str
    name: str
    snapshot: Instant | None = None
    """Which snapshot of the share is meant; None for the share itself."""

    @property
    def key(self) -> bytes:
        return keys.share(self.account, self.name)


class ShareSettings(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """What a client chose for a share. Beside the quota it is kept and shown, and changes nothing here."""

    quota_gib: int = DEFAULT_QUOTA_GIB
    tier: str = ""
    protocol: str = "SMB"
    root_squash: str = ""
    others: dict[str, str] = {}
    """Provisioning, bursting and the like, by the name of their headers."""


class ShareRecord(msgspec.Struct, array_like=True, frozen=True, gc=False):
    id: int
    created_at: Instant
    modified_at: Instant
    metadata: dict[str, str]
    settings: ShareSettings = ShareSettings()
    policies: tuple[Policy, ...] = ()
    lease: Lease = NO_LEASE
    latest_snapshot: Instant = NEVER
    """What was written before this instant has to be set aside before it is changed."""
    tier_changed_at: Instant | None = None

    @property
    def etag(self) -> ETag:
        return etag_of(self.modified_at)

    @property
    def speaks_nfs(self) -> bool:
        return self.settings.protocol == "NFS"


decode_share: Callable[[bytes], ShareRecord] = msgspec.msgpack.Decoder(ShareRecord).decode


class ShareAtInstant(msgspec.Struct, frozen=True, gc=False):
    """A share as it was at an instant, for whatever is computed from time."""

    record: ShareRecord
    at: Instant


def load(snap: Snapshot, key: ShareKey) -> ShareRecord:
    """The share itself, or a refusal that it does not exist."""
    stored = snap.get(keys.share(key.account, key.name))
    if stored is None:
        raise Refused(Reason.SHARE_NOT_FOUND)
    return decode_share(stored)


def load_any(snap: Snapshot, key: ShareKey) -> ShareRecord:
    """The share, or the snapshot that the key names."""
    record = load(snap, key)
    if key.snapshot is None:
        return record
    stored = snap.get(keys.share_snapshot(record.id, key.snapshot))
    if stored is None:
        raise Refused(Reason.SHARE_SNAPSHOT_NOT_FOUND)
    return decode_share(stored)


def row_of(key: ShareKey, share_id: int) -> bytes:
    """Where the share or snapshot is stored that the key names."""
    return key.key if key.snapshot is None else keys.share_snapshot(share_id, key.snapshot)


def create(
    engine: Engine,
    key: ShareKey,
    metadata: dict[str, str],
    settings: ShareSettings,
    found_root: Callable[[Transaction, ShareRecord], None],
) -> Awaitable[ShareRecord]:
    """``found_root`` makes the root directory of a share."""

    def body(tx: Transaction) -> ShareRecord:
        if tx.get(key.key) is not None:
            raise Refused(Reason.SHARE_ALREADY_EXISTS)
        record = ShareRecord(tx.now, tx.now, tx.now, metadata, settings)
        tx.put(key.key, encode(record))
        found_root(tx, record)
        return record

    return engine.run(body)


def find(engine: Engine, key: ShareKey) -> Awaitable[ShareRecord | None]:
    """The share if there is one: for deciding who may see it, before anything is asked of it."""

    def body(snap: Snapshot) -> ShareRecord | None:
        stored = snap.get(key.key)
        return None if stored is None else decode_share(stored)

    return engine.read(body)


def get_properties(engine: Engine, key: ShareKey, lease_id: LeaseId | None) -> Awaitable[ShareAtInstant]:
    def body(snap: Snapshot) -> ShareAtInstant:
        record = load_any(snap, key)
        leases.check_read(record.lease, lease_id, snap.now)
        return ShareAtInstant(record, snap.now)

    return engine.read(body)


def change(
    engine: Engine,
    key: ShareKey,
    lease_id: LeaseId | None,
    to: Callable[[ShareRecord, Instant], ShareRecord],
) -> Awaitable[ShareRecord]:
    """Write the share's record anew. A lease protects a share from deletion only, so an id is just a condition."""

    def body(tx: Transaction) -> ShareRecord:
        record = load(tx, key)
        leases.check_read(record.lease, lease_id, tx.now)
        changed = replace(to(record, tx.now), modified_at=tx.now)
        tx.put(key.key, encode(changed))
        return changed

    return engine.run(body)


def lease(engine: Engine, key: ShareKey, request: LeaseRequest) -> Awaitable[tuple[ShareRecord, Outcome]]:
    """Of the share, or of one of its snapshots: those are leases of their own."""

    def body(tx: Transaction) -> tuple[ShareRecord, Outcome]:
        record = load_any(tx, key)
        outcome = act(record.lease, request, tx.now)
        tx.put(row_of(key, record.id), encode(replace(record, lease=outcome.lease)))
        return record, outcome

    return engine.run(body)
