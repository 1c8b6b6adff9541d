"""File shares: the transactions over them.

A share is found by its name, and everything in it is keyed by its id. Deleting it removes the name; the background
purges what is keyed by the id. Its snapshots are in ``share_snapshots.py``, its files and directories in ``tree.py``.
"""

from collections.abc import Awaitable, Callable

import msgspec
from msgspec.structs import replace

from kyanite.engine.api import Engine, Snapshot, Transaction
from kyanite.model import keys
from kyanite.model.lease import LeaseRequest, Outcome, act
from kyanite.model.named import finder, loader, remembering
from kyanite.model.records import AtInstant, NamedKey, Policy, encode
from kyanite.rules import leases
from kyanite.rules.lease_records import NO_LEASE, Lease
from kyanite.rules.refusals import Reason, Refused
from kyanite.values import ETag, Instant, LeaseId, etag_of

DEFAULT_QUOTA_GIB = 5120
NEVER = Instant(0)
NFS = "NFS"


class ShareKey(NamedKey, frozen=True, gc=False):
    snapshot: Instant | None = None
    """The instant of a snapshot of the share; None for the share itself."""

    @property
    def key(self) -> bytes:
        return keys.share(self.account, self.name)


class ShareSettings(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """What a client has set for a share. Only the quota has an effect; the rest is stored and returned."""

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
    """A row written before this instant is preserved before it is changed."""
    tier_changed_at: Instant | None = None
    is_watched: bool = False
    """Whether a client watches a directory of it, so that writers report what they change."""

    @property
    def etag(self) -> ETag:
        return etag_of(self.modified_at)

    @property
    def speaks_nfs(self) -> bool:
        return self.settings.protocol == NFS


decode_share: Callable[[bytes], ShareRecord] = msgspec.msgpack.Decoder(ShareRecord).decode
remembered_share: Callable[[bytes], ShareRecord] = remembering(decode_share)
load: Callable[[Snapshot, ShareKey], ShareRecord] = loader(keys.share, decode_share, Reason.SHARE_NOT_FOUND)
find: Callable[[Engine, ShareKey], Awaitable[ShareRecord | None]] = finder(keys.share, decode_share)


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
    """The key of the row of the share or snapshot."""
    return key.key if key.snapshot is None else keys.share_snapshot(share_id, key.snapshot)


def create(
    engine: Engine,
    key: ShareKey,
    metadata: dict[str, str],
    settings: ShareSettings,
    create_root: Callable[[Transaction, ShareRecord], None],
) -> Awaitable[ShareRecord]:
    """``create_root`` makes the root directory of a share."""

    def body(tx: Transaction) -> ShareRecord:
        if tx.get(key.key) is not None:
            raise Refused(Reason.SHARE_ALREADY_EXISTS)
        record = ShareRecord(tx.new_id(), tx.now, tx.now, metadata, settings)
        tx.put(key.key, encode(record))
        create_root(tx, record)
        return record

    return engine.run(body)


def get_properties(
    engine: Engine, key: ShareKey, lease_id: LeaseId | None
) -> Awaitable[AtInstant[ShareRecord]]:
    def body(snap: Snapshot) -> AtInstant[ShareRecord]:
        record = load_any(snap, key)
        leases.check_read(record.lease, lease_id, snap.now)
        return AtInstant(record, snap.now)

    return engine.read(body)


def change(
    engine: Engine,
    key: ShareKey,
    lease_id: LeaseId | None,
    to: Callable[[ShareRecord, Instant], ShareRecord],
) -> Awaitable[ShareRecord]:
    """Change the share's record. A lease protects a share from deletion only, so an id is just a condition."""

    def body(tx: Transaction) -> ShareRecord:
        record = load(tx, key)
        leases.check_read(record.lease, lease_id, tx.now)
        changed = replace(to(record, tx.now), modified_at=tx.now)
        tx.put(key.key, encode(changed))
        return changed

    return engine.run(body)


def lease(engine: Engine, key: ShareKey, request: LeaseRequest) -> Awaitable[tuple[ShareRecord, Outcome]]:
    """Lease the share or one of its snapshots, which have leases of their own."""

    def body(tx: Transaction) -> tuple[ShareRecord, Outcome]:
        record = load_any(tx, key)
        outcome = act(record.lease, request, tx.now)
        tx.put(row_of(key, record.id), encode(replace(record, lease=outcome.lease)))
        return record, outcome

    return engine.run(body)
