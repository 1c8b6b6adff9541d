"""What the event loop talks to in place of a connection while a long body is received into the buffers of its reader.

The loop asks a protocol that has ``get_buffer`` where the next bytes belong, and has the kernel write them there. For
short requests the other kind of protocol is faster, so a connection is of that kind and uses this one for a while.
"""

import asyncio
from typing import Protocol

from kyanite.server.http.request_body import DirectBody


class Receiving(Protocol):
    """What this uses of the connection."""

    def received_directly(self, body: DirectBody, count: int) -> None: ...

    def eof_received(self) -> bool: ...

    def connection_lost(self, exc: Exception | None) -> None: ...

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...


class DirectReceiver(asyncio.BufferedProtocol):
    """Nothing but the transport refers to it, so that there is no cycle."""

    __slots__ = ("_body", "_connection")

    def __init__(self, connection: Receiving, body: DirectBody) -> None:
        self._connection = connection
        self._body = body

    def get_buffer(self, _sizehint: int) -> memoryview:
        return self._body.room()

    def buffer_updated(self, count: int) -> None:
        self._connection.received_directly(self._body, count)

    def eof_received(self) -> bool:
        return self._connection.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connection.connection_lost(exc)

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()
