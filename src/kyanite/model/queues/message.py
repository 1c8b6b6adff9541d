"""Messages of a queue.

A message is one row. Rows are in the order of delivery: under the message set id of their queue, by the instant at
which the message becomes visible and then by the instant at which it was put. Hiding a message moves its row. So Get
Messages reads a few rows at the head, however many follow, and a pop receipt contains the position of the row: it
finds the row there or, when another client has moved it since, not at all.

Expired messages are deleted by the requests that meet them at the head, a bounded number at a time, and in the
background (``maintenance/spent_messages.py``). Long texts are stored apart, so moving a message does not copy them.
"""

from collections.abc import Awaitable, Sequence
from typing import Final

import msgspec

from kyanite.engine.api import Engine, Snapshot, Transaction
from kyanite.model import keys
from kyanite.model.content import content
from kyanite.model.queues.queue import QueueKey, count_key, counted, load
from kyanite.model.queues.records import MessageRecord, decode_message
from kyanite.model.records import Value, encode
from kyanite.rules import visibility
from kyanite.rules.refusals import Because, Reason, Refused
from kyanite.rules.visibility import MessageState
from kyanite.values import Instant

SHORT_TEXT_BYTES: Final = 2048
"""Up to this size a text is part of its row."""

MAX_EXPIRED: Final = 512
"""How many expired messages one transaction deletes."""

_ROWS_AT_A_TIME: Final = 64


class NewMessage(Value, frozen=True):
    """A message that a client puts."""

    id: str
    text: str
    delay_seconds: int
    time_to_live_seconds: int | None
    """None means the default of the service."""
    secret: bytes


class Receipt(Value, frozen=True):
    """A pop receipt: where the row of a message was when it was returned, and a secret."""

    visible_at: Instant
    put_at: Instant
    secret: bytes


class Message(Value, frozen=True):
    """A message as it is returned to a client."""

    id: str
    put_at: Instant
    state: MessageState
    text: str

    @property
    def receipt(self) -> Receipt:
        return Receipt(self.state.visible_at, self.put_at, self.state.secret)


Row = tuple[bytes, MessageRecord]


class Head(Value, frozen=True):
    """The messages at the head of a queue."""

    visible: list[Row]
    expired: list[Row]
    """Expired messages before and between them."""
    cut_short: bool
    """There were so many expired messages that the rest was not read."""


def put(engine: Engine, queue: QueueKey, new_message: NewMessage, *, process: bytes) -> Awaitable[Message]:
    """``process`` is the id of this one: it counts the message in a row of its own."""

    def body(tx: Transaction) -> Message:
        message_set_id, now = load(tx, queue).message_set_id, tx.now
        state = visibility.put(
            delay_seconds=new_message.delay_seconds,
            time_to_live_seconds=new_message.time_to_live_seconds,
            secret=new_message.secret,
            now=now,
        )
        save(tx, message_set_id, now, _record(tx, new_message.id, state, new_message.text))
        count = count_key(message_set_id, process)
        tx.put(count, counted(tx.get(count), 1))
        return Message(new_message.id, now, state, new_message.text)

    return engine.run(body)


async def get(
    engine: Engine, queue: QueueKey, *, count: int, timeout_seconds: int, secret: bytes, process: bytes
) -> list[Message]:
    """Up to ``count`` visible messages, which are hidden from all other clients for the timeout."""

    def body(tx: Transaction) -> tuple[list[Message], bool]:
        message_set_id, now = load(tx, queue).message_set_id, tx.now
        head = read_head(tx, message_set_id, count, now)
        if head.expired:
            delete_rows(tx, message_set_id, head.expired, process)
        long_texts = _long_texts(tx, head.visible)
        messages = []
        for key, record in head.visible:
            state = visibility.get(record.state, timeout_seconds=timeout_seconds, secret=secret, now=now)
            put_at = put_at_of(key)
            tx.delete(key)
            save(tx, message_set_id, put_at, MessageRecord(record.id, state, record.text, record.long_text))
            messages.append(Message(record.id, put_at, state, record.text or long_texts.get(key, "")))
        return messages, head.cut_short

    scope = keys.queue_scope(queue.account, queue.name)
    while True:
        messages, cut_short = await engine.run(body, scope)
        if messages or not cut_short:
            return messages


async def peek(engine: Engine, queue: QueueKey, *, count: int, process: bytes) -> list[Message]:
    """Up to ``count`` visible messages, left as they are."""

    def body(snap: Snapshot) -> tuple[list[Message], bool]:
        head = read_head(snap, load(snap, queue).message_set_id, count, snap.now)
        long_texts = _long_texts(snap, head.visible)
        messages = [
            Message(record.id, put_at_of(key), record.state, record.text or long_texts.get(key, ""))
            for key, record in head.visible
        ]
        return messages, head.cut_short

    def delete_expired(tx: Transaction) -> None:
        message_set_id = load(tx, queue).message_set_id
        delete_rows(tx, message_set_id, read_head(tx, message_set_id, count, tx.now).expired, process)

    while True:
        messages, cut_short = await engine.read(body)
        if messages or not cut_short:
            return messages
        await engine.run(delete_expired, keys.queue_scope(queue.account, queue.name))


def update(
    engine: Engine,
    queue: QueueKey,
    message_id: str,
    receipt: Receipt,
    *,
    text: str | None,
    timeout_seconds: int,
    secret: bytes,
) -> Awaitable[Message]:
    """Hide the message for the timeout, or make it visible, with a new receipt. No text keeps the present one."""

    def body(tx: Transaction) -> Message:
        message_set_id, now = load(tx, queue).message_set_id, tx.now
        key = keys.message(message_set_id, receipt.visible_at, receipt.put_at)
        record = _found(tx.get(key), message_id)
        state = visibility.update(
            record.state, receipt.secret, timeout_seconds=timeout_seconds, secret=secret, now=now
        )
        if text is None:
            changed = msgspec.structs.replace(record, state=state)
        else:
            content.drop(tx, record.long_text)
            changed = _record(tx, message_id, state, text)
        tx.delete(key)
        save(tx, message_set_id, receipt.put_at, changed)
        return Message(message_id, receipt.put_at, state, "")

    return engine.run(body)


def delete(
    engine: Engine, queue: QueueKey, message_id: str, receipt: Receipt, *, process: bytes
) -> Awaitable[None]:
    def body(tx: Transaction) -> None:
        message_set_id = load(tx, queue).message_set_id
        key = keys.message(message_set_id, receipt.visible_at, receipt.put_at)
        count = count_key(message_set_id, process)
        stored, stored_count = tx.get_many((key, count))
        record = _found(stored, message_id)
        visibility.check_receipt(record.state, receipt.secret, tx.now)
        tx.delete(key)
        content.drop(tx, record.long_text)
        tx.put(count, counted(stored_count, -1))

    return engine.run(body)


# Rows


def read_head(snap: Snapshot, message_set_id: int, count: int, now: Instant) -> Head:
    """The first ``count`` visible messages, and the expired messages among them. Bounded."""
    start, end = keys.messages(message_set_id), keys.messages_visible_from(message_set_id, now + 1)
    visible: list[Row] = []
    expired: list[Row] = []
    limit = count
    while True:
        key = b""
        rows = 0
        for key, value in snap.scan(start, end, limit=limit):
            rows += 1
            record = decode_message(value)
            (expired if visibility.is_expired(record.state, now) else visible).append((key, record))
            if len(visible) == count:
                return Head(visible, expired, cut_short=False)
        if rows < limit or len(expired) >= MAX_EXPIRED:
            return Head(visible, expired, cut_short=rows == limit)
        start, limit = key + b"\0", _ROWS_AT_A_TIME


def save(tx: Transaction, message_set_id: int, put_at: Instant, record: MessageRecord) -> None:
    tx.put(keys.message(message_set_id, record.state.visible_at, put_at), encode(record))


def delete_rows(tx: Transaction, message_set_id: int, rows: Sequence[Row], process: bytes) -> None:
    if not rows:
        return
    for key, record in rows:
        tx.delete(key)
        content.drop(tx, record.long_text)
    count = count_key(message_set_id, process)
    tx.put(count, counted(tx.get(count), -len(rows)))


def put_at_of(key: bytes) -> Instant:
    return Instant(int.from_bytes(key[-8:], "big"))


def _long_texts(snap: Snapshot, rows: Sequence[Row]) -> dict[bytes, str]:
    """The texts that are not in their row, by the key of that row. All are read in one round trip."""
    bodies = {key: keys.body(record.long_text.body) for key, record in rows if record.long_text.body}
    if not bodies:
        return {}
    texts: dict[bytes, str] = {}
    for key, text in zip(bodies, snap.get_many(list(bodies.values())), strict=True):
        assert text is not None, "A message refers to a text that is not there."
        texts[key] = text.decode()
    return texts


def _record(tx: Transaction, message_id: str, state: MessageState, text: str) -> MessageRecord:
    if len(text) <= SHORT_TEXT_BYTES // 4:
        return MessageRecord(message_id, state, text)
    stored = text.encode()
    if len(stored) <= SHORT_TEXT_BYTES:
        return MessageRecord(message_id, state, text)
    return MessageRecord(message_id, state, "", content.create(tx, stored))


_NOT_THERE: Final = Because(
    "No message is stored where the pop receipt leads: it was deleted, or hidden anew since."
)


def _found(stored: bytes | None, message_id: str) -> MessageRecord:
    if stored is None:
        raise Refused(Reason.MESSAGE_NOT_FOUND, facts=_NOT_THERE)
    record = decode_message(stored)
    if record.id != message_id:
        raise Refused(Reason.MESSAGE_NOT_FOUND)
    return record
