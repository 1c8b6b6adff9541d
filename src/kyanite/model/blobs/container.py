"""Containers: the transactions over them.

A container is found by its name, and its blobs are stored under its id. Deleting it removes the name and marks the id,
and maintenance purges the blobs. So a container of any size is deleted by one transaction, and the name can be reused
immediately. If the account keeps deleted containers, its record moves to a row from which it can be restored
(``deleted_containers.py``).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from kyanite.engine.api import Engine, Snapshot, Transaction
from kyanite.model import keys, settings
from kyanite.model.blobs import protected_containers, tag_index
from kyanite.model.blobs.deleted_containers import retire
from kyanite.model.blobs.records import ContainerRecord, decode_container
from kyanite.model.lease import LeaseRequest, Outcome, act
from kyanite.model.named import finder, loader
from kyanite.model.records import AtInstant, NamedKey, Policy, encode
from kyanite.rules import immutability, leases, preconditions
from kyanite.rules.preconditions import Conditions
from kyanite.rules.refusals import Reason, Refused
from kyanite.values import Instant, LeaseId


class ContainerKey(NamedKey, frozen=True):
    @property
    def key(self) -> bytes:
        return keys.container(self.account, self.name)


load: Callable[[Snapshot, ContainerKey], ContainerRecord] = loader(
    keys.container, decode_container, Reason.CONTAINER_NOT_FOUND
)
find: Callable[[Engine, ContainerKey], Awaitable[ContainerRecord | None]] = finder(
    keys.container, decode_container
)


def create(
    engine: Engine,
    key: ContainerKey,
    *,
    metadata: dict[str, str],
    public_access: str,
    is_version_level: bool = False,
) -> Awaitable[ContainerRecord]:
    """``is_version_level`` gives it version-level immutability for ever, and needs versioning."""

    def body(tx: Transaction) -> ContainerRecord:
        if tx.get(key.key) is not None:
            raise Refused(Reason.CONTAINER_ALREADY_EXISTS)
        record = ContainerRecord(
            id=tx.new_id(),
            created_at=tx.now,
            modified_at=tx.now,
            metadata=metadata,
            public_access=public_access,
            protection=immutability.new_version_level(has_versioning=has_versioning(tx, key))
            if is_version_level
            else None,
        )
        protected_containers.replace(tx, key, None, record.protection)
        tx.put(key.key, encode(record))
        return record

    return engine.run(body)


def has_versioning(snap: Snapshot, key: ContainerKey) -> bool:
    return bool(settings.load(snap, key.account, "blob").versioning)


def create_if_missing(engine: Engine, key: ContainerKey) -> Awaitable[None]:
    """For a system container, which the server creates itself."""

    def body(tx: Transaction) -> None:
        if tx.get(key.key) is None:
            tx.put(key.key, encode(ContainerRecord(tx.new_id(), tx.now, tx.now, {})))

    return engine.run(body)


def get_properties(
    engine: Engine, key: ContainerKey, lease_id: LeaseId | None
) -> Awaitable[AtInstant[ContainerRecord]]:
    """Its properties, metadata and policies. If the request names a lease, that must be the active one."""

    def body(snap: Snapshot) -> AtInstant[ContainerRecord]:
        record = load(snap, key)
        now = snap.now
        leases.check_read(record.lease, lease_id, now)
        return AtInstant(record, now)

    return engine.read(body)


def set_metadata(
    engine: Engine,
    key: ContainerKey,
    metadata: dict[str, str],
    conditions: Conditions,
    lease_id: LeaseId | None,
) -> Awaitable[ContainerRecord]:
    def change(record: ContainerRecord, now: Instant) -> ContainerRecord:
        return replace(record, metadata=metadata, modified_at=now)

    return _change(engine, key, conditions, lease_id, change)


def set_acl(
    engine: Engine,
    key: ContainerKey,
    public_access: str,
    policies: tuple[Policy, ...],
    conditions: Conditions,
    lease_id: LeaseId | None,
) -> Awaitable[ContainerRecord]:
    def change(record: ContainerRecord, now: Instant) -> ContainerRecord:
        return replace(record, public_access=public_access, policies=policies, modified_at=now)

    return _change(engine, key, conditions, lease_id, change)


def _change(
    engine: Engine,
    key: ContainerKey,
    conditions: Conditions,
    lease_id: LeaseId | None,
    change: Callable[[ContainerRecord, Instant], ContainerRecord],
) -> Awaitable[ContainerRecord]:
    """A write that a lease does not prevent: only Delete Container needs it. A lease id is a condition here."""

    def body(tx: Transaction) -> ContainerRecord:
        record = load(tx, key)
        preconditions.check_time_write(conditions, record.modified_at)
        leases.check_read(record.lease, lease_id, tx.now)
        changed = change(record, tx.now)
        tx.put(key.key, encode(changed))
        return changed

    return engine.run(body)


def lease(
    engine: Engine, key: ContainerKey, request: LeaseRequest, conditions: Conditions
) -> Awaitable[tuple[ContainerRecord, Outcome]]:
    def body(tx: Transaction) -> tuple[ContainerRecord, Outcome]:
        record = load(tx, key)
        preconditions.check_time_write(conditions, record.modified_at)
        outcome = act(record.lease, request, tx.now)
        tx.put(key.key, encode(replace(record, lease=outcome.lease)))
        return record, outcome

    return engine.run(body)


def delete(
    engine: Engine, key: ContainerKey, conditions: Conditions, lease_id: LeaseId | None
) -> Awaitable[None]:
    """Delete the container. It can be restored for as many days as the Blob service of its account keeps it."""

    def body(tx: Transaction) -> None:
        record = load(tx, key)
        preconditions.check_time_write(conditions, record.modified_at)
        leases.check_write(record.lease, lease_id, tx.now)
        immutability.check_delete_container(record.protection)
        remove(tx, key, record)

    return engine.run(body)


def remove(tx: Transaction, key: ContainerKey, record: ContainerRecord) -> None:
    """Free the name. The container can be restored for a while, if the account says so, or is purged."""
    tx.delete(key.key)
    protected_containers.replace(tx, key, record.protection, None)
    retention = settings.load(tx, key.account, "blob").container_retention
    if retention is not None and retention.days:
        retire(tx, key, record, retention.days)
    else:
        tx.put(keys.deleted_container(record.id), b"")


def rename(
    engine: Engine, source: ContainerKey, target: ContainerKey, source_lease_id: LeaseId | None
) -> Awaitable[ContainerRecord]:
    """Give a container another name, which must be free. Everything in it, its policies and its lease stay.

    Its old name is gone, as after a deletion, so an active lease must be named, and it must not be protected.
    """

    def body(tx: Transaction) -> ContainerRecord:
        record = load(tx, source)
        leases.check_write(record.lease, source_lease_id, tx.now)
        immutability.check_delete_container(record.protection)
        if tx.get(target.key) is not None:
            raise Refused(Reason.CONTAINER_ALREADY_EXISTS)
        renamed = replace(record, modified_at=tx.now)
        tx.delete(source.key)
        tx.put(target.key, encode(renamed))
        tag_index.rename(tx, record.id, target)
        return renamed

    return engine.run(body)
