"""A client that reads responses strictly, by the rules of h11, and knows when a connection must live on."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field

import h11

from tests.services.fuzzing.request import Framing

ANSWERED_SECONDS = 30.0
_BODY_MAX_BYTES = 1 << 24
"""A longer body is not read: a file may have terabytes of zeros."""
_KNOWN_METHODS = frozenset((b"GET", b"HEAD", b"PUT", b"POST", b"DELETE", b"OPTIONS", b"PATCH", b"MERGE"))


class Broken(Exception):
    """The server did not answer as HTTP demands."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    reason: str
    headers: dict[str, str]
    """By lower-case name; repeated ones are joined."""
    body: bytes
    closes: bool
    """The response says that the connection ends."""
    informed: list[int] = field(default_factory=list)
    """The informational responses before."""


class FuzzConnection:
    """One connection at a time. It is opened again after it was closed as a response said."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._left = b""
        """What came behind the last response."""
        self.opened = 0

    async def send(self, sent: bytes, framing: Framing) -> Answer | None:
        """The answer; None when the request is one that the server may leave unanswered."""
        is_right = framing in {Framing.LENGTH, Framing.CHUNKED}
        if not is_right:
            await self.close()
        try:
            async with asyncio.timeout(ANSWERED_SECONDS):
                answer = await self._send(sent, is_right=is_right, ends=framing is Framing.TOO_SHORT)
        except TimeoutError:
            await self.close()
            raise Broken(f"no answer within {ANSWERED_SECONDS:.0f} seconds") from None
        except BaseException:
            await self.close()
            raise
        if not is_right or answer is None or answer.closes:
            await self.close()
        return answer

    async def _send(self, sent: bytes, *, is_right: bool, ends: bool) -> Answer | None:
        if self._writer is None:
            await self._open()
        reader, writer = self._reader, self._writer
        assert reader is not None
        assert writer is not None
        with suppress(ConnectionError):
            writer.write(sent)
            if ends or (not is_right and writer.can_write_eof()):
                writer.write_eof()
        try:
            return await self._read(reader, sent.partition(b" ")[0])
        except (ConnectionError, h11.RemoteProtocolError) as error:
            if not is_right:
                return None
            raise Broken(f"{type(error).__name__}: {error}") from error

    async def _open(self) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        self._left = b""
        self.opened += 1

    async def _read(self, reader: asyncio.StreamReader, method: bytes) -> Answer:
        parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=1 << 20)
        known = method if method in _KNOWN_METHODS else b"GET"
        parser.send(h11.Request(method=known, target="/", headers=[("Host", "x")]))
        parser.send(h11.EndOfMessage())
        response: h11.Response | None = None
        pieces: list[bytes] = []
        informed: list[int] = []
        if self._left:
            parser.receive_data(self._left)
        while True:
            event = parser.next_event()
            if event is h11.NEED_DATA:
                data = await reader.read(1 << 16)
                if not data and response is None:
                    raise ConnectionError("the server closed the connection without an answer")
                parser.receive_data(data)
            elif isinstance(event, h11.InformationalResponse):
                informed.append(event.status_code)
            elif isinstance(event, h11.Response):
                response = event
                if known != b"HEAD" and _length_of(response) > _BODY_MAX_BYTES:
                    return _answer(response, b"", informed, closes=True)
            elif isinstance(event, h11.Data):
                pieces.append(bytes(event.data))
            else:
                break
        if response is None or not isinstance(event, h11.EndOfMessage):
            raise ConnectionError(f"the server sent {event!r} instead of a response")
        self._left = parser.trailing_data[0]
        return _answer(response, b"".join(pieces), informed, closes=parser.their_state is h11.MUST_CLOSE)

    async def close(self) -> None:
        writer, self._writer, self._reader = self._writer, None, None
        if writer is not None:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()


def _length_of(response: h11.Response) -> int:
    return next((int(value) for name, value in response.headers if name == b"content-length"), 0)


def _answer(response: h11.Response, body: bytes, informed: list[int], *, closes: bool) -> Answer:
    headers: dict[str, str] = {}
    for name, value in response.headers:
        lower, text = name.decode("latin-1"), value.decode("latin-1")
        headers[lower] = f"{headers[lower]},{text}" if lower in headers else text
    return Answer(response.status_code, response.reason.decode("latin-1"), headers, body, closes, informed)
