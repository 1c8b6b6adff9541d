"""The changes of the shares that clients of this process watch, from their feeds to the watches.

While a share has watches here, a task reads its feed when it is notified of changes, and each second, since
notifications may be lost.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from weakref import WeakSet

from kyanite.engine.api import Engine, EngineClosed, EngineError, Snapshot, Transaction
from kyanite.model.files.opens import handles, watches
from kyanite.model.files.share import ShareKey
from kyanite.model.files.tree import Tree
from kyanite.services.smb.watch import Watch
from kyanite.wire.smb2.status import Status

_AGAIN_SECONDS = 1.0


class ChangeFeeds:
    """To be used on one loop."""

    def __init__(self) -> None:
        self._shares: dict[tuple[int, int], _ShareFeed] = {}

    async def start(
        self, engine: Engine, key: ShareKey, load: Callable[[Snapshot], Tree], share_id: int, watch: Watch
    ) -> None:
        """Begin to watch the directory that a handle has open."""

        def body(tx: Transaction) -> int:
            return handles.watch(tx, key, load(tx), watch.directory_id, watch.handle_id)

        watch.first_number = await engine.run(body, durable=False)
        feed = self._shares.get((id(engine), share_id))
        if feed is None:
            feed = self._shares[id(engine), share_id] = _ShareFeed(engine, share_id)
            feed.task = asyncio.get_running_loop().create_task(self._follow(feed))
        feed.add(watch)

    async def catch_up(self, engine: Engine, share_id: int, check: Callable[[Snapshot], None]) -> None:
        """Let the watches know all that has been committed. ``check`` may refuse, in the same snapshot."""
        feed = self._shares.get((id(engine), share_id))
        if feed is None:  # Its last watch has ended.
            await engine.read(check)
        else:
            await feed.catch_up(check)

    async def _follow(self, feed: "_ShareFeed") -> None:
        try:
            await feed.follow()
        finally:
            self._shares.pop((id(feed.engine), feed.share_id), None)


class _ShareFeed:
    def __init__(self, engine: Engine, share_id: int) -> None:
        self.engine = engine
        self.share_id = share_id
        self.task: asyncio.Task[None] | None = None
        self._notifications = engine.subscribe(watches.topic(share_id))
        self._number = 0
        """The number of the first change that has not been read."""
        self._by_directory: dict[int, WeakSet[Watch]] = {}

    def add(self, watch: Watch) -> None:
        if not self._by_directory:
            self._number = watch.first_number
        self._by_directory.setdefault(watch.directory_id, WeakSet()).add(watch)

    async def follow(self) -> None:
        """Read the feed for as long as there are watches."""
        while self._has_watches():
            with suppress(TimeoutError):
                try:
                    await asyncio.wait_for(anext(self._notifications), _AGAIN_SECONDS)
                except StopAsyncIteration:  # The engine was closed.
                    return
            try:
                await self.catch_up()
            except EngineClosed:
                return
            except EngineError:  # It may work in a second.
                continue

    async def catch_up(self, check: Callable[[Snapshot], None] | None = None) -> None:
        def body(snap: Snapshot) -> watches.Changes:
            if check is not None:
                check(snap)
            return watches.read(snap, self.share_id, self._number)

        self._deliver(await self.engine.read(body))

    def _deliver(self, changes: watches.Changes) -> None:
        if changes.next_number < self._number:  # Another call has read more.
            return
        oldest = changes.items[0].number if changes.items else changes.next_number
        if changes.has_gap and oldest > self._number:
            for watch in self._watches():
                if watch.first_number < oldest:
                    watch.lose_changes()
        for change in changes.items:
            if change.number >= self._number:
                self._report(change)
        self._number = changes.next_number
        if changes.ended_at is not None:
            for watch in self._watches():
                if watch.first_number <= changes.ended_at:
                    watch.end_calls(Status.NOTIFY_CLEANUP)
                    self._by_directory[watch.directory_id].discard(watch)

    def _report(self, change: watches.Change) -> None:
        if not change.above:
            for watch in self._watches():
                watch.report(change)
        for directory_id in change.above:
            for watch in tuple(self._by_directory.get(directory_id, ())):
                watch.report(change)

    def _has_watches(self) -> bool:
        for directory_id in [each for each, found in self._by_directory.items() if not found]:
            del self._by_directory[directory_id]
        return bool(self._by_directory)

    def _watches(self) -> list[Watch]:
        return [watch for found in self._by_directory.values() for watch in found]
