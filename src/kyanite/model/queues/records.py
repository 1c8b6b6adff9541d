"""The records of queues and messages, as they are stored. The transactions over them are in the modules beside."""

from collections.abc import Callable

import msgspec

from kyanite.model.content.content import NO_CONTENT, Content
from kyanite.model.records import Policy, Record
from kyanite.rules.visibility import MessageState
from kyanite.values import Instant


class QueueRecord(Record, frozen=True):
    message_set_id: int
    created_at: Instant
    metadata: dict[str, str]
    policies: tuple[Policy, ...] = ()


class MessageRecord(Record, frozen=True):
    id: str
    state: MessageState
    text: str
    long_text: Content = NO_CONTENT
    """The text, if it is not in ``text``."""


decode_queue: Callable[[bytes], QueueRecord] = msgspec.msgpack.Decoder(QueueRecord).decode
decode_message: Callable[[bytes], MessageRecord] = msgspec.msgpack.Decoder(MessageRecord).decode
