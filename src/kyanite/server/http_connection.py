"""One connection: its requests are answered one after the other, in the order in which they came.

The reader turns bytes into requests; here it is decided when it is given more, when the next handler starts,
and how the connection ends. Nothing of the next request is looked at while one is being answered, except what
came in the same slice, and the socket is left alone meanwhile.

There are no timers here. The server ticks, and ``tick`` compares what it sees with what it saw the last time.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Protocol, cast

from kyanite.server import eager
from kyanite.server.http_head import AnswerError, encode_head, has_body, is_chunked
from kyanite.server.http_limits import Limits, Progress, Stats
from kyanite.server.http_reader import IncomingRequest, RequestReader
from kyanite.server.http_sender import TransportSender, send_pieces
from kyanite.server.sendfile import DirectSender
from kyanite.wire.http import BodyError, Handler, Piece, Request, Response

CLIENT_WENT_AWAY = 499
"""The status, in logs and metrics, of a request whose client left before the answer began."""

_WRITE_BUFFER_BYTES = 512 * 1024
_COALESCED_BYTES = 64 * 1024
"""A body up to this size is copied behind its head, so that both leave in one write."""

OnError = Callable[[Request, Exception], Response]
OnExchange = Callable[[Request, int, float, int], None]
"""Request, status, seconds, and bytes sent in answer, the head included."""


class Host(Protocol):
    """What a connection sees of the server it belongs to."""

    handler: Handler
    limits: Limits
    stats: Stats
    on_error: OnError
    on_exchange: OnExchange | None
    stopping: bool
    now_seconds: float
    """A coarse clock that moves with each tick."""

    def opened(self, connection: "HttpConnection") -> bool:
        """Whether there is room for one more."""

    def closed(self, connection: "HttpConnection") -> None: ...


class HttpConnection(asyncio.Protocol):
    _transport: asyncio.Transport
    _reader: RequestReader

    def __init__(self, host: Host, loop: asyncio.AbstractEventLoop, local_port: int) -> None:
        self._host = host
        self._loop = loop
        self._local_port = local_port
        self._secure = False
        # The exchange under way.
        self._request: IncomingRequest | None = None
        self._task: asyncio.Task[None] | None = None
        self._status = 0  # Of the answer that has begun.
        self._keep_alive = True
        self._began_seconds = 0.0
        self._began_bytes = 0
        # Reading and writing.
        self._reading = True
        self._body_paused = False
        self._writing_paused = False
        self._drained: asyncio.Future[None] | None = None
        self._sender: DirectSender | None = None
        self._bytes_out = 0
        # The end.
        self._lingering = False
        self._lost = False
        # What the last tick saw.
        self._phase = (0, False)
        self._since_seconds = host.now_seconds
        self._heard_at_seconds = 0.0
        self._flushed = Progress()

    # Called by the loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._secure = transport.get_extra_info("sslcontext") is not None
        peername = transport.get_extra_info("peername")
        peer = str(peername[0]) if isinstance(peername, tuple) else ""
        self._reader = RequestReader(
            self._host.limits, self, peer=peer, secure=self._secure, local_port=self._local_port
        )
        if self._host.opened(self):
            self._transport.set_write_buffer_limits(_WRITE_BUFFER_BYTES)
        else:
            self._refuse(503)

    def data_received(self, data: bytes) -> None:
        self._host.stats.bytes_in += len(data)
        reader = self._reader
        if self._lingering:
            self._heard_at_seconds = self._host.now_seconds
            return
        if self._request is not None and reader.body is None:
            reader.keep(data)
        else:
            reader.feed(data)
            if self._request is None:
                self._advance()
        if reader.has_rest and self._reading:
            self._pause_reading()

    def eof_received(self) -> bool:
        """The client sends no more. It may still want the answer that has begun, and will say so by taking
        it.

        Before that, a client that only closed its sending side looks just like one that left: it left.
        """
        if self._lingering or self._request is None:
            return False
        self._keep_alive = False
        self._reader.end(BodyError("the client left in the middle of the body"))
        if self._status:
            return True
        self._abandon()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        self._reader.end(BodyError("the client left in the middle of the body"))
        self._abandon()
        self._host.closed(self)

    def pause_writing(self) -> None:
        self._writing_paused = True

    def resume_writing(self) -> None:
        self._writing_paused = False
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        elif self._request is None:
            self._advance()

    # Called by the body.

    def body_wanted(self) -> None:
        request = self._request
        if request is not None and request.expects_continue:
            request.expects_continue = False
            if request.incoming is not None and request.incoming.received == 0 and not self._lost:
                self.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def pause_body(self) -> None:
        self._body_paused = True
        self._pause_reading()

    def resume_body(self) -> None:
        self._body_paused = False
        self._resume_reading()

    # Called by the server.

    def finish(self) -> None:
        """The server is stopping: leave as soon as nothing is under way."""
        reader = self._reader
        if self._request is None and not reader.in_head and reader.body is None and not self._lingering:
            self._transport.close()

    def abort(self) -> None:
        self._transport.abort()

    @property
    def task(self) -> asyncio.Task[None] | None:
        return self._task

    def tick(self, elapsed_seconds: float) -> None:
        if self._answer_stalled(elapsed_seconds):
            self._host.stats.stalls_total += 1
            self._transport.abort()
        elif self._lingering:
            self._tick_lingering()
        elif self._reader.body is not None:
            self._tick_body(elapsed_seconds)
        elif self._request is not None:
            self._since_seconds = self._host.now_seconds
        else:
            self._tick_waiting()

    def _answer_stalled(self, elapsed_seconds: float) -> bool:
        unsent = self._transport.get_write_buffer_size()
        if not unsent and (self._sender is None or not self._sender.waiting):
            return False
        return self._flushed.stalled(self._bytes_out - unsent, elapsed_seconds, self._host.limits)

    def _tick_lingering(self) -> None:
        now, limits = self._host.now_seconds, self._host.limits
        if (
            now - self._since_seconds > limits.linger_seconds
            or now - self._heard_at_seconds > limits.linger_idle_seconds
        ):
            self._transport.abort()

    def _tick_body(self, elapsed_seconds: float) -> None:
        body = self._reader.body
        assert body is not None
        self._since_seconds = self._host.now_seconds
        dropped = self._request is None
        if (dropped or body.awaited) and body.progress.stalled(
            body.received, elapsed_seconds, self._host.limits
        ):
            self._host.stats.stalls_total += 1
            body.fail(BodyError("the body stalled", 408))
            if dropped:
                self._transport.abort()

    def _tick_waiting(self) -> None:
        reader, now, limits = self._reader, self._host.now_seconds, self._host.limits
        phase = (reader.heads_begun, reader.in_head)
        if phase != self._phase:
            self._phase = phase
            self._since_seconds = now
        elif reader.in_head and now - self._since_seconds > limits.head_seconds:
            self._host.stats.stalls_total += 1
            self._refuse(408)
        elif not reader.in_head and (self._host.stopping or now - self._since_seconds > limits.idle_seconds):
            self._transport.close()

    # Requests one by one.

    def _advance(self) -> None:
        """Start what can be started. One slice per turn of the loop: the others want their turn too."""
        reader = self._reader
        while self._request is None and reader.requests and not self._writing_paused and not self._ending():
            self._begin(reader.requests.popleft())
        if self._request is not None or self._writing_paused or self._ending():
            return
        if reader.error is not None:
            self._host.stats.requests_malformed += 1
            self._refuse(reader.error.status)
        elif reader.has_rest:
            self._loop.call_soon(self._feed_rest)
        elif not self._body_paused:
            self._resume_reading()

    def _feed_rest(self) -> None:
        if self._request is None and not self._ending():
            self._reader.feed_rest()
            self._advance()

    def _begin(self, request: IncomingRequest) -> None:
        host = self._host
        host.stats.requests_total += 1
        host.stats.requests_in_flight += 1
        self._request = request
        if host.on_exchange is not None:
            self._began_seconds = time.perf_counter()
            self._began_bytes = self._bytes_out
        self._task = eager.start(self._exchange(request), self._loop)

    async def _exchange(self, request: IncomingRequest) -> None:
        response: Response | None = None
        try:
            response = await self._host.handler(request)
            body = response.body
            if isinstance(body, bytes):
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
        host, status, task = self._host, self._status, self._task
        host.stats.requests_in_flight -= 1
        self._request = None
        self._task = None
        self._status = 0
        if host.on_exchange is not None:
            seconds = time.perf_counter() - self._began_seconds
            host.on_exchange(
                request, status or CLIENT_WENT_AWAY, seconds, self._bytes_out - self._began_bytes
            )
        if self._lost:
            return
        body = request.incoming
        if body is not None:
            body.discard()
        if status == 0:
            self._transport.abort()
        elif not self._keep_alive or host.stopping:
            self._end(linger=(body is not None and not body.complete) or not self._reading)
        elif task is not None:
            self._after_task()

    def _after_task(self) -> None:
        """The next handler's first step must not run inside the task of the one before."""
        reader = self._reader
        if reader.requests or reader.error is not None or reader.has_rest:
            self._loop.call_soon(self._next)

    def _next(self) -> None:
        if self._request is None:
            self._advance()

    def _abandon(self) -> None:
        """The client is gone. A handler that waits for the body has been told so; any other is cancelled."""
        if self._request is None or self._task is None:
            return
        body = self._request.incoming
        if body is None or not body.awaited:
            self._task.cancel()

    # Answers.

    def write(self, data: bytes | memoryview) -> None:
        self._sent(len(data))
        self._transport.write(data)

    async def writable(self) -> None:
        while self._writing_paused:
            self._drained = self._loop.create_future()
            try:
                await self._drained
            finally:
                self._drained = None

    def _sent(self, size: int) -> None:
        self._bytes_out += size
        self._host.stats.bytes_out += size

    def _head(self, request: IncomingRequest, response: Response) -> bytes:
        keep_alive = self._can_keep_alive(request)
        head = encode_head(response, http_1_0=request.http_1_0, keep_alive=keep_alive)
        self._keep_alive = keep_alive
        self._status = response.status
        return head

    def _can_keep_alive(self, request: IncomingRequest) -> bool:
        if not request.keep_alive or self._host.stopping:
            return False
        body = request.incoming
        if body is None or body.complete:
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
        if self._lost:
            return
        if len(body) <= _COALESCED_BYTES:
            self.write(head + body)
        else:
            self.write(head)
            self.write(body)

    async def _send_streamed(
        self, request: IncomingRequest, response: Response, pieces: AsyncIterator[Piece]
    ) -> None:
        try:
            bodiless = not has_body(request.method, response.status)
            if request.http_1_0 and response.length is None and not bodiless:
                request.keep_alive = False  # There are no chunks: the end of the connection ends the body.
            head = self._head(request, response)
            if self._lost:
                return
            if bodiless:
                self.write(head)
            elif self._secure:
                sender = TransportSender(self._loop, self)
                chunked = is_chunked(response, http_1_0=request.http_1_0)
                await send_pieces(sender, head, pieces, length=response.length, chunked=chunked)
            else:
                await self._send_directly(request, response, head, pieces)
        finally:
            if isinstance(pieces, AsyncGenerator):
                await pieces.aclose()

    async def _send_directly(
        self, request: IncomingRequest, response: Response, head: bytes, pieces: AsyncIterator[Piece]
    ) -> None:
        await self._transport_empty()
        sender = DirectSender(self._loop, self._transport.get_extra_info("socket"), self._sent)
        self._sender = sender
        try:
            chunked = is_chunked(response, http_1_0=request.http_1_0)
            await send_pieces(sender, head, pieces, length=response.length, chunked=chunked)
        finally:
            self._sender = None
            sender.close()

    async def _transport_empty(self) -> None:
        if self._transport.get_write_buffer_size():
            self._transport.set_write_buffer_limits(0)
            await self.writable()
            self._transport.set_write_buffer_limits(_WRITE_BUFFER_BYTES)

    def _send_failure(self, request: IncomingRequest, error: Exception) -> None:
        """Turn an error into an answer, or cut the connection when one has begun."""
        if self._lost:
            return
        if self._status:
            if not isinstance(error, ConnectionError):
                self._host.on_error(request, error)
            self._keep_alive = False
            self._transport.abort()
            return
        try:
            answer = self._host.on_error(request, error)
            assert isinstance(answer.body, bytes), "an answer to an error is short"
            try:
                self._send_whole(request, answer, answer.body)
            finally:
                if answer.release is not None:
                    answer.release()
        except Exception:
            self._send_whole(request, Response(500), b"")

    def _refuse(self, status: int) -> None:
        """An answer to what is no request; nothing can follow it."""
        self.write(encode_head(Response(status), http_1_0=False, keep_alive=False))
        self._end(linger=True)

    # The end.

    def _ending(self) -> bool:
        return self._lost or self._lingering or self._transport.is_closing()

    def _end(self, *, linger: bool) -> None:
        """Close, after the answer is out. A client that is still sending must be heard out for a while: if
        its bytes met a closed socket, the reset would reach it before the answer did.
        """
        self._keep_alive = False
        if not linger:
            self._transport.close()
            return
        self._lingering = True
        self._since_seconds = self._heard_at_seconds = self._host.now_seconds
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._resume_reading()

    def _pause_reading(self) -> None:
        self._reading = False
        self._transport.pause_reading()

    def _resume_reading(self) -> None:
        if not self._reading and not self._lost:
            self._reading = True
            self._transport.resume_reading()
