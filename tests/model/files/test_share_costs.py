"""What is done with shares costs the same however many snapshots and deleted shares there are."""

from collections.abc import Awaitable
from typing import TypeVar

import pytest

from kyanite.engine.memory.engine import MemoryEngine
from kyanite.model import settings
from kyanite.model.files import deleted_shares, directory, share, share_snapshots
from kyanite.model.files.share import ShareKey, ShareSettings
from kyanite.model.files.share_listing import ShareListing, SharePage, SharePosition, list_shares
from kyanite.model.files.share_snapshots import MAX_SNAPSHOTS, Snapshots
from kyanite.rules.refusals import Reason, Refused
from kyanite.service_properties import Retention, ServiceProperties
from kyanite.values import Instant, later
from tests.model.content.world import outcome
from tests.model.counted import CountingEngine

T = TypeVar("T")

DAY_SECONDS = 86_400


def key(name: str) -> ShareKey:
    return ShareKey("acme", name)


def create(engine: MemoryEngine, name: str) -> None:
    outcome(share.create(engine, key(name), {}, ShareSettings(), directory.create_root))


def delete(engine: MemoryEngine, name: str, days: int = 7) -> None:
    outcome(settings.update(engine, "acme", "file", ServiceProperties(share_retention=Retention(days))))
    outcome(share_snapshots.delete(engine, key(name), None, Snapshots.INCLUDE))


def cost(engine: CountingEngine, step: Awaitable[object]) -> int:
    """The memory engine has done the work when it is called."""
    outcome(step)
    return engine.costs[-1]


def pages(engine: MemoryEngine, **request: object) -> list[SharePage]:
    found: list[SharePage] = []
    first: SharePosition | None = SharePosition("")
    while first is not None:
        listing = ShareListing(first=first, **request)  # type: ignore[arg-type]
        found.append(outcome(list_shares(engine, "acme", listing)))
        first = found[-1].next_start
    return found


def full(deleted: int, snapshots: int) -> CountingEngine:
    """Two shares; so many deleted ones had the name of the first, and it has so many snapshots."""
    engine = CountingEngine()
    for _ in range(deleted):
        create(engine, "a")
        delete(engine, "a")
    create(engine, "a")
    create(engine, "b")
    for _ in range(snapshots):
        outcome(share_snapshots.take(engine, key("a"), {}))
    return engine


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 1000])
def test_every_share_is_listed_once(limit: int) -> None:
    engine = full(5, 4)
    items = [item for page in pages(engine, limit=limit, snapshots=True, deleted=True) for item in page.items]
    positions = [item.position for item in items]
    assert len(positions) == 4 + 1 + 5 + 1
    assert positions == sorted(set(positions))
    assert [item.name for item in items] == ["a"] * 10 + ["b"]
    assert [item.retired is not None for item in items] == [False] * 5 + [True] * 5 + [False]


def test_a_page_of_shares_costs_what_it_returns() -> None:
    def costs(deleted: int, snapshots: int) -> list[int]:
        engine = full(deleted, snapshots)
        engine.costs.clear()
        pages(engine, limit=5, snapshots=True, deleted=True)
        return engine.costs

    few, many = costs(20, 10), costs(200, 10)
    assert max(few) == max(many)
    assert max(costs(20, 190)) <= max(few) + 190  # Of one share, all snapshots are read: at most 200.


def test_expired_shares_do_not_fill_a_page_and_do_not_stop_a_list() -> None:
    clock = Clock()
    engine = MemoryEngine(clock=clock)
    for _ in range(30):
        create(engine, "a")
        delete(engine, "a", days=1)
    clock.now = later(clock.now, 2 * DAY_SECONDS)
    create(engine, "a")
    delete(engine, "a", days=5)
    create(engine, "b")
    found = pages(engine, limit=3, deleted=True)
    assert [item.name for page in found for item in page.items] == ["a", "b"]
    assert len(found) > 4


class Clock:
    def __init__(self) -> None:
        self.now = Instant(10**17)

    def __call__(self) -> Instant:
        return self.now


def test_restoring_and_deleting_cost_the_same_whatever_there_is() -> None:
    def costs(deleted: int, snapshots: int) -> list[int]:
        engine = full(deleted, snapshots)
        listed = pages(engine, deleted=True)[0].items
        oldest = next(item.retired for item in listed if item.retired is not None)
        gone = cost(engine, share_snapshots.delete(engine, key("a"), None, Snapshots.INCLUDE))
        back = cost(engine, deleted_shares.restore(engine, key("a"), oldest.deleted_at))
        return [gone, back]

    assert costs(3, 5) == costs(300, 5)
    assert costs(3, MAX_SNAPSHOTS)[0] <= MAX_SNAPSHOTS + 20
    assert costs(3, MAX_SNAPSHOTS)[1] == costs(3, 0)[1]


def test_a_share_has_only_so_many_snapshots() -> None:
    engine = full(0, MAX_SNAPSHOTS)
    with pytest.raises(Refused) as refusal:
        outcome(share_snapshots.take(engine, key("a"), {}))
    assert refusal.value.reason is Reason.SHARE_SNAPSHOT_COUNT_EXCEEDED
