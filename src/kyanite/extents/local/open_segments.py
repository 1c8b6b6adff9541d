"""The segments of this process that are still written, or have extents that are neither committed nor discarded.

A segment is sealed when no stretch of it is being written and every extent of it was committed or discarded. Only then
may another process remove it.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from kyanite.extents.api import Extent
from kyanite.extents.local.file_system import FileSystem
from kyanite.extents.local.segment import Segment


class OpenSegments:
    def __init__(
        self,
        owner: bytes,
        path_of: Callable[[bytes], Path],
        file_system: FileSystem,
        threads: ThreadPoolExecutor,
    ) -> None:
        self._owner = owner
        self._path_of = path_of
        self._file_system = file_system
        self._threads = threads
        self._count = 0
        self._segments: dict[bytes, Segment] = {}
        self._busy: set[asyncio.Future[None]] = set()

    def new_segment(self) -> Segment:
        self._count += 1
        segment_id = self._owner + self._count.to_bytes(4, "big")
        segment = Segment(segment_id, self._path_of(segment_id), self._file_system)
        self._segments[segment_id] = segment
        return segment

    def retire(self, segment: Segment) -> "asyncio.Future[None] | None":
        """Seal the segment if it has become idle."""
        if not segment.is_idle or self._segments.pop(segment.id, None) is None:
            return None
        return self._run(segment.seal)

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
