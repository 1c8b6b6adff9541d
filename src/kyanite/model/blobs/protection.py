"""Immutability policies and legal holds: of single blobs, versions and snapshots, and of containers.

Clients change those of blobs, in containers with version-level immutability. The operator changes those of containers.
What they refuse is checked in the transactions that write (``blob.check_mutable``), by what the container and the blob
have when these commit.
"""

from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from kyanite.engine.api import Engine, Snapshot, Transaction
from kyanite.model.blobs import container, protected_containers, rows
from kyanite.model.blobs.blob import scope_of
from kyanite.model.blobs.container import ContainerKey
from kyanite.model.blobs.records import ContainerRecord
from kyanite.model.blobs.rows import BlobKey
from kyanite.model.records import encode
from kyanite.rules import immutability, leases, preconditions
from kyanite.rules.immutability import NOT_PROTECTED, BlobProtection, ContainerProtection
from kyanite.rules.preconditions import NONE, Conditions
from kyanite.values import Instant

# One blob, version or snapshot: neither its ETag nor its lease has a part in this


def set_policy(
    engine: Engine, blob: BlobKey, until: Instant, *, is_locked: bool, conditions: Conditions = NONE
) -> Awaitable[BlobProtection | None]:
    """Give it a policy, or change the one that it has."""

    def change(before: BlobProtection | None, now: Instant) -> BlobProtection:
        return immutability.set_policy(before, until, is_locked=is_locked, now=now)

    return _change_blob(engine, blob, change, conditions)


def delete_policy(engine: Engine, blob: BlobKey) -> Awaitable[BlobProtection | None]:
    return _change_blob(engine, blob, lambda before, _: immutability.delete_policy(before))


def set_legal_hold(engine: Engine, blob: BlobKey, held: bool) -> Awaitable[BlobProtection | None]:
    return _change_blob(engine, blob, lambda before, _: immutability.set_legal_hold(before, held))


def _change_blob(
    engine: Engine,
    blob: BlobKey,
    change: Callable[[BlobProtection | None, Instant], BlobProtection | None],
    conditions: Conditions = NONE,
) -> Awaitable[BlobProtection | None]:
    def body(tx: Transaction) -> BlobProtection | None:
        found, key, record = rows.load_with_container(tx, blob)
        preconditions.check_time_write(conditions, record.modified_at)
        immutability.check_version_level(found.protection)
        changed = change(record.protection, tx.now)
        if changed != record.protection:
            rows.save_protection(tx, key, record, changed)
        return changed

    return engine.run(body, scope_of(blob))


# Containers: what the operator does. A lease does not prevent it, and the ETag stays


ChangeContainer = Callable[[ContainerProtection | None], ContainerProtection]


def get(engine: Engine, key: ContainerKey) -> Awaitable[ContainerProtection]:
    def body(snap: Snapshot) -> ContainerProtection:
        return container.load(snap, key).protection or NOT_PROTECTED

    return engine.read(body)


def change_container(
    engine: Engine, key: ContainerKey, change: ChangeContainer
) -> Awaitable[ContainerProtection]:
    """``change`` is one of the functions of ``rules/immutability.py`` for containers."""

    def body(tx: Transaction) -> ContainerProtection:
        record = container.load(tx, key)
        return _save(tx, key, record, change(record.protection))

    return engine.run(body)


def enable_version_level(engine: Engine, key: ContainerKey) -> Awaitable[ContainerProtection]:
    def body(tx: Transaction) -> ContainerProtection:
        record = container.load(tx, key)
        changed = immutability.enable_version_level(
            record.protection, has_versioning=container.has_versioning(tx, key)
        )
        return _save(tx, key, record, changed)

    return engine.run(body)


def _save(
    tx: Transaction, key: ContainerKey, record: ContainerRecord, changed: ContainerProtection
) -> ContainerProtection:
    stored = None if changed == NOT_PROTECTED else changed
    if stored != record.protection:
        protected_containers.replace(tx, key, record.protection, stored)
        tx.put(key.key, encode(replace(record, protection=stored)))
    return changed


def delete_container(engine: Engine, key: ContainerKey) -> Awaitable[None]:
    """Delete a container for the operator, also one that a client cannot delete: if it is empty and not held."""

    def body(tx: Transaction) -> None:
        record = container.load(tx, key)
        leases.check_write(record.lease, None, tx.now)
        immutability.check_operator_deletes(record.protection, is_empty=rows.is_empty(tx, record.id))
        container.remove(tx, key, record)

    return engine.run(body)
