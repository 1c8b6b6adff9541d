"""Taking apart what was deleted in one small transaction: containers with all that is in them, and staging areas.

Nobody can reach these rows any more, since the names that led to them are gone. So they go a bounded number at a time,
in the background, and any number of processes may do it at once: a row is dropped by the transaction that deletes it.
"""

from functools import partial

from kyanite.engine.api import Engine, Snapshot, Transaction
from kyanite.model import keys
from kyanite.model.blobs import staged_blocks
from kyanite.model.content import content
from kyanite.model.records import decode_blob

_ROWS_AT_ONCE = 200


class DeletedContainers:
    """To be stepped by a background task: at once while it has work, now and then while it has none."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def step(self) -> bool:
        """Take a little of something apart. False when there is nothing to do."""
        for prefix, take_apart in (
            (keys.DELETED_CONTAINERS, _container),
            (keys.ABANDONED_STAGINGS, _staging),
        ):
            number = await self._engine.read(partial(_first, prefix=prefix))
            if number is not None:
                await self._engine.run(partial(take_apart, number=number))
                return True
        return False


def _first(snap: Snapshot, prefix: bytes) -> int | None:
    for key, _ in snap.scan(prefix, keys.after(prefix), limit=1):
        return int.from_bytes(key[len(prefix) :], "big")
    return None


def _container(tx: Transaction, number: int) -> None:
    left = _ROWS_AT_ONCE
    for prefix in (keys.blobs(number), keys.blob_versions(number)):
        for key, value in list(tx.scan(prefix, keys.after(prefix), limit=left)):
            content.drop(tx, decode_blob(value).content)
            tx.delete(key)
            left -= 1
    prefix = keys.stagings(number)
    for key, head in list(tx.scan(prefix, keys.after(prefix), limit=left)):
        staged_blocks.abandon(tx, key, head)
        left -= 1
    if left == _ROWS_AT_ONCE:
        tx.delete(keys.deleted_container(number))


def _staging(tx: Transaction, number: int) -> None:
    prefix = keys.staged_blocks(number)
    rows = list(tx.scan(prefix, keys.after(prefix), limit=_ROWS_AT_ONCE))
    for key, value in rows:
        content.drop(tx, staged_blocks.decode_block(value).content)
        tx.delete(key)
    if not rows:
        tx.delete(keys.abandoned_staging(number))
