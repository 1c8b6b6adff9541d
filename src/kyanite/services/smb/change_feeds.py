"""The changes of the shares that clients of this process watch, from their feeds to the watches.

While a share has watches here, a task reads its feed when it is notified of changes, and each second, since
notifications may be lost.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from weakref import WeakSet

from kyanite.engine.api import Engine, EngineClosed, EngineError, Snapshot, Transaction
from kyanite.model.files.opens import handles, watches
from kyanite.model.files.share import ShareKey
from kyanite.model.files.tree import Tree
from kyanite.services.smb.watch import Watch
from kyanite.slices import Sliced, in_slices
from kyanite.wire.smb2.status import Status

_AGAIN_SECONDS = 1.0
_REPORTS_PER_SLICE = 50
"""Each may answer a client."""


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
        self._lock = asyncio.Lock()
        """Changes are reported in their order, a few in each slice."""

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

        async with self._lock:
            await in_slices(self._deliver(await self.engine.read(body)))

    def _deliver(self, changes: watches.Changes) -> Sliced[None]:
        oldest = changes.items[0].number if changes.items else changes.next_number
        if changes.has_gap and oldest > self._number:
            for number, watch in enumerate(self._watches(), 1):
                if watch.first_number < oldest:
                    watch.lose_changes()
                if not number % _REPORTS_PER_SLICE:
                    yield
        yield from self._report(changes.items)
        self._number = changes.next_number
        if changes.ended_at is not None:
            for watch in self._watches():
                if watch.first_number <= changes.ended_at:
                    watch.end_calls(Status.NOTIFY_CLEANUP)
                    self._by_directory[watch.directory_id].discard(watch)

    def _report(self, changes: Sequence[watches.Change]) -> Sliced[None]:
        reports = 0
        for change in changes:
            for watch in self._watches(change.above):
                watch.report(change)
                reports += 1
                if not reports % _REPORTS_PER_SLICE:
                    yield
            self._number = change.number + 1

    def _has_watches(self) -> bool:
        for directory_id in [each for each, found in self._by_directory.items() if not found]:
            del self._by_directory[directory_id]
        return bool(self._by_directory)

    def _watches(self, directories: Sequence[int] = ()) -> list[Watch]:
        """Of these directories, or all."""
        sets = map(self._by_directory.get, directories) if directories else self._by_directory.values()
        return [watch for found in sets if found for watch in found]
