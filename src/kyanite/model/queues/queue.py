"""Queues: the transactions over them and their listing.

A queue is found by its name, and its messages by its *message set id*. Clearing a queue gives it a new message set id,
and both clearing and deleting leave the old messages to be purged in the background. So both cost the same however many
messages there are, and pop receipts of those messages find nothing.

The messages of a set are counted in a few rows. Each process adds to one of them what it puts and subtracts what it
removes, so a row may be negative; the number of messages is their sum. ``docs/decisions/0020-queues.md`` says why.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from kyanite.engine.api import Engine, Snapshot, Steps, Transaction
from kyanite.model import keys
from kyanite.model.named import finder, loader
from kyanite.model.page import Page, page_by_name
from kyanite.model.queues.records import QueueRecord, decode_queue
from kyanite.model.records import NamedKey, Policy, encode
from kyanite.rules.refusals import Reason, Refused

COUNT_SHARDS: Final = 16


class QueueKey(NamedKey, frozen=True):
    @property
    def key(self) -> bytes:
        return keys.queue(self.account, self.name)


load: Final[Callable[[Snapshot, QueueKey], QueueRecord]] = loader(
    keys.queue, decode_queue, Reason.QUEUE_NOT_FOUND
)
find: Final[Callable[[Engine, QueueKey], Awaitable[QueueRecord | None]]] = finder(keys.queue, decode_queue)


@dataclass(frozen=True, slots=True)
class QueueWithCount:
    """A queue and its approximate number of messages: hidden ones count, and expired ones until they are deleted."""

    record: QueueRecord
    message_count: int


def create(engine: Engine, queue: QueueKey, metadata: dict[str, str]) -> Awaitable[bool]:
    """Create the queue. Returns False when it exists already with the same metadata."""

    def body(tx: Transaction) -> bool:
        stored = tx.get(queue.key)
        if stored is not None:
            if _without_case(decode_queue(stored).metadata) != _without_case(metadata):
                raise Refused(Reason.QUEUE_ALREADY_EXISTS)
            return False
        tx.put(queue.key, encode(QueueRecord(tx.new_id(), created_at=tx.now, metadata=metadata)))
        return True

    return engine.run(body)


def _without_case(metadata: dict[str, str]) -> dict[str, str]:
    """Names compare without case."""
    return {name.lower(): value for name, value in metadata.items()}


def get_properties(engine: Engine, queue: QueueKey) -> Awaitable[QueueWithCount]:
    def body(snap: Snapshot) -> QueueWithCount:
        record = load(snap, queue)
        return QueueWithCount(record, count_messages(snap, record.message_set_id))

    return engine.read(body)


def set_metadata(engine: Engine, queue: QueueKey, metadata: dict[str, str]) -> Awaitable[None]:
    return _change(engine, queue, lambda record: replace(record, metadata=metadata))


def set_policies(engine: Engine, queue: QueueKey, policies: tuple[Policy, ...]) -> Awaitable[None]:
    return _change(engine, queue, lambda record: replace(record, policies=policies))


def _change(engine: Engine, queue: QueueKey, change: Callable[[QueueRecord], QueueRecord]) -> Awaitable[None]:
    def body(tx: Transaction) -> None:
        tx.put(queue.key, encode(change(load(tx, queue))))

    return engine.run(body)


def clear(engine: Engine, queue: QueueKey) -> Awaitable[None]:
    """Remove all messages, visible or not."""

    def body(tx: Transaction) -> None:
        record = load(tx, queue)
        tx.put(queue.key, encode(replace(record, message_set_id=tx.new_id())))
        tx.put(keys.discarded_messages(record.message_set_id), b"")

    return engine.run(body, keys.queue_scope(queue.account, queue.name))


def delete(engine: Engine, queue: QueueKey) -> Awaitable[None]:
    def body(tx: Transaction) -> None:
        record = load(tx, queue)
        tx.delete(queue.key)
        tx.put(keys.discarded_messages(record.message_set_id), b"")

    return engine.run(body, keys.queue_scope(queue.account, queue.name))


def list_queues(
    engine: Engine, account: str, *, prefix: str, first: str, limit: int
) -> Awaitable[Page[QueueRecord]]:
    """The queues of an account in the order of their names, from ``first`` on."""

    def body(snap: Snapshot) -> Steps[Page[QueueRecord]]:
        base = keys.queues(account)
        return page_by_name(snap, base, decode_queue, prefix=prefix, first=first, limit=limit)

    return engine.read_in_steps(body)


# Counts


def count_messages(snap: Snapshot, message_set_id: int) -> int:
    base = keys.message_counts(message_set_id)
    rows = snap.scan(base, keys.after(base), limit=COUNT_SHARDS)
    return sum([int.from_bytes(value, "big", signed=True) for _, value in rows])


def count_key(message_set_id: int, process: bytes) -> bytes:
    """The row in which this process counts what it puts and removes."""
    return keys.message_count(message_set_id, process[-1] % COUNT_SHARDS)


def counted(stored: bytes | None, change: int) -> bytes:
    """The value of a count row after the change."""
    count = change if stored is None else int.from_bytes(stored, "big", signed=True) + change
    return count.to_bytes(8, "big", signed=True)
