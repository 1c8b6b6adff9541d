"""An HTTP request and its response, as a service gets and returns them: both bodies are streams.

No sockets and no parsing here: ``server/http`` makes requests and sends responses. Header names keep their case in
``raw_headers``, because metadata names do, and paths stay as they were sent, because signatures cover them.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self


class BodyError(Exception):
    """The body did not arrive as announced: the client disconnected, stalled, or broke the framing."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status
        """The status to send if the client is still connected: 400, 408 when it stalled, 503 without memory for it."""


class Unfinished(Exception):
    """A response, or the rest of one, cannot be sent. The service has logged why; the connection is reset."""


class Body(Protocol):
    """The request's body, read in chunks. While the service does not read, the server soon stops reading the socket."""

    @property
    def length(self) -> int | None:
        """Content-Length, or None when the body is chunked."""

    async def read(self) -> bytes:
        """The next chunk, as it arrived; b"" at the end. Raises BodyError. Sends 100 Continue when needed."""

    async def read_all(self, limit: int) -> bytes | None:
        """The whole body, or None as soon as it exceeds the limit."""


class Request:
    """One request. A class with slots rather than a frozen dataclass, because it is made for every request."""

    __slots__ = (
        "account",
        "body",
        "error_code",
        "headers",
        "local_port",
        "method",
        "operation",
        "path",
        "peer",
        "query",
        "raw_headers",
        "request_id",
        "secure",
    )

    def __init__(
        self,
        method: str,
        path: str,
        query: str,
        headers: dict[str, str],
        raw_headers: Sequence[tuple[bytes, bytes]],
        body: Body,
        peer: str,
        secure: bool,
        local_port: int,
    ) -> None:
        self.method = method
        self.path = path
        """The path exactly as on the wire, percent-encoding included, without the query."""
        self.query = query
        """The text after the first '?', as on the wire; empty when there is none."""
        self.headers = headers
        """Lower-case name to value (latin-1); a repeated header is joined by ','."""
        self.raw_headers = raw_headers
        """Every header as it was sent, in order, names in the sender's case."""
        self.body = body
        self.peer = peer
        """The client's address, without the port."""
        self.secure = secure
        self.local_port = local_port
        self.account = ""
        """The account of the request. The service sets it, for logs."""
        self.request_id = ""
        """The x-ms-request-id of the response. The service sets it, for logs."""
        self.operation = ""
        """The operation's name in the REST reference. The service sets it, for logs and metrics."""
        self.error_code = ""
        """The x-ms-error-code of the response; empty if it succeeds. The service sets it, for logs."""


@dataclass(frozen=True, slots=True)
class FileSlice:
    """Bytes of an open file, to be sent by the kernel when it can. Its maker owns the descriptor."""

    fd: int
    offset: int
    length: int


Piece = bytes | memoryview | FileSlice


class HeaderError(Exception):
    """A header with a line break would break the framing of a response."""


def header_lines(headers: list[tuple[str, str]]) -> str:
    """Each header as a line with its end. All are searched for line breaks at once, which costs the least."""
    given: list[str] = []
    lines: list[str] = []
    for name, value in headers:
        given.append(name)
        given.append(value)
        lines.append(name)
        lines.append(": ")
        lines.append(value)
        lines.append("\r\n")
    text = "".join(given)
    if "\n" in text or "\r" in text or "\0" in text:
        raise HeaderError("a header holds a line break")
    return "".join(lines)


class HeaderBlock:
    """Headers that many responses begin with, and their lines, which are made once."""

    __slots__ = ("headers", "lines")

    def __init__(self, headers: list[tuple[str, str]]) -> None:
        self.headers = headers
        self.lines = header_lines(headers)

    def response(self, status: int) -> "Response":
        """A response that begins with these headers. More can be added to them, but none be taken away."""
        response = Response(status, self.headers.copy())
        response.block = self
        return response


class Response:
    """A response. ``body`` is bytes, or chunks of ``length`` bytes together (None: sent chunked).

    The HTTP server adds Date and Connection, and Content-Length when it follows from ``body`` or ``length``. In a
    response to HEAD, ``length`` is the value of Content-Length although no body follows. ``release`` is called exactly
    once when the response was sent or has failed.

    A plain class, because one is made for every request, and mypyc leaves the ``__init__`` of a dataclass interpreted.
    """

    __slots__ = (
        "_ended_at",
        "_ending",
        "_ending_at",
        "block",
        "body",
        "headers",
        "length",
        "reason",
        "release",
        "status",
    )

    def __init__(
        self,
        status: int,
        headers: list[tuple[str, str]] | None = None,
        body: bytes | AsyncIterator[Piece] = b"",
        length: int | None = None,
        reason: str | None = None,
        release: Callable[[], None] | None = None,
    ) -> None:
        self.status = status
        self.headers: list[tuple[str, str]] = [] if headers is None else headers
        self.body = body
        self.length = length
        self.reason = reason
        self.release = release
        self.block: HeaderBlock | None = None
        """What ``headers`` begins with, if its lines are known."""
        self._ending = ""
        self._ending_at = 0
        self._ended_at = 0

    def end_with(self, headers: list[tuple[str, str]], lines: str) -> None:
        """Add the last headers, whose lines are known and hold no other line breaks than their ends."""
        self._ending = lines
        self._ending_at = len(self.headers)
        self.headers += headers
        self._ended_at = len(self.headers)

    def lines(self) -> str:
        """The lines of all headers. Those that are known already are taken as they are, if nothing was added since."""
        headers, block = self.headers, self.block
        start = 0 if block is None else len(block.headers)
        end = len(headers) if self._ended_at != len(headers) else self._ending_at
        begin = "" if block is None else block.lines
        middle = header_lines(headers[start:end]) if start < end else ""
        return f"{begin}{middle}{self._ending if end == self._ending_at else ''}"


class NoPieces:
    """The body of an error to HEAD. It is framed as chunked, so that the head names neither a type nor a length.

    The live service answers so. Clients on the C++ library parse a body wherever a type is named, and find none.
    """

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Piece:
        raise StopAsyncIteration


Handler = Callable[[Request], Awaitable[Response]]
"""Is called as soon as the head is complete, and reads the body itself."""
