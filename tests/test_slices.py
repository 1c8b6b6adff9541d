"""Slices: one in each iteration of the loop, in turn, and everything else in between."""

import asyncio
from collections.abc import Callable

import pytest
import uvloop

from kyanite.slices import (
    ITEMS_PER_SLICE,
    Sliced,
    encoded,
    first_slice,
    in_slices,
    in_thread,
    mapped,
    next_slice,
)

LOOPS: list[Callable[[], asyncio.AbstractEventLoop]] = [asyncio.new_event_loop, uvloop.new_event_loop]


def counting(name: str, order: list[str], slices: int) -> Sliced[str]:
    for number in range(slices):
        order.append(f"{name}{number}")
        yield
    return name


@pytest.mark.parametrize("loop_of", LOOPS)
def test_work_takes_its_slices_in_order_and_one_runs_in_an_iteration(
    loop_of: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    order: list[str] = []

    async def main() -> list[str]:
        loop = asyncio.get_running_loop()
        works = asyncio.gather(*(in_slices(counting(name, order, 4)) for name in "abc"))
        await asyncio.sleep(0)

        def tick() -> None:
            order.append("|")
            if not works.done():
                loop.call_soon(tick)

        tick()
        return list(await works)

    with asyncio.Runner(loop_factory=loop_of) as runner:
        assert runner.run(main()) == ["a", "b", "c"]
    assert [each for each in order if each != "|"] == [f"{name}{n}" for n in range(4) for name in "abc"]
    later = "".join(order).partition("|")[2]
    assert all(len(part) <= 2 for part in later.split("|"))


async def test_short_work_does_not_wait() -> None:
    order: list[str] = []
    work = in_slices(counting("a", order, 0))
    with pytest.raises(StopIteration) as ended:
        work.send(None)
    assert ended.value.value == "a"


async def test_connections_are_accepted_between_slices() -> None:
    """A client connects and is answered while there is more work than ends before that."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.read(10))
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    endless = [asyncio.create_task(in_slices(counting(name, [], 10**9))) for name in "abc"]
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(b"hello")
    assert await reader.read(10) == b"hello"
    writer.close()
    for task in endless:
        assert not task.done()
        task.cancel()
    server.close()


async def test_cancelled_work_does_not_delay_others() -> None:
    order: list[str] = []
    one, two = (asyncio.create_task(in_slices(counting(name, order, 1000))) for name in "ab")
    await asyncio.sleep(0)
    one.cancel()
    assert await two == "b"
    assert one.cancelled()


async def test_items_are_used_some_at_a_time() -> None:
    items = list(range(3 * ITEMS_PER_SLICE + 1))
    pieces = await encoded(items, str)
    assert b"".join(pieces).decode() == "".join(map(str, items))
    assert len(pieces) == 4
    assert await encoded([], str) == [b""]
    assert await mapped(items[:5], str) == list("01234")
    waits = 0

    async def count() -> None:
        nonlocal waits
        while True:
            await next_slice()
            waits += 1

    counter = asyncio.create_task(count())
    await mapped(items, str)
    counter.cancel()
    assert waits >= 3


async def test_what_cannot_be_cut_runs_in_a_thread() -> None:
    assert await in_thread(str, 5) == "5"
    with pytest.raises(ValueError, match="invalid literal"):
        await in_thread(int, "x")


@pytest.mark.parametrize("loop_of", LOOPS)
def test_only_one_first_slice_begins_in_an_iteration(
    loop_of: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    order: list[str] = []

    async def work(name: str) -> None:
        await first_slice()
        order.append(name)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        works = asyncio.gather(*map(work, "abcd"))

        def tick() -> None:
            order.append("|")
            if not works.done():
                loop.call_soon(tick)

        loop.call_soon(tick)
        await works

    with asyncio.Runner(loop_factory=loop_of) as runner:
        runner.run(main())
    text = "".join(order)
    assert text.replace("|", "") == "abcd"
    assert all(len(part) <= 1 for part in text.split("|"))
