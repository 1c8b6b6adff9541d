"""Run a coroutine immediately, and make a task of it only if it has to wait.

Most requests are answered without waiting for anything, and a task costs more than the rest of such a
request. Up to its first wait the coroutine runs outside any task: ``asyncio.current_task`` and what builds on
it (``timeout``, ``TaskGroup``) work from then on.
"""

import asyncio
from collections.abc import Coroutine, Iterator
from typing import Any, Final, cast

_ENDED: Final = object()


def start(work: Coroutine[Any, Any, None], loop: asyncio.AbstractEventLoop) -> asyncio.Task[None] | None:
    """Run up to the first wait. None when that was all; errors of this part are raised here."""
    steps: Iterator[Any] = work.__await__()
    try:
        # Not by send: that says by an exception that the work has ended, which costs more than all else here.
        awaited = next(steps, _ENDED)
    except asyncio.CancelledError:
        return None
    if awaited is _ENDED:
        return None
    return loop.create_task(cast(Coroutine[Any, Any, None], _Rest(work, steps, awaited)))


class _Rest:
    """The coroutine of the task: work that has begun. Its first step is the wait at which the work is already.

    It is a coroutine by its methods. One that awaits the work would have to be begun itself, since what is thrown into
    a coroutine that has not begun, as by a cancellation before the first step of the task, never reaches the work.
    """

    __slots__ = ("_awaited", "_is_at_first_wait", "_steps", "_work")

    def __init__(self, work: Coroutine[Any, Any, None], steps: Iterator[Any], awaited: Any) -> None:
        self._work = work
        self._steps = steps
        self._awaited = awaited
        self._is_at_first_wait = True

    def __await__(self) -> "_Rest":
        return self

    def __iter__(self) -> "_Rest":
        return self

    def __next__(self) -> Any:
        if self._is_at_first_wait:
            self._is_at_first_wait = False
            awaited, self._awaited = self._awaited, None
            return awaited
        return next(self._steps)

    def send(self, value: None) -> Any:
        """Tasks send nothing but None."""
        return next(self)

    def throw(self, error: BaseException) -> Any:
        self._is_at_first_wait = False
        self._awaited = None
        try:
            return self._work.throw(error)
        finally:
            del error  # A frame that holds the error that passes through it is garbage for the collector.

    def close(self) -> None:
        self._work.close()
