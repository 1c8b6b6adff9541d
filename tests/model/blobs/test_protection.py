"""Policies and holds in transactions: many snapshots, what the operator does to containers, and what verify finds."""

import pytest

from kyanite.engine.api import Transaction
from kyanite.model import keys, settings
from kyanite.model.blobs import container, deleted_containers, protected_containers, protection
from kyanite.model.blobs.container import ContainerKey
from kyanite.model.blobs.delete import Snapshots
from kyanite.model.blobs.history import INLINE_MAX
from kyanite.model.lease import Action, LeaseRequest
from kyanite.model.verification.rows import check_page
from kyanite.rules import immutability
from kyanite.rules.immutability import NOT_PROTECTED, BlobProtection, ContainerPolicy, ContainerProtection
from kyanite.rules.preconditions import NONE
from kyanite.rules.refusals import Reason
from kyanite.service_properties import Retention, ServiceProperties
from kyanite.values import Instant, LeaseId, later
from tests.model.blobs.store import CONTAINER, BlobStore, blob, refused, run

DAY = 24 * 3600
POLICY, LEGAL_HOLD = Reason.BLOB_IMMUTABLE_DUE_TO_POLICY, Reason.BLOB_IMMUTABLE_DUE_TO_LEGAL_HOLD
CANNOT = Reason.PROTECTION_CANNOT_CHANGE


def use_versioning(store: BlobStore, *, on: bool = True) -> None:
    run(settings.update(store.engine, CONTAINER.account, "blob", ServiceProperties(versioning=on)))


def use_versions(store: BlobStore) -> None:
    """Give the container version-level immutability; without versioning, which would keep what is overwritten."""
    use_versioning(store)
    run(protection.enable_version_level(store.engine, CONTAINER))
    use_versioning(store, on=False)


def set_policy(
    store: BlobStore, name: str, snapshot: Instant | None = None, *, days: float = 1, locked: bool = False
) -> BlobProtection | None:
    until = later(store.now, days * DAY)
    return run(protection.set_policy(store.engine, blob(name, snapshot), until, is_locked=locked))


def set_legal_hold(store: BlobStore, name: str, held: bool, snapshot: Instant | None = None) -> None:
    run(protection.set_legal_hold(store.engine, blob(name, snapshot), held))


def findings(store: BlobStore) -> list[str]:
    return run(store.engine.read(lambda snap: check_page(snap, b"").findings))


@pytest.mark.parametrize("count", [3, INLINE_MAX + 10])
def test_one_protected_snapshot_among_many(store: BlobStore, count: int) -> None:
    """Found by reading one row, wherever it is."""
    use_versions(store)
    store.put("b")
    instants = [store.snapshot("b") for _ in range(count)]
    one = instants[1]
    set_policy(store, "b", one, locked=True)
    set_policy(store, "b", instants[2], days=0.5)
    assert findings(store) == []
    for wish in (Snapshots.INCLUDE, Snapshots.ONLY):
        with refused(POLICY):
            store.delete("b", snapshots=wish)
        assert store.cost <= 8
    store.wait(DAY)
    set_legal_hold(store, "b", True, one)
    with refused(LEGAL_HOLD):
        store.delete("b", snapshots=Snapshots.INCLUDE)
    set_legal_hold(store, "b", False, one)
    store.delete("b", snapshots=Snapshots.INCLUDE)
    store.maintain()
    assert not store.exists("b", one)
    assert store.rows(keys.protected_snapshots_in(0)[:1]) == []
    assert findings(store) == []


def test_many_snapshots_under_a_policy_of_the_container(store: BlobStore) -> None:
    store.put("b")
    store.wait(DAY)
    for _ in range(INLINE_MAX + 1):
        store.snapshot("b")
    run(
        protection.change_container(
            store.engine, CONTAINER, lambda old: immutability.set_container_policy(old, 2)
        )
    )
    with refused(POLICY):
        store.delete("b", snapshots=Snapshots.ONLY)
    assert store.cost <= 8
    store.wait(DAY + 1)
    store.delete("b", snapshots=Snapshots.INCLUDE)


def test_a_protected_snapshot_that_is_deleted_leaves_nothing(store: BlobStore) -> None:
    use_versions(store)
    store.put("b", store.extents(b"x"))
    set_policy(store, "b")
    at = store.snapshot("b")
    assert len(store.rows(b"I")) == 1
    with refused(POLICY):
        store.delete("b", at)
    store.wait(2 * DAY)
    store.delete("b", at)
    assert store.rows(b"I") == []
    store.delete("b")
    assert findings(store) == []


def test_a_snapshot_that_a_pending_change_restores_is_protected(store: BlobStore) -> None:
    """Its row is still among those of deleted blobs when the policy is set."""
    use_versions(store)
    store.keep(days=7)
    store.put("b")
    instants = [store.snapshot("b") for _ in range(INLINE_MAX + 10)]
    store.delete("b", snapshots=Snapshots.ONLY)
    store.undelete("b")
    set_policy(store, "b", instants[3], locked=True)
    with refused(POLICY):
        store.delete("b", snapshots=Snapshots.ONLY)
    store.maintain()
    assert findings(store) == []
    with refused(POLICY):
        store.delete("b", snapshots=Snapshots.INCLUDE)
    store.wait(DAY)
    store.delete("b", snapshots=Snapshots.INCLUDE)
    store.maintain()
    assert findings(store) == []
    store.wait(8 * DAY)
    store.maintain()
    assert store.rows(b"I") == []


def test_many_deleted_snapshots_that_are_restored_by_a_change(store: BlobStore) -> None:
    """Deleted one by one, so that they are among the rows of deleted blobs, and restored all at once."""
    use_versions(store)
    store.keep(days=7)
    store.put("b")
    instants = [store.snapshot("b") for _ in range(INLINE_MAX + 10)]
    for instant in instants:
        store.delete("b", instant)
    store.undelete("b")
    set_legal_hold(store, "b", True, instants[5])
    assert len(store.rows(b"I")) == 1
    with refused(LEGAL_HOLD):
        store.delete("b", snapshots=Snapshots.ONLY)
    assert findings(store) == []
    store.maintain()
    assert findings(store) == []
    with refused(LEGAL_HOLD):
        store.delete("b", instants[5])
    with refused(LEGAL_HOLD):
        store.delete("b", snapshots=Snapshots.ONLY)


def test_an_overwrite_that_keeps_nothing_is_refused(store: BlobStore) -> None:
    """Whatever the account says of versioning: a protected blob is not lost."""
    use_versions(store)
    store.put("b", b"old")
    set_policy(store, "b")
    with refused(POLICY):
        store.put("b", b"new")
    store.stage("b", b"1")
    with refused(POLICY):
        store.commit("b", b"1")
    run(protection.delete_policy(store.engine, blob("b")))
    set_legal_hold(store, "b", True)
    with refused(LEGAL_HOLD):
        store.put("b", b"new")
    assert store.read("b") == b"old"


@pytest.mark.parametrize("spoil", ["missing", "wrong", "orphan"])
def test_verification_finds_what_is_wrong(store: BlobStore, spoil: str) -> None:
    use_versions(store)
    store.put("b")
    at = store.snapshot("b")
    set_policy(store, "b", at)
    (row,) = store.rows(b"I")
    (snapshot,) = store.rows(b"v")

    def body(tx: Transaction) -> None:
        if spoil != "orphan":
            tx.delete(row)
        if spoil == "wrong":
            tx.put(keys.protected_snapshot(snapshot, at), b"")
        if spoil == "orphan":
            tx.put(keys.protected_snapshot(snapshot[:-1] + b"\1", at), b"")

    run(store.engine.run(body))
    assert findings(store)


# The operator


def test_the_protection_of_a_container_is_stored_only_while_there_is_any(store: BlobStore) -> None:
    before = store.record_of_container()

    def change(how: protection.ChangeContainer) -> ContainerProtection:
        return run(protection.change_container(store.engine, CONTAINER, how))

    assert run(protection.get(store.engine, CONTAINER)) == NOT_PROTECTED
    changed = change(lambda old: immutability.set_container_policy(old, 7))
    assert changed == ContainerProtection(ContainerPolicy(7)) == run(protection.get(store.engine, CONTAINER))
    assert change(immutability.delete_container_policy) == NOT_PROTECTED
    assert store.record_of_container() == before


def test_version_level_immutability_needs_versioning(store: BlobStore) -> None:
    with refused(Reason.VERSIONING_NOT_ENABLED):
        run(protection.enable_version_level(store.engine, CONTAINER))
    other = ContainerKey(CONTAINER.account, "other")
    with refused(Reason.VERSIONING_NOT_ENABLED):
        run(container.create(store.engine, other, metadata={}, public_access="", is_version_level=True))
    use_versioning(store)
    run(protection.enable_version_level(store.engine, CONTAINER))
    record = run(container.create(store.engine, other, metadata={}, public_access="", is_version_level=True))
    assert record.protection == ContainerProtection(is_version_level=True)
    use_versioning(store, on=False)
    assert run(protection.enable_version_level(store.engine, CONTAINER)).is_version_level


def test_the_operator_deletes_an_empty_container(store: BlobStore) -> None:
    use_versions(store)
    store.put("b")
    store.stage("staged", b"1")
    at = store.snapshot("b")
    for name, snapshot in (("b", at), ("b", None)):
        with refused(CANNOT):
            run(protection.delete_container(store.engine, CONTAINER))
        store.delete(name, snapshot)
    run(protection.delete_container(store.engine, CONTAINER))
    with refused(Reason.CONTAINER_NOT_FOUND):
        run(protection.get(store.engine, CONTAINER))
    store.maintain()
    use_versioning(store)
    assert [row[:1] for row in store.rows()] == [b"s"]


def test_the_operator_deletes_a_full_container_that_is_not_protected(store: BlobStore) -> None:
    store.put("b")
    lease = LeaseRequest(Action.ACQUIRE, proposed_id=LeaseId("1" * 36), seconds=-1)
    run(container.lease(store.engine, CONTAINER, lease, NONE))
    with refused(Reason.LEASE_ID_MISSING):
        run(protection.delete_container(store.engine, CONTAINER))
    run(container.lease(store.engine, CONTAINER, LeaseRequest(Action.BREAK), NONE))
    run(protection.delete_container(store.engine, CONTAINER))
    store.maintain()
    assert store.rows() == []


def test_protected_containers_are_found_by_their_account(store: BlobStore) -> None:
    def first(account: str = CONTAINER.account, *, version_level_only: bool = False) -> str | None:
        return run(
            store.engine.read(
                lambda snap: protected_containers.first(snap, account, version_level_only=version_level_only)
            )
        )

    def change(how: protection.ChangeContainer) -> None:
        run(protection.change_container(store.engine, CONTAINER, how))

    assert first() is None
    change(lambda old: immutability.set_legal_holds(old, ("case1",)))
    assert (first(), first(version_level_only=True), first("acm"), first("acme2")) == (
        "box",
        None,
        None,
        None,
    )
    assert findings(store) == []
    change(lambda old: immutability.clear_legal_holds(old, ("case1",)))
    assert first() is None
    use_versions(store)
    assert (first(), first(version_level_only=True)) == ("box", "box")
    assert findings(store) == []
    (row,) = store.rows(b"9")
    run(store.engine.run(lambda tx: tx.delete(row)))
    assert findings(store)


def test_a_protected_container_that_is_restored(store: BlobStore) -> None:
    use_versions(store)
    days = ServiceProperties(container_retention=Retention(7))
    run(settings.update(store.engine, CONTAINER.account, "blob", days))
    run(protection.delete_container(store.engine, CONTAINER))
    assert store.rows(b"9") == []
    (row,) = store.rows(keys.retired_containers(CONTAINER.account))
    deleted_at = Instant(int.from_bytes(row[-8:], "big"))
    run(deleted_containers.restore(store.engine, CONTAINER, deleted_at))
    assert len(store.rows(b"9")) == 1
    assert findings(store) == []
