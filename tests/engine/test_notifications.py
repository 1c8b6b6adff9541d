"""Subscriptions begin and end. What notifications do is in the engine's suite."""

import asyncio
import gc

import pytest

from kyanite.engine.api import EngineClosed
from kyanite.engine.notifications import Notifications


async def test_topics_without_subscribers_take_no_memory() -> None:
    notifications = Notifications()
    kept = [notifications.subscribe(b"kept %d" % number) for number in range(10)]
    for number in range(5000):
        notifications.subscribe(b"dropped %d" % number)
    gc.collect()
    assert len(notifications._subscribers) < 500
    notifications.notify([b"kept %d" % number for number in range(10)])
    for subscriber in kept:
        await asyncio.wait_for(anext(subscriber), 10)


async def test_a_subscriber_whose_wait_was_cancelled_can_wait_again() -> None:
    notifications = Notifications()
    subscriber = notifications.subscribe(b"topic")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(subscriber), 0.001)
    notifications.notify([b"topic"])
    await asyncio.wait_for(anext(subscriber), 10)


async def test_a_closed_subscription_is_at_its_end() -> None:
    notifications = Notifications()
    subscriber = notifications.subscribe(b"topic")
    await subscriber.aclose()
    assert [item async for item in subscriber] == []


async def test_after_closing_there_are_no_new_subscriptions() -> None:
    notifications = Notifications()
    notifications.close()
    with pytest.raises(EngineClosed):
        notifications.subscribe(b"topic")
