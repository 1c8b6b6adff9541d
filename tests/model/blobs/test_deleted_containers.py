"""Deleting, restoring and purging containers cost the same whatever is in them and however many there are."""

import asyncio
from collections import Counter
from collections.abc import Awaitable
from itertools import permutations

import pytest

from kyanite.model import keys, settings
from kyanite.model.blobs import container, container_listing, deleted_containers
from kyanite.model.blobs.container import ContainerKey
from kyanite.model.blobs.container_listing import ContainerListing, ContainerPage
from kyanite.rules.preconditions import NONE
from kyanite.rules.refusals import Reason, Refused
from kyanite.service_properties import Retention, ServiceProperties
from kyanite.values import Instant
from tests.model.blobs.store import CONTAINER, BlobStore
from tests.model.content.world import outcome

DAY = 86_400


@pytest.fixture
def store() -> BlobStore:
    return keeping(BlobStore())


def keeping(store: BlobStore, days: int = 7) -> BlobStore:
    change = ServiceProperties(container_retention=Retention(days))
    outcome(settings.update(store.engine, "acme", "blob", change))
    return store


def create(store: BlobStore, key: ContainerKey = CONTAINER) -> None:
    outcome(container.create(store.engine, key, metadata={}, public_access=""))


def delete(store: BlobStore, key: ContainerKey = CONTAINER) -> None:
    outcome(container.delete(store.engine, key, NONE, None))


def pages(store: BlobStore, limit: int = 5000) -> list[ContainerPage]:
    found, request = [], ContainerListing(limit=limit)
    while True:
        page = outcome(container_listing.list_with_deleted(store.engine, "acme", request))
        found.append(page)
        if page.next_start is None:
            return found
        request = ContainerListing(first=page.next_start, limit=limit)


def deletions(store: BlobStore) -> list[Instant]:
    items = [item for page in pages(store) for item in page.items]
    return [item.retired.deleted_at for item in items if item.retired is not None]


def costs(blobs: int, deleted: int) -> list[int]:
    store = keeping(BlobStore())
    for _ in range(deleted):
        delete(store)
        create(store)
    for number in range(blobs):
        store.put(f"blob {number}")
    delete(store)
    found = [store.cost]
    outcome(deleted_containers.restore(store.engine, CONTAINER, deletions(store)[-1]))
    found.append(store.cost)
    outcome(container.rename(store.engine, CONTAINER, ContainerKey("acme", "crate"), None))
    found.append(store.cost)
    return found


def test_each_is_a_small_transaction_whatever_there_is() -> None:
    assert costs(blobs=1, deleted=1) == costs(blobs=300, deleted=300)
    assert max(costs(blobs=1, deleted=1)) <= 10


def test_a_page_costs_what_it_returns() -> None:
    def largest(deleted: int) -> int:
        store = keeping(BlobStore())
        for _ in range(deleted):
            delete(store)
            create(store)
        first = len(store.engine.costs)
        pages(store, limit=5)
        return max(store.engine.costs[first:])

    assert largest(20) == largest(200)


def test_expired_ones_do_not_fill_a_page_and_do_not_stop_a_list(store: BlobStore) -> None:
    keeping(store, 1)
    for _ in range(30):
        delete(store)
        create(store)
    store.wait(2 * DAY)
    delete(store)
    create(store, ContainerKey("acme", "boy"))
    found = pages(store, limit=3)
    assert [item.name for page in found for item in page.items] == ["box", "boy"]
    assert len(found) > 4


def test_maintenance_reads_the_expired_ones_only(store: BlobStore) -> None:
    keeping(store, 30)
    for _ in range(300):
        delete(store)
        create(store)
    keeping(store, 1)
    for _ in range(10):
        store.put("blob", store.extents(b"x" * 20_000))
        delete(store)
        create(store)
    store.wait(2 * DAY)
    assert store.maintain() < 250
    assert len(deletions(store)) == len(store.rows(keys.RETIRED_CONTAINERS)) == 300
    assert len(store.rows(keys.EXPIRIES)) == 300
    assert store.rows(keys.DELETED_CONTAINERS) == []
    assert store.segments.data == {}


def test_more_expired_ones_than_a_step_takes(store: BlobStore) -> None:
    for _ in range(450):
        delete(store)
        create(store)
    store.wait(8 * DAY)
    assert store.maintain() < 1000
    assert store.rows(keys.RETIRED_CONTAINERS) == store.rows(keys.EXPIRIES) == []


async def outcomes(*acts: Awaitable[object]) -> list[str]:
    """What concurrent requests end with."""

    async def one(act: Awaitable[object]) -> str:
        try:
            await act
        except Refused as refusal:
            return refusal.reason.name
        return "ok"

    return list(await asyncio.gather(*(one(act) for act in acts)))


OK, MISSING, IN_USE = "ok", Reason.CONTAINER_NOT_FOUND.name, Reason.CONTAINER_ALREADY_EXISTS.name


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_two_restores_beside_a_create(store: BlobStore, order: tuple[int, ...]) -> None:
    delete(store)
    (deleted_at,) = deletions(store)
    acts = [
        deleted_containers.restore(store.engine, CONTAINER, deleted_at),
        deleted_containers.restore(store.engine, CONTAINER, deleted_at),
        container.create(store.engine, CONTAINER, metadata={}, public_access=""),
    ]
    found = Counter(outcome(outcomes(*(acts[each] for each in order))))
    assert found in ({OK: 1, MISSING: 1, IN_USE: 1}, {OK: 1, IN_USE: 2})
    assert len(store.rows(keys.RETIRED_CONTAINERS)) == (0 if found[MISSING] else 1)


@pytest.mark.parametrize("order", list(permutations(range(2))))
def test_a_delete_beside_a_restore(store: BlobStore, order: tuple[int, ...]) -> None:
    delete(store)
    create(store)
    deleted_at = deletions(store)[0]
    acts = [
        container.delete(store.engine, CONTAINER, NONE, None),
        deleted_containers.restore(store.engine, CONTAINER, deleted_at),
    ]
    found = outcome(outcomes(*(acts[each] for each in order)))
    assert sorted(found) in ([OK, OK], sorted([OK, IN_USE]))
    live = len(store.rows(keys.container("acme", "box")))
    assert live + len(deletions(store)) == 2
    assert live == (1 if found == [OK, OK] else 0)
