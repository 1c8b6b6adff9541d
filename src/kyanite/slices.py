"""Long work on the event loop, in slices.

All connections of a process share one event loop, so nobody is served while one piece of work runs. Work that may take
more than a millisecond is therefore cut into slices. In each iteration of the loop runs at most one slice, whoever it
belongs to, in the order in which they were requested. Between two slices the loop serves everything that is ready: it
accepts connections, reads requests and answers those that need no slices.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")
R = TypeVar("R")

Sliced = Generator[None, None, T]
"""Work that yields at the end of each slice and returns its result."""

ITEMS_PER_SLICE: Final = 125
"""How many items of a list are decoded or written in a slice: about half a millisecond's work."""


_FREED_PER_SLICE: Final = 2_500

_SLICES_PER_READ: Final = 16
"""Reading a row takes less time than writing it into a response. If both had as many slices, many clients could have
the rows of all their requests in memory at the same time."""


class LoopSlices:
    """The work of one loop that waits for its next slice."""

    __slots__ = ("_futures", "_has_begun", "_is_scheduled", "_reads", "_since_read", "long_count")

    def __init__(self) -> None:
        self.long_count = 0
        """How often work has waited for a slice that is not its first."""
        self._futures: deque[asyncio.Future[None]] = deque()
        self._reads: deque[asyncio.Future[None]] = deque()
        self._since_read = 0
        """How many slices of other work have run since one that reads."""
        self._is_scheduled = False
        self._has_begun = False
        """Whether a slice was begun in this iteration without waiting."""

    def take(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Begin a slice now, unless another one has or waits."""
        if self._has_begun or self._futures or self._reads:
            return False
        self._has_begun = True
        loop.call_soon(self._end_iteration)
        return True

    def _end_iteration(self) -> None:
        self._has_begun = False

    def add(self, loop: asyncio.AbstractEventLoop, *, reads: bool = False) -> "asyncio.Future[None]":
        future = loop.create_future()
        (self._reads if reads else self._futures).append(future)
        if not self._is_scheduled:
            self._is_scheduled = True
            loop.call_soon(self._release, loop)
        return future

    def _release(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let the first one run in the next iteration of the loop."""
        while (future := self._next()) is not None:
            if not future.done():
                future.set_result(None)
                break
        if self._futures or self._reads:
            loop.call_soon(self._release, loop)
        else:
            self._is_scheduled = False

    def _next(self) -> "asyncio.Future[None] | None":
        if self._reads and (not self._futures or self._since_read >= _SLICES_PER_READ):
            self._since_read = 0
            return self._reads.popleft()
        self._since_read += 1
        return self._futures.popleft() if self._futures else None


_slices: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, LoopSlices]] = WeakKeyDictionary()


def next_slice() -> "asyncio.Future[None]":
    """Await this before every slice but the first."""
    loop = asyncio.get_running_loop()
    slices = slices_of(loop)
    slices.long_count += 1
    return slices.add(loop)


def next_read() -> "asyncio.Future[None]":
    """The same for slices that read what other slices then work on. They wait for those, but not for ever."""
    loop = asyncio.get_running_loop()
    slices = slices_of(loop)
    slices.long_count += 1
    return slices.add(loop, reads=True)


async def first_slice() -> None:
    """Await this before a slice that clients can request very often. It waits only if another slice has begun in the
    same iteration of the loop."""
    loop = asyncio.get_running_loop()
    slices = slices_of(loop)
    if not slices.take(loop):
        await slices.add(loop)


def slices_of(loop: asyncio.AbstractEventLoop) -> LoopSlices:
    slices = _slices.get(loop)
    if slices is None:
        slices = _slices[loop] = LoopSlices()
    return slices


async def in_slices(work: Sliced[T]) -> T:
    """Run the work to its end. Its first slice runs immediately, so short work does not wait."""
    try:
        while True:
            next(work)
            await next_slice()
    except StopIteration as ended:
        result: T = ended.value
        return result
    finally:
        work.close()


async def mapped(items: Sequence[T], function: Callable[[T], R]) -> list[R]:
    """What the function makes of the items, of some of them in each slice."""
    if len(items) <= ITEMS_PER_SLICE:
        return list(map(function, items))
    return await in_slices(_mapped(items, function))


def _mapped(items: Sequence[T], function: Callable[[T], R]) -> Sliced[list[R]]:
    found: list[R] = []
    for first in range(0, len(items), ITEMS_PER_SLICE):
        found += map(function, items[first : first + ITEMS_PER_SLICE])
        yield
    return found


async def encoded(
    items: Sequence[T], write: Callable[[T], str], per_slice: int = ITEMS_PER_SLICE
) -> list[bytes]:
    """The text of all items in UTF-8, a piece for each slice: a document is joined from them once."""
    if len(items) <= per_slice:
        return ["".join(map(write, items)).encode()]
    return await in_slices(_encoded(items, write, per_slice))


def _encoded(items: Sequence[T], write: Callable[[T], str], per_slice: int) -> Sliced[list[bytes]]:
    pieces: list[bytes] = []
    for first in range(0, len(items), per_slice):
        pieces.append("".join(map(write, items[first : first + per_slice])).encode())
        yield
    return pieces


async def emptied(items: list[Any]) -> None:
    """Let go of a long list in slices: to free a hundred thousand objects takes milliseconds."""
    await in_slices(emptying(items))


def emptying(items: list[Any]) -> Sliced[None]:
    while len(items) > _FREED_PER_SLICE:
        del items[-_FREED_PER_SLICE:]
        yield


async def in_thread(function: Callable[[T], R], argument: T) -> R:
    """Run plain Python code that cannot be cut into slices. The interpreter lets the loop run every few milliseconds.

    There is one thread for all such work, because more of them would take more of the loop's time.
    """
    return await asyncio.get_running_loop().run_in_executor(_one_thread, function, argument)


_one_thread: Final = ThreadPoolExecutor(1, thread_name_prefix="kyanite-long-work")
