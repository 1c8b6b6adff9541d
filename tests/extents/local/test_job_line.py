"""A line of jobs: in order, one at a time, and who waits learns what failed."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from kyanite.engine.api import EngineClosed, EngineFull
from kyanite.extents.local.job_line import JobLine


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    pool = ThreadPoolExecutor(4)
    yield pool
    pool.shutdown()


def wait_for(event: threading.Event) -> Callable[[], None]:
    def job() -> None:
        assert event.wait(10)

    return job


async def test_jobs_run_in_order_and_one_at_a_time(threads: ThreadPoolExecutor) -> None:
    line, done = JobLine(threads), list[int]()
    running = threading.Semaphore(1)

    def job(number: int) -> None:
        assert running.acquire(blocking=False), "two jobs run at the same time"
        done.append(number)
        running.release()

    for number in range(200):
        line.add(partial(job, number))
    await line.wait()
    assert done == list(range(200))


async def test_waiting_until_few_are_left(threads: ThreadPoolExecutor) -> None:
    line, released = JobLine(threads), [threading.Event() for _ in range(3)]
    for event in released:
        line.add(wait_for(event))
    waiting = asyncio.ensure_future(line.wait(2))
    await asyncio.sleep(0)
    assert not waiting.done()
    released[0].set()
    await waiting
    released[1].set()
    await line.wait(1)
    released[2].set()
    await line.wait()


async def test_after_an_error_no_job_runs(threads: ThreadPoolExecutor) -> None:
    line, ran = JobLine(threads), list[str]()

    def fail() -> None:
        raise OSError(28, "no space left")

    line.add(fail)
    line.add(lambda: ran.append("second"))
    for _ in range(2):
        with pytest.raises(EngineFull):
            await line.wait()
    assert ran == []


async def test_a_cancelled_task_stops_no_job(threads: ThreadPoolExecutor) -> None:
    line, released, ran = JobLine(threads), threading.Event(), list[str]()
    line.add(wait_for(released))
    line.add(lambda: ran.append("second"))
    waiting = asyncio.ensure_future(line.wait())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    released.set()
    await line.wait()
    assert ran == ["second"]


async def test_who_waits_when_the_pool_is_shut_down_gets_an_error(threads: ThreadPoolExecutor) -> None:
    line, released = JobLine(threads), threading.Event()
    line.add(wait_for(released))
    line.add(lambda: None)
    waiting = asyncio.ensure_future(line.wait())
    await asyncio.sleep(0)
    threads.shutdown(wait=False)
    released.set()
    with pytest.raises(EngineClosed):
        await waiting


class PausedLock:
    """A lock. Whenever it is released, ``then`` is called once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.then: Callable[[], None] | None = None

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
        if (then := self.then) is not None:
            self.then = None
            then()


class ListedPool:
    """Threads that begin when the test says so."""

    def __init__(self) -> None:
        self.submitted: list[Callable[[], None]] = []

    def submit(self, function: Callable[[], None]) -> None:
        self.submitted.append(function)


async def test_a_job_that_is_added_when_the_last_one_ends_runs_once() -> None:
    pool, lock, ran = ListedPool(), PausedLock(), list[str]()
    line = JobLine(pool)  # type: ignore[arg-type]
    line._lock = lock  # type: ignore[assignment]
    line.add(lambda: ran.append("first"))
    lock.then = lambda: line.add(lambda: ran.append("second"))
    for begun in pool.submitted:  # It grows.
        begun()
    assert ran == ["first", "second"]
    await line.wait()
