"""The segments of this process that bytes are on their way into, or that it has handed extents out of.

A segment is let go when no stretch of it is being written and every extent handed out of it was settled or
discarded. Only from then on may another process remove it.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from kyanite.extents.api import Extent
from kyanite.extents.local.file_system import Disk
from kyanite.extents.local.segment import Segment


class OpenSegments:
    def __init__(
        self, owner: bytes, path_of: Callable[[bytes], Path], disk: Disk, threads: ThreadPoolExecutor
    ) -> None:
        self._owner = owner
        self._path_of = path_of
        self._disk = disk
        self._threads = threads
        self._count = 0
        self._segments: dict[bytes, Segment] = {}
        self._busy: set[asyncio.Future[None]] = set()

    def new_segment(self) -> Segment:
        self._count += 1
        segment_id = self._owner + self._count.to_bytes(4, "big")
        segment = Segment(segment_id, self._path_of(segment_id), self._disk)
        self._segments[segment_id] = segment
        return segment

    def retire(self, segment: Segment) -> "asyncio.Future[None] | None":
        """Let go of the segment if it has become idle."""
        if not segment.is_idle or self._segments.pop(segment.id, None) is None:
            return None
        return self._run(segment.sealed)

    def commit(self, extents: Sequence[Extent]) -> None:
        for extent in extents:
            segment = self._segments[extent.segment]
            segment.commit()
            self.retire(segment)

    def discard(self, extents: Sequence[Extent]) -> "list[asyncio.Future[None]]":
        jobs = []
        for extent in extents:
            segment = self._segments[extent.segment]
            segment.discard()
            punch = partial(segment.punch, extent.start, extent.length)
            jobs.append(self.retire(segment) or self._run(punch))
        return jobs

    def orphaned(self, extent: Extent) -> None:
        self.discard([extent])

    async def close(self) -> None:
        if self._busy:
            await asyncio.wait(self._busy)

    def _run(self, job: Callable[[], None]) -> "asyncio.Future[None]":
        future = asyncio.get_running_loop().run_in_executor(self._threads, job)
        self._busy.add(future)
        future.add_done_callback(self._busy.discard)
        return future
