"""Queues themselves: made, changed, cleared, deleted and listed."""

from contextlib import AbstractContextManager

import pytest

from kyanite.engine.faulty import Call, FaultyEngine, Repeat
from kyanite.engine.memory.engine import MemoryEngine
from kyanite.model import keys
from kyanite.model.queues import queue
from kyanite.model.queues.queue import QueueKey
from kyanite.model.records import Policy
from kyanite.rules.refusals import Reason, Refused
from kyanite.values import Instant
from tests.model.content.world import outcome
from tests.model.queues.world import QUEUE, START, QueueWorld


def refuses(reason: Reason) -> AbstractContextManager[pytest.ExceptionInfo[Refused]]:
    return pytest.raises(Refused, match=reason.name)


def test_a_queue_may_be_created_again_with_the_same_metadata() -> None:
    engine = MemoryEngine()
    assert outcome(queue.create(engine, QUEUE, {"Color": "blue", "size": "7"}))
    assert not outcome(queue.create(engine, QUEUE, {"SIZE": "7", "color": "blue"}))
    for other in ({"color": "Blue", "size": "7"}, {"color": "blue"}, {}):
        with refuses(Reason.QUEUE_ALREADY_EXISTS):
            outcome(queue.create(engine, QUEUE, other))
    assert outcome(queue.get_properties(engine, QUEUE)).record.metadata == {"Color": "blue", "size": "7"}


def test_creating_a_queue_again_keeps_its_messages() -> None:
    world = QueueWorld()
    world.put("a")
    assert not outcome(queue.create(world.engine, QUEUE, {}))
    assert [one.id for one in world.peek()] == ["a"]


def test_metadata_and_policies_change_apart() -> None:
    engine = MemoryEngine()
    outcome(queue.create(engine, QUEUE, {"a": "1"}))
    policies = (Policy("read", START, None, "r"),)
    outcome(queue.set_policies(engine, QUEUE, policies))
    outcome(queue.set_metadata(engine, QUEUE, {"b": "2"}))
    found = outcome(queue.find(engine, QUEUE))
    assert found is not None
    assert (found.metadata, found.policies) == ({"b": "2"}, policies)


def test_a_queue_that_does_not_exist() -> None:
    engine = MemoryEngine()
    assert outcome(queue.find(engine, QUEUE)) is None
    for request in (
        lambda: queue.get_properties(engine, QUEUE),
        lambda: queue.set_metadata(engine, QUEUE, {}),
        lambda: queue.set_policies(engine, QUEUE, ()),
        lambda: queue.clear(engine, QUEUE),
        lambda: queue.delete(engine, QUEUE),
    ):
        with refuses(Reason.QUEUE_NOT_FOUND):
            outcome(request())
    assert list(outcome(engine.read(lambda snap: list(snap.scan(b"", b"\xff"))))) == []


def test_clearing_a_queue_keeps_all_but_its_messages() -> None:
    world = QueueWorld()
    outcome(queue.set_metadata(world.engine, QUEUE, {"a": "1"}))
    before = outcome(queue.get_properties(world.engine, QUEUE)).record
    world.put("a")
    world.clear()
    after = outcome(queue.get_properties(world.engine, QUEUE))
    assert (after.record.metadata, after.record.created_at) == (before.metadata, before.created_at)
    assert (after.message_count, world.peek()) == (0, [])


def test_every_message_set_has_an_id_of_its_own() -> None:
    """Also when nothing but the clock's resolution lies between two of them."""
    engine = MemoryEngine(clock=lambda: START)
    ids: list[int] = []
    for name in ("a", "b"):
        key = QueueKey("acme", name)
        outcome(queue.create(engine, key, {}))
        for _ in range(3):
            ids.append(outcome(queue.get_properties(engine, key)).record.message_set_id)
            outcome(queue.clear(engine, key))
    assert len(set(ids)) == len(ids)
    purged = {int.from_bytes(key[1:], "big") for key, _ in _rows(engine, keys.DISCARDED_MESSAGES)}
    assert purged == set(ids)


def test_ids_are_unlike_those_of_format_1() -> None:
    """Format 1 used the instant of the transaction, up to the end of the calendar."""
    engine = MemoryEngine(clock=lambda: START)
    outcome(queue.create(engine, QUEUE, {}))
    record = outcome(queue.get_properties(engine, QUEUE)).record
    assert record.created_at == START
    assert record.message_set_id > Instant(3_155_378_975_999_999_999)


def test_a_body_that_runs_again_clears_once() -> None:
    world = QueueWorld()
    world.put("a")
    engine = FaultyEngine(world.engine, {(Call.RUN, 1): Repeat(2)})
    outcome(queue.clear(engine, QUEUE))
    engine.check_all_hit()
    assert len(world.rows(keys.DISCARDED_MESSAGES)) == 1


def test_a_listing_is_in_order_of_names_and_pages() -> None:
    engine = MemoryEngine()
    for account, name in (("acme", "bb"), ("acme", "a1"), ("acme", "a2"), ("other", "a3"), ("acme", "c")):
        outcome(queue.create(engine, QueueKey(account, name), {"n": name}))

    def listed(prefix: str = "", first: str = "", limit: int = 10) -> tuple[list[str], str | None]:
        page = outcome(queue.list_queues(engine, "acme", prefix=prefix, first=first, limit=limit))
        assert all(record.metadata == {"n": name} for name, record in page.items)
        return [name for name, _ in page.items], page.next_name

    assert listed() == (["a1", "a2", "bb", "c"], None)
    assert listed(limit=2) == (["a1", "a2"], "bb")
    assert listed(first="bb", limit=2) == (["bb", "c"], None)
    assert listed(prefix="a", limit=1) == (["a1"], "a2")
    assert listed(prefix="a", first="a2") == (["a2"], None)
    assert listed(prefix="b", first="c") == ([], None)


def _rows(engine: MemoryEngine, prefix: bytes) -> list[tuple[bytes, bytes]]:
    return outcome(engine.read(lambda snap: list(snap.scan(prefix, keys.after(prefix)))))
