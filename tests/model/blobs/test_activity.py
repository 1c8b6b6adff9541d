"""Leases and uncommitted blocks are found by pages of bounded size, and each of them once."""

import pytest
from msgspec.structs import replace

from kyanite.engine.api import STEP_ROWS, Transaction
from kyanite.model import keys
from kyanite.model.blobs import activity, container
from kyanite.model.blobs.activity import BlobPosition
from kyanite.model.blobs.container import ContainerKey
from kyanite.model.blobs.records import decode_blob
from kyanite.model.records import encode
from kyanite.rules.lease_records import Lease
from kyanite.rules.leases import INFINITE, State, acquire
from kyanite.values import LeaseId
from tests.model.blobs.store import CONTAINER, BlobStore
from tests.model.content.world import outcome
from tests.model.counted import unlimited


def lease(store: BlobStore, name: str, seconds: int = INFINITE) -> None:
    key = keys.blob(store.record_of_container().id, name)

    def body(tx: Transaction) -> None:
        stored = tx.get(key)
        assert stored is not None
        made = acquire(Lease(), LeaseId(f"lease of {name}"), seconds, tx.now)
        tx.put(key, encode(replace(decode_blob(stored), lease=made)))

    outcome(store.engine.run(body))


def find_all(store: BlobStore, rows_max: int) -> list[str]:
    found: list[str] = []
    start: BlobPosition | None = BlobPosition()
    while start is not None:
        page = outcome(activity.find(store.engine, CONTAINER.account, start, rows_max))
        found += [f"{each.container}/{each.name}" for each in page.leased]
        assert page.next_start != start
        start = page.next_start
    return found


@pytest.mark.parametrize("rows_max", [1, 2, 3, 7, 1000])
def test_each_lease_is_found_once(store: BlobStore, rows_max: int) -> None:
    for number in range(10):
        store.put(f"{number}")
    for name in ("0", "4", "5", "9"):
        lease(store, name)
    outcome(container.create(store.engine, ContainerKey("acme", "empty"), metadata={}, public_access=""))
    outcome(container.create(store.engine, ContainerKey("other", "box"), metadata={}, public_access=""))
    assert find_all(store, rows_max) == ["box/0", "box/4", "box/5", "box/9"]


def test_a_lease_that_has_ended_is_none(store: BlobStore) -> None:
    store.put("x")
    lease(store, "x", 15)
    page = outcome(activity.find(store.engine, CONTAINER.account, BlobPosition()))
    assert [each.state for each in page.leased] == [State.LEASED]
    store.wait(16)
    assert find_all(store, 100) == []


def test_a_step_reads_few_rows_of_a_large_container(store: BlobStore) -> None:
    record = encode(store.put("template"))
    container_id = store.record_of_container().id

    def body(tx: Transaction) -> None:
        for number in range(10_000):
            tx.put(keys.blob(container_id, f"{number:06}"), record)

    with unlimited():
        outcome(store.engine.run(body))
    before = len(store.engine.costs)
    page = outcome(activity.find(store.engine, CONTAINER.account, BlobPosition(), 5_000))
    assert page.next_start is not None
    assert max(store.engine.costs[before:]) <= STEP_ROWS + 10
    assert sum(store.engine.costs[before:]) <= 5_100
