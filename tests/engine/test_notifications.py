"""Listeners come and go. What rings do is in the engine's suite."""

import asyncio
import gc

import pytest

from kyanite.engine.api import EngineClosed
from kyanite.engine.notifications import Notifications


async def test_topics_that_nobody_listens_to_any_more_take_no_memory() -> None:
    bell = Notifications()
    kept = [bell.subscribe(b"kept %d" % number) for number in range(10)]
    for number in range(5000):
        bell.subscribe(b"dropped %d" % number)
    gc.collect()
    assert len(bell._subscribers) < 500
    bell.notify([b"kept %d" % number for number in range(10)])
    for listener in kept:
        await asyncio.wait_for(anext(listener), 10)


async def test_a_listener_that_was_given_up_while_waiting_can_wait_again() -> None:
    bell = Notifications()
    listener = bell.subscribe(b"topic")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(listener), 0.001)
    bell.notify([b"topic"])
    await asyncio.wait_for(anext(listener), 10)


async def test_a_closed_listener_is_at_its_end() -> None:
    bell = Notifications()
    listener = bell.subscribe(b"topic")
    await listener.aclose()
    assert [notify async for notify in listener] == []


async def test_a_closed_bell_takes_no_listeners() -> None:
    bell = Notifications()
    bell.close()
    with pytest.raises(EngineClosed):
        bell.subscribe(b"topic")
