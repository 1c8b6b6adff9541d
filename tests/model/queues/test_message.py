"""Queues as they are stored: what a request costs beside many messages, and what is left behind."""

import pytest

from kyanite.engine import transaction
from kyanite.model import keys
from kyanite.model.maintenance.spent_messages import ROWS_PER_STEP, WALK_EVERY_SECONDS
from kyanite.model.queues import message, queue
from kyanite.model.queues.message import MAX_EXPIRED, SHORT_TEXT_BYTES, NewMessage
from kyanite.model.queues.queue import QueueKey
from kyanite.rules.refusals import Reason, Refused
from tests.model.content.world import outcome
from tests.model.queues.world import PROCESSES, QUEUE, QueueWorld

MANY = 2 * MAX_EXPIRED + 100


@pytest.fixture
def world() -> QueueWorld:
    return QueueWorld()


def test_messages_come_in_the_order_in_which_they_were_put(world: QueueWorld) -> None:
    names = [f"{number:03}" for number in range(100)]
    for name in names:
        world.put(name)
    got = [one.id for _ in range(4) for one in world.get(32)]
    assert got == names
    assert world.get(32) == []
    world.second += 31
    assert [one.id for _ in range(4) for one in world.get(32)] == names


def test_a_request_costs_the_same_beside_any_number_of_messages(
    world: QueueWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A body that touches more rows than this is refused by the engine."""
    for number in range(MANY):
        world.put(f"{number}")
    held = world.get(32, timeout=600)
    monkeypatch.setattr(transaction, "MAX_BODY_ROWS", 8)
    put = world.put("one more")
    world.delete("one more", put.receipt)
    (got,) = world.get()
    updated = world.update(got.id, got.receipt, text="new")
    world.delete(got.id, updated.receipt)
    world.delete(held[-1].id, held[-1].receipt)
    assert len(world.peek(4)) == 4
    monkeypatch.setattr(transaction, "MAX_BODY_ROWS", 1 + queue.COUNT_SHARDS)
    assert world.count() == MANY - 2
    monkeypatch.setattr(transaction, "MAX_BODY_ROWS", 1 + 3 * 32)
    assert len(world.get(32)) == 32
    monkeypatch.setattr(transaction, "MAX_BODY_ROWS", 4)
    world.clear()
    assert world.peek() == []
    outcome(queue.delete(world.engine, QUEUE))


def test_the_count_is_exact_while_nothing_expires(world: QueueWorld) -> None:
    receipts = [(f"{number}", world.put(f"{number}").receipt) for number in range(50)]
    assert world.count() == 50
    hidden = world.get(10)
    assert world.count() == 50
    for one in hidden[:5]:
        world.delete(one.id, one.receipt)
    for name, receipt in receipts[10:15]:
        world.delete(name, receipt)
    assert world.count() == 40
    world.clear()
    assert world.count() == 0
    world.put("new")
    assert world.count() == 1


def test_a_process_may_delete_what_another_has_put(world: QueueWorld) -> None:
    """Its own count is then negative, and the sum still right. Messages of earlier versions were counted otherwise."""
    engine, (one, other, _) = world.engine, PROCESSES
    message_set_id = outcome(engine.read(lambda snap: queue.load(snap, QUEUE))).message_set_id
    outcome(engine.run(lambda tx: tx.put(keys.message_count(message_set_id, 9), (5).to_bytes(8, "big"))))
    for number in range(4):
        new = NewMessage(f"{number}", "", 0, None, bytes(8))
        put = outcome(message.put(engine, QUEUE, new, process=one))
        if number:
            outcome(message.delete(engine, QUEUE, put.id, put.receipt, process=other))
    counts = {key[-1]: int.from_bytes(value, "big", signed=True) for key, value in world.rows(b"a")}
    assert counts == {one[-1]: 4, other[-1]: -3, 9: 5}
    assert world.count() == 6


def test_any_number_of_expired_messages_do_not_hide_a_live_one(world: QueueWorld) -> None:
    for number in range(MANY):
        world.put(f"{number}", "ü" * SHORT_TEXT_BYTES, life=10)
    world.put("alive", life=100)
    world.second = 11
    assert [one.id for one in world.peek()] == ["alive"]
    assert [one.id for one in world.get()] == ["alive"]
    assert world.count() == len(world.rows(keys.MESSAGES))
    assert world.get() == []
    assert world.count() == len(world.rows(keys.MESSAGES)) == 1
    assert world.rows(b"b") == []


def test_expired_messages_are_cleared_away_a_bounded_number_at_a_time(
    world: QueueWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(MANY):
        world.put(f"{number}", life=10)
    world.put("alive", life=100)
    world.second = 11
    monkeypatch.setattr(transaction, "MAX_BODY_ROWS", 5 * MAX_EXPIRED)
    assert [one.id for one in world.get()] == ["alive"]


def test_expired_messages_are_deleted_wherever_they_are(world: QueueWorld) -> None:
    for number in range(3 * ROWS_PER_STEP):
        world.put(f"{number}", life=10 if number % 3 else -1)
    world.clean_up()
    assert world.count() == 3 * ROWS_PER_STEP
    world.second += 11
    world.clean_up()
    assert world.count() == 3 * ROWS_PER_STEP, "it was walked through just before"
    world.second += int(WALK_EVERY_SECONDS)
    world.clean_up()
    assert world.count() == ROWS_PER_STEP == len(world.rows(keys.MESSAGES))


def test_what_was_cleared_or_deleted_is_purged_step_by_step(
    world: QueueWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(MANY):
        world.put(f"{number}", "x" * 10_000 if number % 10 == 0 else "short")
    world.clear()
    for number in range(MANY):
        world.put(f"{number}")
    outcome(queue.delete(world.engine, QUEUE))
    monkeypatch.setattr(transaction, "MAX_BODY_ROWS", 3 * ROWS_PER_STEP)
    world.clean_up()
    left = [key for prefix in b"qmabz" for key, _ in world.rows(bytes([prefix]))]
    assert left == []


def test_a_receipt_finds_nothing_in_another_queue_nor_in_a_new_one_of_the_name(world: QueueWorld) -> None:
    other = QueueKey("acme", "other")
    outcome(queue.create(world.engine, other, {}))
    put = world.put("one")
    with pytest.raises(Refused) as refusal:
        outcome(message.delete(world.engine, other, "one", put.receipt, process=PROCESSES[0]))
    assert refusal.value.reason is Reason.MESSAGE_NOT_FOUND
    outcome(queue.delete(world.engine, QUEUE))
    with pytest.raises(Refused) as refusal:
        world.delete("one", put.receipt)
    assert refusal.value.reason is Reason.QUEUE_NOT_FOUND
    outcome(queue.create(world.engine, QUEUE, {}))
    assert world.peek() == []
    with pytest.raises(Refused) as refusal:
        world.delete("one", put.receipt)
    assert refusal.value.reason is Reason.MESSAGE_NOT_FOUND


@pytest.mark.parametrize("size", [0, 1, SHORT_TEXT_BYTES, SHORT_TEXT_BYTES + 1, 64 * 1024])
def test_a_text_of_any_size_comes_back_and_leaves_nothing(world: QueueWorld, size: int) -> None:
    world.put("one", "x" * size)
    assert world.peek()[0].text == "x" * size
    (got,) = world.get()
    assert got.text == "x" * size
    updated = world.update("one", got.receipt)
    assert world.peek()[0].text == "x" * size
    updated = world.update("one", updated.receipt, text="y" * size)
    assert world.peek()[0].text == "y" * size
    world.delete("one", updated.receipt)
    assert world.rows(keys.MESSAGES) == world.rows(b"b") == []
