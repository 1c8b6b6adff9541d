"""Giving back the space of messages that nobody can get any more.

There are two kinds: messages of a *discarded* generation, whose queue was cleared or deleted, and messages that have
*expired* and that nobody has come across since. The former have a mark each generation; for the latter all messages
are walked through now and then, a bounded number of rows at a time. Every step may be done twice or by several at once.
"""

from functools import partial
from itertools import groupby

from kyanite.engine.api import Engine, Snapshot, Transaction
from kyanite.model import keys
from kyanite.model.content import content
from kyanite.model.queues.message import Row, decode_message, delete_rows
from kyanite.rules import visibility
from kyanite.values import Instant, later

ROWS_AT_ONCE = 500
WALK_EVERY_SECONDS = 600.0


class SpentMessages:
    """To be stepped by a background task: at once while it has work, now and then while it has none."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._position = keys.MESSAGES
        self._walk_at = Instant(0)
        """When the next walk through all messages begins."""

    async def step(self) -> bool:
        """Do a little. False when there is nothing to do."""
        message_set_id = await self._engine.read(_discarded)
        if message_set_id is not None:
            await self._engine.run(partial(_take_apart, message_set_id=message_set_id))
            return True
        return await self._walk()

    async def _walk(self) -> bool:
        """Look at some messages, and clear away those that have expired; False between two walks."""
        now = await self._engine.read(lambda snap: snap.now)
        if now < self._walk_at:
            return False
        gone, self._position = await self._engine.read(partial(_expired, start=self._position))
        if gone:
            await self._engine.run(partial(_clear_away, found=gone))
        if not self._position:
            self._position = keys.MESSAGES
            self._walk_at = later(now, WALK_EVERY_SECONDS)
        return True


def _discarded(snap: Snapshot) -> int | None:
    """The first generation that is to be taken apart."""
    for key, _ in snap.scan(keys.DISCARDED_MESSAGES, keys.after(keys.DISCARDED_MESSAGES), limit=1):
        return int.from_bytes(key[len(keys.DISCARDED_MESSAGES) :], "big")
    return None


def _take_apart(tx: Transaction, message_set_id: int) -> None:
    base = keys.messages(message_set_id)
    rows = list(tx.scan(base, keys.after(base), limit=ROWS_AT_ONCE))
    for key, value in rows:
        tx.delete(key)
        content.drop(tx, decode_message(value).long_text)
    if len(rows) < ROWS_AT_ONCE:
        counts = keys.message_counts(message_set_id)
        for key, _ in list(tx.scan(counts, keys.after(counts))):
            tx.delete(key)
        tx.delete(keys.discarded_messages(message_set_id))


def _expired(snap: Snapshot, start: bytes) -> tuple[list[bytes], bytes]:
    """The expired ones among the next messages, and where to go on; empty when these were the last."""
    key, count = b"", 0
    gone = []
    for key, value in snap.scan(start, keys.after(keys.MESSAGES), limit=ROWS_AT_ONCE):
        count += 1
        if visibility.is_expired(decode_message(value).state, snap.now):
            gone.append(key)
    return gone, key + b"\0" if count == ROWS_AT_ONCE else b""


def _clear_away(tx: Transaction, found: list[bytes]) -> None:
    """What has expired stays so, but somebody else may have cleared it away since."""
    for base, group in groupby(found, key=lambda key: key[:_GENERATION_END]):
        keys_of_one = list(group)
        rows: list[Row] = [
            (key, decode_message(value))
            for key, value in zip(keys_of_one, tx.get_many(keys_of_one), strict=True)
            if value is not None
        ]
        delete_rows(tx, int.from_bytes(base[len(keys.MESSAGES) :], "big"), rows)


_GENERATION_END = len(keys.messages(0))
