"""Taking shares apart that were deleted, and rows that were set aside for snapshots that are gone.

Nobody can reach these rows any more. They go a bounded number at a time, in the background; a row is dropped by the
transaction that deletes it, so any number of processes may do it at once.
"""

from bisect import bisect_left
from functools import partial

from kyanite.engine.api import Engine, Snapshot, Transaction
from kyanite.model import keys
from kyanite.model.content import content
from kyanite.model.files import deleted_shares, handles
from kyanite.model.files.entry import decode_entry
from kyanite.model.files.share_snapshots import instants
from kyanite.values import Instant, later

ROWS_AT_ONCE = 200
WALK_EVERY_SECONDS = 60.0
_INSTANT_BYTES = 8


class DeletedShares:
    """To be stepped by a background task: at once while it has work, now and then while it has none."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._position = b""
        """How far the walk through shares that could be restored has come."""
        self._walk_at = Instant(0)

    async def step(self) -> bool:
        """Take a little of something apart. False when there is nothing to do."""
        for prefix, take_apart in ((keys.DELETED_SHARES, _share), (keys.UNNEEDED_PRESERVED_ENTRIES, _asides)):
            number = await self._engine.read(partial(_first, prefix=prefix))
            if number is not None:
                await self._engine.run(partial(take_apart, share_id=number))
                return True
        return await self._walk()

    async def _walk(self) -> bool:
        """Look now and then whether the time of a deleted share is over; False between two walks."""
        now = await self._engine.read(lambda snap: snap.now)
        if now < self._walk_at:
            return False
        found, self._position = await self._engine.read(partial(deleted_shares.overdue, start=self._position))
        if found:
            await self._engine.run(partial(deleted_shares.expire, found=found))
        if not self._position:
            self._walk_at = later(now, WALK_EVERY_SECONDS)
        return True


def _first(snap: Snapshot, prefix: bytes) -> int | None:
    for key, _ in snap.scan(prefix, keys.after(prefix), limit=1):
        return int.from_bytes(key[len(prefix) :], "big")
    return None


def _share(tx: Transaction, share_id: int) -> None:
    left = ROWS_AT_ONCE
    for prefix in (keys.entries_of_share(share_id), keys.preserved_entries_of_share(share_id)):
        for key, value in list(tx.scan(prefix, keys.after(prefix), limit=left)):
            content.drop(tx, decode_entry(value).content)
            tx.delete(key)
            left -= 1
    for prefix in (
        keys.share_snapshots(share_id),
        keys.permissions(share_id),
        keys.usages(share_id),
        keys.open_entries_of_share(share_id),
        keys.pending_deletes_of_share(share_id),
    ):
        for key, _ in list(tx.scan(prefix, keys.after(prefix), limit=left)):
            tx.delete(key)
            left -= 1
    left -= handles.purge_share(tx, share_id, left)
    if left == ROWS_AT_ONCE:
        tx.delete(keys.deleted_share(share_id))
        tx.delete(keys.unneeded_preserved_entries(share_id))


def _asides(tx: Transaction, share_id: int) -> None:
    """Look at some rows, from where the mark says, and drop those that no snapshot shows any more."""
    mark, prefix = keys.unneeded_preserved_entries(share_id), keys.preserved_entries_of_share(share_id)
    kept = instants(tx, share_id)
    rows = list(tx.scan(tx.get(mark) or prefix, keys.after(prefix), limit=ROWS_AT_ONCE))
    for key, value in rows:
        entry = decode_entry(value)
        until = int.from_bytes(key[-_INSTANT_BYTES:], "big")
        first = bisect_left(kept, entry.written_at)
        if first == len(kept) or kept[first] > until:
            content.drop(tx, entry.content)
            tx.delete(key)
    if len(rows) < ROWS_AT_ONCE:
        tx.delete(mark)
    else:
        tx.put(mark, rows[-1][0] + b"\0")
