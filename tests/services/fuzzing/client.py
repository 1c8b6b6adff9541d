"""A client that reads responses strictly, and knows when a connection must live on."""

import asyncio
import re
from contextlib import suppress
from dataclasses import dataclass, field

import h11

from tests.services.fuzzing.request import Framing

ANSWERED_SECONDS = 30.0
_BODY_MAX_BYTES = 1 << 24
"""A longer body is not read: a file may have terabytes of zeros."""
_STATUS = re.compile(rb"HTTP/1\.1 ([1-5]\d\d) ([\t\x20-\x7e\x80-\xff]*)\r\n")
_HEADER = re.compile(
    rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*))?\r\n"
)
_CHUNK = re.compile(rb"([0-9a-fA-F]{1,8})\r\n")
_BODILESS = frozenset((204, 304))
_CHECKED_EVERY = 16
"""How often h11 reads a head as well."""


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
        self._received = b""
        self._answers = 0

    async def send(self, sent: bytes, framing: Framing) -> Answer | None:
        """The answer; None when the request is one that the server may leave unanswered."""
        is_right = framing in {Framing.LENGTH, Framing.CHUNKED}
        if not is_right:
            await self.close()
        try:
            async with asyncio.timeout(ANSWERED_SECONDS):
                answer = await self._send(sent, is_right=is_right)
        except TimeoutError:
            await self.close()
            raise Broken(f"no answer within {ANSWERED_SECONDS:.0f} seconds") from None
        except BaseException:
            await self.close()
            raise
        if not is_right or answer is None or answer.closes:
            await self.close()
        return answer

    async def close(self) -> None:
        writer, self._writer, self._reader = self._writer, None, None
        if writer is not None:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _send(self, sent: bytes, *, is_right: bool) -> Answer | None:
        if self._writer is None:
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
            self._received = b""
        writer = self._writer
        with suppress(ConnectionError):
            writer.write(sent)
            if not is_right:
                writer.write_eof()
        try:
            answer = await self._answer(sent.partition(b" ")[0])
        except ConnectionError as error:
            if is_right:
                raise Broken(f"{type(error).__name__}: {error}") from error
            return None
        if is_right and self._received and not answer.closes:
            raise Broken(f"more came behind the response: {self._received[:100]!r}")
        return answer

    # Reading

    async def _answer(self, method: bytes) -> Answer:
        informed: list[int] = []
        while True:
            status, reason, headers = await self._head()
            if status >= 200:
                break
            informed.append(status)
        closes = headers.get("connection", "").lower() == "close"
        if method == b"HEAD" or status in _BODILESS:
            return Answer(status, reason, headers, b"", closes, informed)
        if headers.get("transfer-encoding", "").lower() == "chunked":
            if "content-length" in headers:
                raise Broken("a length beside chunks")
            body = await self._chunks()
        elif "content-length" not in headers:
            raise Broken("neither a length nor chunks")
        elif int(headers["content-length"]) > _BODY_MAX_BYTES:
            return Answer(status, reason, headers, b"", True, informed)
        else:
            body = await self._take(int(headers["content-length"]))
        return Answer(status, reason, headers, body, closes, informed)

    async def _head(self) -> tuple[int, str, dict[str, str]]:
        while (end := self._received.find(b"\r\n\r\n")) < 0:
            await self._more()
        head, self._received = self._received[: end + 4], self._received[end + 4 :]
        self._answers += 1
        if self._answers % _CHECKED_EVERY == 0:
            _check_by_h11(head)
        match = _STATUS.match(head)
        if match is None:
            raise Broken(f"no status line: {head[:100]!r}")
        headers: dict[str, str] = {}
        at = match.end()
        while at < len(head) - 2:
            line = _HEADER.match(head, at)
            if line is None:
                raise Broken(f"no header: {head[at : at + 100]!r}")
            at = line.end()
            name, value = line[1].decode("ascii").lower(), (line[2] or b"").decode("latin-1")
            if name in headers and name in {"content-length", "transfer-encoding", "content-type"}:
                raise Broken(f"{name} came twice")
            headers[name] = f"{headers[name]},{value}" if name in headers else value
        return int(match[1]), match[2].decode("latin-1"), headers

    async def _chunks(self) -> bytes:
        pieces: list[bytes] = []
        while True:
            while b"\r\n" not in self._received:
                await self._more()
            match = _CHUNK.match(self._received)
            if match is None:
                raise Broken(f"no chunk: {self._received[:50]!r}")
            self._received = self._received[match.end() :]
            size = int(match[1], 16)
            piece = await self._take(size + 2)
            if piece[-2:] != b"\r\n":
                raise Broken(f"a chunk ends in {piece[-2:]!r}")
            if not size:
                return b"".join(pieces)
            pieces.append(piece[:-2])

    async def _take(self, count: int) -> bytes:
        while len(self._received) < count:
            await self._more()
        piece, self._received = self._received[:count], self._received[count:]
        return piece

    async def _more(self) -> None:
        assert self._reader is not None
        data = await self._reader.read(1 << 18)
        if not data:
            raise ConnectionError("the server closed the connection without a whole answer")
        self._received += data


def _check_by_h11(head: bytes) -> None:
    """Another reader, so that this one's mistakes do not hide the server's."""
    parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=1 << 20)
    parser.send(h11.Request(method="HEAD", target="/", headers=[("Host", "x")]))
    parser.send(h11.EndOfMessage())
    parser.receive_data(head)
    try:
        parser.next_event()
    except h11.RemoteProtocolError as error:
        raise Broken(f"h11 refuses the response: {error}") from error
