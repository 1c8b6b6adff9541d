"""A coroutine that is run at once and made a task of only when it waits."""

import asyncio
import gc
from collections.abc import Callable, Coroutine

import pytest

from kyanite import eager


class Steps:
    """What a piece of work has done so far."""

    def __init__(self) -> None:
        self.done: list[str] = []

    async def without_waiting(self) -> None:
        self.done.append("all")

    async def waiting_for(self, future: "asyncio.Future[str]") -> None:
        self.done.append("first")
        self.done.append(await future)
        await asyncio.sleep(0)
        async with asyncio.timeout(1):
            self.done.append("in a task" if asyncio.current_task() else "in none")

    async def clinging_to(self, future: "asyncio.Future[str]") -> None:
        """Waits, cleans up when cancelled, and takes its time over it."""
        try:
            self.done.append(await future)
        except asyncio.CancelledError:
            self.done.append("cancelled")
            try:
                await asyncio.sleep(10)
            except asyncio.CancelledError:
                self.done.append("cancelled again")
                await asyncio.sleep(0)
                self.done.append("cleaned up")
                raise

    async def shrugging_off(self, future: "asyncio.Future[str]") -> None:
        try:
            await future
        except asyncio.CancelledError:
            self.done.append("what of it")


async def test_work_that_does_not_wait_needs_no_task() -> None:
    steps = Steps()
    assert eager.start(steps.without_waiting(), asyncio.get_running_loop()) is None
    assert steps.done == ["all"]


async def test_an_error_before_the_first_wait_is_raised_at_once() -> None:
    async def fail() -> None:
        raise LookupError("at once")

    with pytest.raises(LookupError, match="at once"):
        eager.start(fail(), asyncio.get_running_loop())


async def test_work_goes_on_in_a_task() -> None:
    loop, steps = asyncio.get_running_loop(), Steps()
    future: asyncio.Future[str] = loop.create_future()
    task = eager.start(steps.waiting_for(future), loop)
    assert task is not None
    assert steps.done == ["first"]
    await asyncio.sleep(0.01)
    assert steps.done == ["first"], "it waits for what it waited for before it was a task"
    future.set_result("second")
    await task
    assert steps.done == ["first", "second", "in a task"]


async def test_what_was_waited_for_may_come_before_the_task_begins() -> None:
    loop, steps = asyncio.get_running_loop(), Steps()
    future: asyncio.Future[str] = loop.create_future()
    task = eager.start(steps.waiting_for(future), loop)
    future.set_result("second")
    assert task is not None
    await task
    assert steps.done == ["first", "second", "in a task"]


async def test_a_bare_yield_is_a_wait() -> None:
    done: list[str] = []

    async def pause() -> None:
        await asyncio.sleep(0)
        done.append("after")

    task = eager.start(pause(), asyncio.get_running_loop())
    assert task is not None
    assert done == []
    await task
    assert done == ["after"]


async def test_an_error_of_what_is_waited_for_reaches_the_work() -> None:
    loop, steps = asyncio.get_running_loop(), Steps()
    future: asyncio.Future[str] = loop.create_future()
    task = eager.start(steps.waiting_for(future), loop)
    assert task is not None
    future.set_exception(LookupError("later"))
    with pytest.raises(LookupError, match="later"):
        await task


async def cancelled_after(
    iterations: int, work: "Callable[[asyncio.Future[str]], Coroutine[object, object, None]]"
) -> "asyncio.Task[None]":
    """A task that waits for what never comes, cancelled after so many iterations of the loop."""
    loop = asyncio.get_running_loop()
    task = eager.start(work(loop.create_future()), loop)
    assert task is not None
    for _ in range(iterations):
        await asyncio.sleep(0)
    task.cancel()
    return task


@pytest.mark.parametrize("iterations_before", [0, 1, 3])
async def test_cancelled_at_any_time(iterations_before: int) -> None:
    """Even before the task has taken its first step."""
    steps = Steps()
    task = await cancelled_after(iterations_before, steps.clinging_to)
    await asyncio.sleep(0.01)
    assert steps.done == ["cancelled"]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert steps.done == ["cancelled", "cancelled again", "cleaned up"]


@pytest.mark.parametrize("iterations_before", [0, 1])
async def test_cancelled_in_vain(iterations_before: int) -> None:
    steps = Steps()
    task = await cancelled_after(iterations_before, steps.shrugging_off)
    await task
    assert steps.done == ["what of it"]


async def test_a_cancelled_task_leaves_no_work_for_the_collector() -> None:
    class Witness:
        pass

    async def refer_to(witness: Witness) -> None:
        await asyncio.get_running_loop().create_future()

    gc.collect()
    gc.disable()
    try:
        task = eager.start(refer_to(Witness()), asyncio.get_running_loop())
        assert task is not None
        task.cancel()
        await asyncio.wait([task])
        del task
        await asyncio.sleep(0)
        assert not any(isinstance(thing, Witness) for thing in gc.get_objects())
    finally:
        gc.enable()
