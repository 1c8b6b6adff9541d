"""An HTTP exchange as a service sees it: a head, a body that streams in, an answer that streams out.

No sockets and no parsing here: ``server/http`` fills these in and sends them off. Header names keep their case in
``raw_headers``, because metadata names do, and paths stay as they came, because signatures are made over them.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


class BodyError(Exception):
    """The body did not arrive as announced: the client went away, stalled, or broke the framing."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status
        """What to answer, if the client is still there: 400, or 408 when it stalled."""


class Body(Protocol):
    """The request's body, pulled piece by piece. What is not pulled is not read from the socket for long."""

    @property
    def length(self) -> int | None:
        """Content-Length, or None when the body is chunked."""

    async def read(self) -> bytes:
        """The next piece, as it arrived; b"" at the end. Raises BodyError. Asks for 100-continue when needed."""

    async def read_all(self, limit: int) -> bytes | None:
        """The whole body, or None as soon as it is known to exceed the limit (nothing more is kept then)."""


class Request:
    """One request. Plain slots rather than a frozen dataclass: this is built tens of thousands of times a second."""

    __slots__ = (
        "account",
        "body",
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
        headers: Mapping[str, str],
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
        """What followed the first '?', as on the wire; empty when there was none."""
        self.headers = headers
        """Lower-case name to value (latin-1); a repeated header is joined by ','."""
        self.raw_headers = raw_headers
        """Every header as it came, in order, names in the sender's case."""
        self.body = body
        self.peer = peer
        """The client's address, without the port."""
        self.secure = secure
        self.local_port = local_port
        self.account = ""
        """Whose request this is. The service says so once it knows, for logs."""
        self.request_id = ""
        """What the answer's x-ms-request-id says. The service says so once it knows, for logs."""
        self.operation = ""
        """The operation's name in the REST reference. The service says so once it knows, for logs and metrics."""


@dataclass(frozen=True, slots=True)
class FileSlice:
    """Bytes of an open file, to be sent by the kernel when it can. The descriptor belongs to whoever made the span."""

    fd: int
    offset: int
    length: int


Piece = bytes | memoryview | FileSlice


@dataclass(slots=True)
class Response:
    """An answer. ``body`` is bytes, or pieces that add up to ``length`` (None: sent chunked).

    Date and Connection are the front end's business, as is Content-Length when it follows from ``body`` or
    ``length``; for an answer to HEAD, ``length`` is what Content-Length says although no body follows.
    ``release`` is called exactly once when the exchange is over, however it ended.
    """

    status: int
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes | AsyncIterator[Piece] = b""
    length: int | None = None
    reason: str | None = None
    release: Callable[[], None] | None = None


Handler = Callable[[Request], Awaitable[Response]]
"""Given the head as soon as it is complete; pulls the body itself."""
