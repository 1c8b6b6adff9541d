"""A line of jobs: they run one after the other in the threads of a pool, while more of them are added.

The next job begins without the event loop, which may be busy. A thread goes back to the pool after each job, so that
lines take turns when there are more of them than threads.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

from kyanite.engine.api import EngineClosed, EngineError
from kyanite.extents.local.file_system import failure

Job = Callable[[], None]


class JobLine:
    """Jobs are added, and waited for, on the event loop by one task. After an error no further job runs."""

    __slots__ = ("_error", "_jobs", "_left_max", "_lock", "_loop", "_threads", "_waiter")

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self._threads = threads
        self._loop = asyncio.get_running_loop()
        self._lock = Lock()
        self._jobs: deque[Job] = deque()
        """The first one is running, or about to."""
        self._error: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._left_max = 0
        """How many jobs may be left when the waiter goes on."""

    def add(self, job: Job) -> None:
        with self._lock:
            self._jobs.append(job)
            is_first = len(self._jobs) == 1
        if is_first:
            self._submit()

    async def wait(self, left: int = 0) -> None:
        """Wait until at most so many jobs are left. Raises the error of the first one that failed.

        Cancelling the waiting task stops no job.
        """
        while True:
            with self._lock:
                if len(self._jobs) <= left:
                    break
                waiter = self._waiter = self._loop.create_future()
                self._left_max = left
            await waiter
        if self._error is not None:
            raise failure(self._error) if isinstance(self._error, OSError | EngineError) else self._error

    def _run_first(self) -> None:
        try:
            if self._error is None:
                self._jobs[0]()
        except Exception as error:
            self._error = error
        with self._lock:
            self._jobs.popleft()
            has_more = bool(self._jobs)  # Whoever adds a job to an empty line submits it.
        if has_more:
            self._submit()
        self._wake_waiter()

    def _submit(self) -> None:
        try:
            self._threads.submit(self._run_first)
        except RuntimeError:  # The pool was shut down.
            with self._lock:
                self._jobs.clear()
            self._error = EngineClosed("the store was closed")

    def _wake_waiter(self) -> None:
        with self._lock:
            waiter = self._waiter if len(self._jobs) <= self._left_max else None
            if waiter is not None:
                self._waiter = None
        if waiter is not None:
            self._loop.call_soon_threadsafe(_wake, waiter)


def _wake(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)
