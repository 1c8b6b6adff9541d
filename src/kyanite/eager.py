"""Run a coroutine immediately, and make a task of it only if it has to wait.

Most requests are answered without waiting for anything, and a task costs more than the rest of such a
request. Up to its first wait the coroutine runs outside any task: ``asyncio.current_task`` and what builds on
it (``timeout``, ``TaskGroup``) work from then on.
"""

import asyncio
from collections.abc import Coroutine, Generator
from types import coroutine
from typing import Any


def start(work: Coroutine[Any, Any, None], loop: asyncio.AbstractEventLoop) -> asyncio.Task[None] | None:
    """Run up to the first wait. None when that was all; errors of this part are raised here."""
    try:
        awaited = work.send(None)
    except (StopIteration, asyncio.CancelledError):
        return None
    rest = _rest_of(work, awaited)
    # A task that is cancelled before its first step throws into a coroutine that has not begun, and the work
    # inside would not get the exception. So the coroutine is advanced to its first line here.
    rest.send(None)
    return loop.create_task(rest)


async def _rest_of(work: Coroutine[Any, Any, None], awaited: Any) -> None:
    await _begun(work, awaited)


@coroutine
def _begun(work: Coroutine[Any, Any, None], awaited: Any) -> Generator[Any, Any, None]:
    try:
        yield
        yield awaited
    except BaseException as error:
        yield from _thrown(work, error)
    else:
        yield from work.__await__()


def _thrown(work: Coroutine[Any, Any, None], error: BaseException) -> Generator[Any, Any, None]:
    """Throw the error into the first wait of the work, and run what it does next."""
    try:
        awaited = work.throw(error)
    except StopIteration:
        return
    finally:
        del error  # A frame that holds the error that passes through it is garbage for the collector.
    try:
        yield awaited
    except BaseException as next_error:
        yield from _thrown(work, next_error)
    else:
        yield from work.__await__()
