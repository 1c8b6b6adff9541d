"""Notifications within one process: the subscribers of each topic."""

import asyncio
from collections.abc import Iterable
from weakref import WeakSet

from kyanite.engine.api import EngineClosed


class Subscriber:
    """One subscription. It ends when it is dropped, when ``aclose`` is called, or when the engine is closed."""

    __slots__ = ("__weakref__", "_closed", "_loop", "_waiter", "is_notified")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.is_notified = False
        self._closed = False
        self._waiter: asyncio.Future[None] | None = None

    def __aiter__(self) -> "Subscriber":
        return self

    async def __anext__(self) -> None:
        if not self.is_notified and not self._closed:
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        if self._closed:
            raise StopAsyncIteration
        self.is_notified = False

    async def aclose(self) -> None:
        self.close()

    def close(self) -> None:
        self._closed = True
        self._wake()

    def notify(self) -> None:
        self.is_notified = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Notifications:
    def __init__(self) -> None:
        self._subscribers: dict[bytes, WeakSet[Subscriber]] = {}
        self._clean_up_beyond = 64
        self._closed = False

    def subscribe(self, topic: bytes) -> Subscriber:
        if self._closed:
            raise EngineClosed("the engine was closed")
        if len(self._subscribers) > self._clean_up_beyond:
            self._drop_unused_topics()
        subscriber = Subscriber(asyncio.get_running_loop())
        self._subscribers.setdefault(topic, WeakSet()).add(subscriber)
        return subscriber

    def notify(self, topics: Iterable[bytes]) -> None:
        for topic in topics:
            for subscriber in tuple(self._subscribers.get(topic, ())):
                subscriber.notify()

    def notify_all(self) -> None:
        """The subscribers of every topic: some notifications may have been lost."""
        self.notify(tuple(self._subscribers))

    def close(self) -> None:
        self._closed = True
        for subscribers in self._subscribers.values():
            for subscriber in tuple(subscribers):
                subscriber.close()
        self._subscribers.clear()

    def _drop_unused_topics(self) -> None:
        """Topics are as many as files and queues, so those without a subscriber must not stay."""
        for topic in [topic for topic, subscribers in self._subscribers.items() if not subscribers]:
            del self._subscribers[topic]
        self._clean_up_beyond = 64 + 2 * len(self._subscribers)
