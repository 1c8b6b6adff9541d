"""Notifications through LISTEN and NOTIFY: one for each batch, with the topics of all its transactions.

While the connection that receives them is lost, some may be lost with it. So all subscribers are notified when it is
there again, and once a second until then.
"""

import asyncio
import logging
from base64 import b64decode, b64encode
from collections.abc import Iterable
from contextlib import suppress

import asyncpg

from kyanite.engine.api import EngineError
from kyanite.engine.notifications import Notifications, Subscriber
from kyanite.engine.postgres.connections import Connection, Connections
from kyanite.engine.postgres.errors import LOST, ConnectionLost

_PAYLOAD_BYTES_MAX = 7_900
_POLL_SECONDS = 1.0
_CHECK_SECONDS = 5.0
_EVERYTHING = "*"
_log = logging.getLogger("kyanite.engine")


class DatabaseNotifications:
    def __init__(self, connections: Connections, channel: str, sender: str) -> None:
        self._connections = connections
        self.channel = channel
        self._sender = sender
        self._local = Notifications()
        self._task: asyncio.Task[None] | None = None

    def subscribe(self, topic: bytes) -> Subscriber:
        subscriber = self._local.subscribe(topic)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._receive())
        return subscriber

    def payloads(self, topics: Iterable[bytes]) -> list[str]:
        """What a commit sends to the other processes."""
        payloads: list[str] = []
        text = ""
        for topic in dict.fromkeys(topics):
            word = b64encode(topic).decode()
            if len(word) > _PAYLOAD_BYTES_MAX - 64:
                return [f"{self._sender},{_EVERYTHING}"]
            if not text or len(text) + len(word) > _PAYLOAD_BYTES_MAX:
                payloads += [text] if text else []
                text = self._sender
            text += f",{word}"
        return [*payloads, text] if text else payloads

    def notify(self, topics: Iterable[bytes]) -> None:
        """The subscribers of this process."""
        self._local.notify(topics)

    async def _receive(self) -> None:
        while True:
            connection = None
            try:
                connection = await self._connections.connect()
                await self._receive_on(connection)
            except (EngineError, ConnectionLost, asyncpg.PostgresError, *LOST) as error:
                _log.warning("notifications of the database are interrupted: %s", error)
            finally:
                if connection is not None:
                    self._connections.drop(connection)
            self._local.notify_all()
            await asyncio.sleep(_POLL_SECONDS)

    async def _receive_on(self, connection: Connection) -> None:
        await asyncio.wait_for(connection.driver.add_listener(self.channel, self._on_payload), _CHECK_SECONDS)
        self._local.notify_all()
        lost = asyncio.Event()
        connection.driver.add_termination_listener(lambda _driver: lost.set())
        while not lost.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(lost.wait(), _CHECK_SECONDS)
            if not lost.is_set():
                await connection.call("SELECT 1")

    def _on_payload(self, _driver: object, _pid: int, _channel: str, payload: object) -> None:
        sender, *words = str(payload).split(",")
        if sender == self._sender:
            return  # Its own subscribers were notified by the commit.
        if _EVERYTHING in words:
            self._local.notify_all()
        else:
            self._local.notify([b64decode(word) for word in words])

    async def close(self) -> None:
        self._local.close()
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
