"""One connection: it answers its requests one after the other, in the order in which they came.

The reader parses bytes into requests. This module decides when the reader gets more bytes, when the next handler
starts, and how the connection ends. While one request is being answered, the next is not parsed, except for what came
in the same slice, and nothing is read from the socket.

There are no timers here. The server calls ``tick``, which compares the present state with that of the last tick.
"""

import asyncio
import socket
import struct
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Final, Protocol, cast

from kyanite import eager
from kyanite.server.gathered_responses import GatheredResponses
from kyanite.server.http.direct_reception import DirectReceiver
from kyanite.server.http.limits import Limits, Stats
from kyanite.server.http.request_body import DirectBody, IncomingBody
from kyanite.server.http.request_parser import IncomingRequest, RequestReader
from kyanite.server.http.response_head import AnswerError, encode_head, has_body, is_chunked
from kyanite.server.http.response_writer import ResponseWriter
from kyanite.server.memory_budget import MemoryBudget
from kyanite.wire.http import BodyError, Handler, Piece, Request, Response, Unfinished

CLIENT_WENT_AWAY: Final = 499
"""The status, in logs and metrics, of a request whose client left before the response began."""

_COALESCED_BYTES: Final = 64 * 1024
"""A body up to this size is copied behind its head, so that both leave in one write."""

_REQUESTS_AT_ONCE: Final = 2
"""How many requests of a pipeline are answered before other connections are served."""

OnError = Callable[[Request, Exception], Response]
OnMalformed = Callable[[str, int, int, str], None]
"""The client's address, the port, the status of the response, and why the bytes are no acceptable request."""
OnCompleted = Callable[[Request, int, float, int], None]
"""Request, status, seconds, and bytes of the response, the head included."""


class Host(Protocol):
    """What a connection uses of its server."""

    handler: Handler
    limits: Limits
    stats: Stats
    budget: MemoryBudget
    on_error: OnError
    on_completed: OnCompleted | None
    on_malformed: OnMalformed | None
    stopping: bool
    gathered: GatheredResponses | None
    now_seconds: float
    """A coarse clock that is updated with each tick."""

    def opened(self, connection: "HttpConnection") -> bool:
        """Whether there is room for one more."""

    def closed(self, connection: "HttpConnection") -> None: ...


class HttpConnection:
    """A protocol of asyncio by its methods, and no subclass of ``asyncio.Protocol``: compiled, such a class is slow."""

    __deletable__ = ("_reader",)
    __slots__ = (
        "_began_bytes",
        "_began_seconds",
        "_body_paused",
        "_cleaning_up",
        "_ending",
        "_host",
        "_is_at_end",
        "_is_direct",
        "_keep_alive",
        "_lingering",
        "_local_port",
        "_loop",
        "_phase",
        "_reader",
        "_reading",
        "_received_at_seconds",
        "_request",
        "_since_seconds",
        "_stats",
        "_status",
        "_transport",
        "_unsent_bytes",
        "_writer",
        "task",
    )

    _transport: asyncio.Transport
    _reader: RequestReader
    _writer: ResponseWriter

    def __init__(self, host: Host, loop: asyncio.AbstractEventLoop, local_port: int) -> None:
        self._host = host
        self._stats = host.stats
        self._loop = loop
        self._local_port = local_port
        self._request: IncomingRequest | None = None
        self.task: asyncio.Task[None] | None = None
        """The task of the request that is being answered, if its handler had to wait."""
        self._status = 0  # Of the answer, once it has begun.
        self._keep_alive = True
        self._cleaning_up = False
        self._began_seconds = 0.0
        self._began_bytes = 0
        self._reading = True
        self._body_paused = False
        self._is_direct = False  # What comes goes into the room of the body.
        self._ending = False  # No further request will be answered.
        self._is_at_end = False  # The client sends no more, but has requests that wait for their turn.
        self._lingering = False
        self._unsent_bytes = 0
        # As of the last tick.
        self._phase = (0, False)
        self._since_seconds = host.now_seconds
        self._received_at_seconds = 0.0

    # Called by the loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        host = self._host
        self._transport = cast(asyncio.Transport, transport)
        secure = transport.get_extra_info("sslcontext") is not None
        peername = transport.get_extra_info("peername")
        peer = str(peername[0]) if isinstance(peername, tuple) else ""
        self._reader = RequestReader(
            host.limits, self, host.budget, peer=peer, secure=secure, local_port=self._local_port
        )
        self._writer = ResponseWriter(self._transport, self._loop, self._stats, host.gathered, secure=secure)
        if not host.opened(self):
            self._refuse(503, "there are too many connections")

    def data_received(self, data: bytes) -> None:
        self._stats.bytes_in += len(data)
        reader = self._reader
        if self._ending:
            self._received_at_seconds = self._host.now_seconds
            return
        if self._request is not None and reader.body is None:
            reader.keep(data)
        else:
            reader.feed(data)
            if self._request is None:
                self._advance()
        if reader.rest and not self._ending:
            self._pause_reading()

    def eof_received(self) -> bool:
        """The client sends no more. If a response has begun, it is sent to its end, and what waits for its turn is
        answered: requests, and bytes that are not parsed yet or cannot be.

        Before that, a client that closed only its sending side looks like one that left, and is treated as such.
        """
        if self._ending:
            return False
        self._writer.flush()
        reader = self._reader
        if self._request is None:
            self._is_at_end = bool(reader.requests or reader.rest) or reader.error is not None
            return self._is_at_end
        self._ending = True
        self._reader.end(BodyError("the client left in the middle of the body"))
        if self._status:
            return True
        self._abandon()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._ending = True
        self._is_direct = False
        self._reader.end(BodyError("the client left in the middle of the body"))
        self._abandon()
        self._release_unsent()
        del self._reader  # It refers to this connection: without the cycle, no collector is needed.
        self._host.closed(self)

    def pause_writing(self) -> None:
        self._writer.pause()

    def resume_writing(self) -> None:
        self._writer.resume()
        self._release_unsent()
        if self._request is None and not self._ending:
            self._advance()

    # Called by the body.

    def body_wanted(self) -> None:
        request = self._request
        if request is None or not request.expects_continue or self._transport.is_closing():
            return
        request.expects_continue = False
        if request.incoming is not None and request.incoming.received == 0:
            self._writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def pause_body(self) -> None:
        self._body_paused = True
        self._pause_reading()

    def resume_body(self) -> None:
        self._body_paused = False
        self._resume_reading()

    def receive_directly(self, body: DirectBody) -> None:
        self._body_paused = False
        if not self._is_direct:
            self._is_direct = True
            self._transport.set_protocol(DirectReceiver(self, body))
        if not self._reading:
            self._reading = True
            self._transport.resume_reading()

    def receive_pieces(self) -> None:
        if self._is_direct:
            self._is_direct = False
            self._transport.set_protocol(cast(asyncio.BaseProtocol, self))

    def received_directly(self, body: DirectBody, count: int) -> None:
        self._stats.bytes_in += count
        body.fill(count)
        reader = self._reader
        reader.received_directly(count)
        if reader.body is None:
            self.receive_pieces()

    # Called by the server.

    def finish(self) -> None:
        """The server is stopping: close now if no request is in flight, else after the last."""
        reader = self._reader
        if self._request is None and not self._ending and not reader.in_head and reader.body is None:
            self._end(linger=False)

    @property
    def account(self) -> str:
        """The account of the request that is being answered, once the handler knows it."""
        return "" if self._request is None else self._request.account

    def abort(self) -> None:
        self._ending = True
        self._transport.abort()

    def tick(self, elapsed_seconds: float) -> None:
        if self._writer.stalled(elapsed_seconds, self._host.limits):
            self._stats.stalls_total += 1
            self.abort()
        elif self._lingering:
            self._tick_lingering()
        elif self._ending:
            return
        elif self._reader.body is not None:
            self._tick_body(self._reader.body, elapsed_seconds)
        elif self._request is not None:
            self._since_seconds = self._host.now_seconds
        else:
            self._tick_waiting()

    def _tick_lingering(self) -> None:
        now, limits = self._host.now_seconds, self._host.limits
        lingered, silent = now - self._since_seconds, now - self._received_at_seconds
        if lingered > limits.linger_seconds or silent > limits.linger_idle_seconds:
            self.abort()

    def _tick_body(self, body: IncomingBody, elapsed_seconds: float) -> None:
        self._since_seconds = self._host.now_seconds
        body.tick()
        dropped = self._request is None
        if not dropped and not body.awaited:
            return
        if body.stalled(elapsed_seconds, self._host.limits):
            self._stats.stalls_total += 1
            body.fail(BodyError("the body stalled", 408))
            if dropped:
                self.abort()

    def _tick_waiting(self) -> None:
        reader, now, limits = self._reader, self._host.now_seconds, self._host.limits
        phase = (reader.heads_begun, reader.in_head)
        waited_seconds = now - self._since_seconds
        if phase != self._phase:
            self._phase = phase
            self._since_seconds = now
        elif reader.in_head and waited_seconds > limits.head_seconds:
            self._stats.stalls_total += 1
            self._refuse(408, "the head of the request did not arrive in time")
        elif not reader.in_head and (waited_seconds > limits.idle_seconds or self._host.stopping):
            self._end(linger=False)

    # Requests, one by one.

    def _advance(self) -> None:
        """Start what can be started. A few requests per iteration of the loop, so that others are served too."""
        reader = self._reader
        begun = 0
        while reader.requests and self._request is None and not self._ending and not self._writer.paused:
            if begun == _REQUESTS_AT_ONCE:
                self._loop.call_soon(self._after_task)
                return
            begun += 1
            self._begin(reader.requests.popleft())
        if self._request is not None or self._ending or self._writer.paused:
            return
        if reader.error is not None:
            self._stats.requests_malformed += 1
            self._refuse(reader.error.status, str(reader.error))
        elif reader.rest:
            self._loop.call_soon(self._feed_rest)
        elif self._is_at_end:
            self._end(linger=False)
        elif not self._reading and not self._body_paused:
            self._resume_reading()

    def _feed_rest(self) -> None:
        if self._request is None and not self._ending:
            self._reader.feed_rest()
            self._advance()

    def _begin(self, request: IncomingRequest) -> None:
        host = self._host
        self._stats.requests_total += 1
        self._stats.requests_in_flight += 1
        self._request = request
        if host.on_completed is not None:
            self._began_seconds = time.perf_counter()
            self._began_bytes = self._writer.bytes_out
        self.task = eager.start(self._respond(request), self._loop)

    async def _respond(self, request: IncomingRequest) -> None:
        response: Response | None = None
        try:
            response = await self._host.handler(request)
            body = response.body
            if isinstance(body, bytes):
                if len(body) > _COALESCED_BYTES:
                    self._check_memory(len(body))
                self._send_whole(request, response, body)
            else:
                await self._send_streamed(request, response, body)
        except Exception as error:
            self._send_failure(request, error)
        finally:
            try:
                if response is not None and response.release is not None:
                    response.release()
            finally:
                self._over(request)

    def _over(self, request: IncomingRequest) -> None:
        host, status, task = self._host, self._status, self.task
        self._stats.requests_in_flight -= 1
        self._request = None
        self.task = None
        self._status = 0
        self._cleaning_up = False
        if host.on_completed is not None:
            seconds = time.perf_counter() - self._began_seconds
            sent_bytes = self._writer.bytes_out - self._began_bytes
            host.on_completed(request, status or CLIENT_WENT_AWAY, seconds, sent_bytes)
        body = request.incoming
        if body is not None:
            body.discard()
        if self._transport.is_closing():
            return
        if status == 0:
            self.abort()  # Nothing was answered, so nothing can follow.
        elif not self._keep_alive or self._ending or host.stopping:
            self._end(linger=self._more_is_coming(request))
        elif task is not None and self._has_more_to_do():
            # Not now: the first step of the next handler must not run inside the task of the one before.
            self._loop.call_soon(self._after_task)

    def _more_is_coming(self, request: IncomingRequest) -> bool:
        body, reader = request.incoming, self._reader
        unread = body is not None and not body.complete
        return unread or not self._reading or bool(reader.rest) or bool(reader.requests)

    def _has_more_to_do(self) -> bool:
        """Whether ``_advance`` would do anything. Otherwise what arrives next calls it."""
        reader = self._reader
        if reader.requests or reader.rest or reader.error is not None:
            return True
        return self._is_at_end or not self._reading

    def _after_task(self) -> None:
        if self._request is None and not self._ending:
            self._advance()

    def _abandon(self) -> None:
        """The client is gone. A handler that waits for the body gets an error; any other is cancelled, once.

        A stream that is being closed already is left alone.
        """
        if self._request is None or self.task is None or self.task.cancelling() or self._cleaning_up:
            return
        body = self._request.incoming
        if body is None or not body.awaited:
            self.task.cancel()

    # Answers.

    def _head(self, request: IncomingRequest, response: Response) -> bytes:
        keep_alive = request.keep_alive and not self._host.stopping
        if request.incoming is not None:
            keep_alive = keep_alive and self._can_drop_rest(request, request.incoming)
        head = encode_head(response, http_1_0=request.http_1_0, keep_alive=keep_alive)
        self._keep_alive = keep_alive
        self._status = response.status
        return head

    def _can_drop_rest(self, request: IncomingRequest, body: IncomingBody) -> bool:
        """Whether the rest of the body will certainly come and is short enough to wait for."""
        if body.complete:
            return True
        if body.failed or body.length is None or (request.expects_continue and body.received == 0):
            return False
        return body.length - body.received <= self._host.limits.drain_bytes

    def _send_whole(self, request: IncomingRequest, response: Response, body: bytes) -> None:
        if not has_body(request.method, response.status):
            body = b""
        elif response.length is not None and response.length != len(body):
            raise AnswerError("the length is not the body's")
        head = self._head(request, response)
        if self._transport.is_closing():
            return
        if len(body) <= _COALESCED_BYTES:
            self._writer.write(head + body)
            return
        self._writer.write_both(head, body)
        if self._writer.paused:
            self._unsent_bytes += len(body)
            self._host.budget.add(len(body))

    def _check_memory(self, size: int) -> None:
        budget = self._host.budget
        if budget.used_bytes + size > budget.limit_bytes:
            raise BodyError("there is no memory left for the response", 503)

    def _release_unsent(self) -> None:
        """The client has read most of the responses, or is gone."""
        self._host.budget.used_bytes -= self._unsent_bytes
        self._unsent_bytes = 0

    async def _send_streamed(
        self, request: IncomingRequest, response: Response, pieces: AsyncIterator[Piece]
    ) -> None:
        bodiless = not has_body(request.method, response.status)
        chunked = is_chunked(response, http_1_0=request.http_1_0)
        if response.length is None and not chunked and not bodiless:
            request.keep_alive = False  # HTTP/1.0 has no chunks: the end of the connection ends the body.
        try:
            head = self._head(request, response)
            if self._transport.is_closing():
                return
            if bodiless:
                self._writer.write(head)
            else:
                await self._writer.send(head, pieces, length=response.length, chunked=chunked)
        finally:
            self._cleaning_up = True
            if isinstance(pieces, AsyncGenerator):
                await pieces.aclose()

    def _send_failure(self, request: IncomingRequest, error: Exception) -> None:
        """Respond to an error, or reset the connection if a response has begun or none is to be sent."""
        if self._transport.is_closing():
            return
        if self._status or isinstance(error, Unfinished):
            self._reset()
            if not isinstance(error, ConnectionError | Unfinished):
                self._host.on_error(request, error)
            return
        try:
            answer = self._host.on_error(request, error)
            assert isinstance(answer.body, bytes), "an answer to an error is short"
            self._send_whole(request, answer, answer.body)
        except Exception:
            self._send_whole(request, Response(500), b"")

    def _refuse(self, status: int, why: str) -> None:
        """Respond to bytes that are no request, and end the connection."""
        if self._host.on_malformed is not None:
            self._host.on_malformed(self._reader.peer, self._local_port, status, why)
        self._writer.write(encode_head(Response(status), http_1_0=False, keep_alive=False))
        self._end(linger=not self._is_at_end)

    # The end.

    def _end(self, *, linger: bool) -> None:
        """Close when the response is sent. If the client is still sending, read that for a while first: bytes that
        meet a closed socket cause a reset, which could reach the client before the response does.
        """
        self._ending = True
        self._writer.flush()
        if not linger:
            self._transport.close()
            return
        self._lingering = True
        self._since_seconds = self._received_at_seconds = self._host.now_seconds
        if self._transport.can_write_eof() and not self._transport.is_closing():
            self._transport.write_eof()
        self._resume_reading()

    def _reset(self) -> None:
        """Reset the connection, so that not even an HTTP/1.0 client takes its end for the end of the response."""
        connected = self._transport.get_extra_info("socket")
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.abort()

    def _pause_reading(self) -> None:
        if self._reading:
            self._reading = False
            self._transport.pause_reading()

    def _resume_reading(self) -> None:
        self.receive_pieces()
        if not self._reading:
            self._reading = True
            self._transport.resume_reading()


def new_connection(host: Host, loop: asyncio.AbstractEventLoop, local_port: int) -> asyncio.Protocol:
    return cast(asyncio.Protocol, HttpConnection(host, loop, local_port))
