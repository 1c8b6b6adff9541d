"""Requests from bytes: the parser's callbacks, the checks of a head, and their bounds. No sockets.

``httptools`` (llhttp) does the parsing and is strict by default: folded headers, bare CR or LF, NUL, a second
Content-Length, or one beside Transfer-Encoding are errors. What it leaves to its user is done here: the
version, the one Host header, the form of the target, the size of a head, and bodies that it would copy
needlessly.

It cannot be stopped in the middle of its input, so it is fed in slices, and with no more of them once a request
waits: of ten thousand requests that a client pipelines, a few hundred are parsed at any moment.

A client that sends the same headers with every request has them parsed once (``known_headers.py``).
"""

from collections import deque
from collections.abc import Sequence
from typing import Final

import httptools

from kyanite.server.http import known_headers
from kyanite.server.http.limits import Limits
from kyanite.server.http.request_body import NO_BODY, DirectBody, Flow, IncomingBody
from kyanite.server.memory_budget import MemoryBudget
from kyanite.wire.http import Body, BodyError, Request

SLICE_BYTES: Final = 8 * 1024
_BODY_SLICE_BYTES: Final = 64 * 1024
"""Chunks are parsed in larger slices: there, little else than the body comes out of one."""

_DIRECT_BYTES: Final = 1024 * 1024
"""Longer bodies of known length can be received into buffers of their reader."""

_KNOWN_NAMES_MAX: Final = 4096
_known_names: Final[dict[bytes, str]] = {}
"""Header names seen so far and their lower-case form. It stops growing when full, because clients choose
the names.
"""

_NOT_IN_HOSTS: Final = frozenset(",@\\")
"""A list of hosts, a user's name before the host, and what some programs take for a slash."""


class RequestError(Exception):
    """Bytes that are not an acceptable request. The connection ends with this status."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


class IncomingRequest(Request):
    """A request together with what the connection has to know about it."""

    __slots__ = ("expects_continue", "http_1_0", "incoming", "keep_alive")

    expects_continue: bool
    http_1_0: bool
    incoming: IncomingBody | None
    keep_alive: bool


class RequestReader:
    """Feed it what arrives; complete heads appear in ``requests``, in order, and their bodies fill as they
    come.

    When something is wrong, ``error`` is set: it comes after the requests that were right, and nothing comes
    after it.
    """

    __slots__ = (
        "_at",
        "_between_chunks_bytes",
        "_budget",
        "_fed_bytes",
        "_flow",
        "_head_bytes",
        "_limits",
        "_local_port",
        "_parser",
        "_parser_is_behind",
        "_raw_headers",
        "_raw_left",
        "_repeats",
        "_request",
        "_secure",
        "_slice_bytes",
        "_url",
        "closed",
        "error",
        "heads_begun",
        "in_head",
        "peer",
        "requests",
        "rest",
    )

    def __init__(
        self,
        limits: Limits,
        flow: Flow,
        budget: MemoryBudget,
        *,
        peer: str,
        secure: bool,
        local_port: int,
    ) -> None:
        self.requests: deque[IncomingRequest] = deque()
        self.error: RequestError | None = None
        self.closed = False
        """The client announced that no request follows; what does is ignored."""
        self.in_head = False
        self.heads_begun = 0
        self._limits = limits
        self._slice_bytes = min(SLICE_BYTES, limits.head_bytes)
        self._flow = flow
        self._budget = budget
        self.peer = peer
        self._secure = secure
        self._local_port = local_port
        self._parser = httptools.HttpRequestParser(self)
        self._parser_is_behind = False
        """Whether the parser has seen a head whose body it has not seen."""
        self._url = b""
        self._raw_headers: list[tuple[bytes, bytes]] = []
        self._fed_bytes = 0
        self._head_bytes = 0
        self._between_chunks_bytes = 0
        self._request: IncomingRequest | None = None
        self._raw_left = 0
        self._repeats = False
        """Whether the headers of the last request are remembered, so that those of the next may be known."""
        self.rest = b""
        """What is not parsed yet, from ``_at`` on."""
        self._at = 0

    @property
    def body(self) -> IncomingBody | None:
        """The body that is being received."""
        return None if self._request is None else self._request.incoming

    def feed(self, data: bytes) -> None:
        """Parse what arrived, or keep it for later if an earlier request has to come first."""
        if self.rest:
            self.keep(data)
        elif self._raw_left == 0 and len(data) <= self._slice_bytes:
            is_new = self._request is None and not self.in_head
            if is_new and self._repeats and self._begin_known(data):
                return
            heads_begun = self.heads_begun
            unread_bytes = self._parse(data)
            if unread_bytes == 0:
                if is_new and self.heads_begun == heads_begun + 1 and self.requests and not self.in_head:
                    self._remember(data, self.requests[-1])
                return
            self.rest = data[-unread_bytes:]
        else:
            self.rest = data
        self.feed_rest()

    def feed_rest(self) -> None:
        """Go on with what was kept, until a request is complete or there is nothing left."""
        rest = self.rest
        while self._at < len(rest) and (self._request is not None or not self.requests):
            start = self._at
            if self._raw_left:
                self._at = start + self._raw_left
                if start == 0 and self._at >= len(rest):
                    self._feed_raw(rest)  # Compiled, even a slice of everything would be a copy.
                else:
                    self._feed_raw(rest[start : self._at])
            else:
                size = self._slice_bytes if self._request is None else _BODY_SLICE_BYTES
                self._at = min(start + size, len(rest))
                self._at -= self._parse(rest[start : self._at])
        if self._at >= len(rest):
            self.rest = b""
            self._at = 0

    def keep(self, data: bytes) -> None:
        """Keep what arrived without parsing it, while an earlier request is being answered."""
        self.rest = self.rest[self._at :] + data
        self._at = 0

    def end(self, error: BodyError) -> None:
        """No more will come. This breaks the cycle of parser and reader, so that no collector is needed."""
        self.closed = True
        self.rest = b""
        if self.body is not None:
            self.body.fail(error)
        self._request = None
        self._raw_left = 0
        self._parser = httptools.HttpRequestParser(None)

    # Heads with known headers.

    def _begin_known(self, data: bytes) -> bool:
        """Begin a request without the parser, if its headers are known and nothing follows it but its body."""
        if self.closed or self.error is not None:
            return False
        head = known_headers.find(data)
        if head is None:
            return False
        known, body = head.known, head.body
        if len(body) > known.length or len(known.raw_headers) > self._limits.header_count:
            return False
        incoming = self._incoming(known.length) if known.length else None
        request = self._request_with(
            head.method, head.path, head.query, known.headers, known.raw_headers, incoming
        )
        self.heads_begun += 1
        self._fed_bytes = 0
        self._request = request
        self.requests.append(request)
        if incoming is None:
            self._complete(request)
            return True
        self._raw_left = known.length
        if body:
            self._feed_raw(body)
        return True

    def _remember(self, data: bytes, request: IncomingRequest) -> None:
        self._repeats = (
            self.error is None
            and request.keep_alive
            and not request.http_1_0
            and known_headers.remember(data, request.headers, request.raw_headers, request.body.length or 0)
        )

    # Feeding the parser.

    def _parse(self, data: bytes) -> int:
        """Give a slice to the parser; returns how many bytes at its end have to be given again."""
        if self.closed or self.error is not None:
            return 0
        self._fed_bytes = len(data)
        if self._request is None:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._ignore_upgrade()
            return len(data) - int(upgrade.args[0])
        except httptools.HttpParserError as error:
            if not self.closed:
                self._refuse(self._reason(error))
            return 0
        if self._request is not None:
            self._after_part(self._request, len(data))
        elif self.in_head and self._head_bytes > self._limits.head_bytes + self._slice_bytes:
            self._refuse(RequestError(431, "the head is too large"))
        return 0

    def _reason(self, error: httptools.HttpParserError) -> RequestError:
        """Why the parser stopped: ours if we have one. Set while it ran, which the caller's types do not show."""
        return self.error or RequestError(400, str(error))

    def _after_part(self, request: IncomingRequest, fed_bytes: int) -> None:
        body = request.incoming
        assert body is not None
        if body.length is not None:
            self._raw_left = body.length - body.received
            self._parser_is_behind = True
            return
        self._between_chunks_bytes += fed_bytes
        if self._between_chunks_bytes > self._limits.head_bytes + _BODY_SLICE_BYTES:
            self._refuse(RequestError(400, "too much between two chunks"))

    def _feed_raw(self, piece: bytes) -> None:
        """Body bytes of known number need no parser, which would copy them. The next head gets a new one."""
        request = self._request
        assert request is not None
        assert request.incoming is not None
        request.incoming.feed(piece)
        self._count_raw(request, len(piece))

    def received_directly(self, count: int) -> None:
        """So many bytes of the body did not pass through here."""
        request = self._request
        assert request is not None
        self._count_raw(request, count)

    def _count_raw(self, request: IncomingRequest, count: int) -> None:
        self._raw_left -= count
        if self._raw_left == 0:
            self._fed_bytes = 0
            if self._parser_is_behind:
                self._parser = httptools.HttpRequestParser(self)
                self._parser_is_behind = False
            self._complete(request)

    def _ignore_upgrade(self) -> None:
        """Go on in HTTP/1.1, as a server may. The parser assumes the upgrade and skips the body.

        Java's HTTP client asks for h2c in this way with the first request of a connection, uploads included.
        """
        request = self._request
        assert request is not None
        self._parser = httptools.HttpRequestParser(self)
        if request.incoming is None:
            self._complete(request)
        elif request.incoming.length is None:
            self._parser.feed_data(b"PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
        else:
            self._raw_left = request.incoming.length
            self._parser_is_behind = True

    def _refuse(self, error: RequestError) -> None:
        self.error = error
        if self.body is not None:
            self.body.fail(BodyError(str(error)))

    def _complete(self, request: IncomingRequest) -> None:
        if request.incoming is not None:
            request.incoming.finish()
        self._request = None
        self._head_bytes = self._fed_bytes  # At most: where in the slice the next head begins is not known.
        self.closed = not request.keep_alive

    # What the parser calls.

    def on_message_begin(self) -> None:
        self.in_head = True
        self.heads_begun += 1

    def on_url(self, part: bytes) -> None:
        self._url += part

    def on_header(self, name: bytes, value: bytes) -> None:
        self._raw_headers.append((name, value))

    def on_headers_complete(self) -> None:
        url, raw_headers = self._url, self._raw_headers
        self._url, self._raw_headers = b"", []
        self.in_head = False
        if self._request is not None:
            return  # The head that _ignore_upgrade made up.
        if self.closed:
            raise RequestError(400, "a request after the last")
        try:
            request = self._request_from(url, raw_headers)
        except RequestError as error:
            self.error = error
            raise
        self._request = request
        self.requests.append(request)

    def on_body(self, piece: bytes) -> None:
        request = self._request
        assert request is not None
        assert request.incoming is not None
        self._between_chunks_bytes -= len(piece)
        request.incoming.feed(piece)

    def on_chunk_header(self) -> None:
        self._between_chunks_bytes = 0

    def on_message_complete(self) -> None:
        request = self._request
        assert request is not None
        self._raw_headers.clear()  # Trailers, which no handler uses.
        if not self._parser.should_upgrade():
            self._complete(request)

    # The checks of a head.

    def _request_from(self, url: bytes, raw_headers: list[tuple[bytes, bytes]]) -> IncomingRequest:
        limits = self._limits
        if len(raw_headers) > limits.header_count:
            raise RequestError(431, "too many headers")
        if self._head_bytes > limits.head_bytes and size_of(url, raw_headers) > limits.head_bytes:
            raise RequestError(431, "the head is too large")
        method = self._parser.get_method().decode("ascii")
        headers = headers_from(raw_headers)
        if "connection" not in headers and self._parser.should_keep_alive():
            version = "1.1"  # In no other version is that so, and the parser formats a text when it is asked.
        else:
            version = self._parser.get_http_version()
        check_head(method, version, headers)
        host, path, query = split_target(method, url.decode("ascii"))
        if host:
            headers["host"] = host
        incoming = self._body_of(headers)
        request = self._request_with(method, path, query, headers, raw_headers, incoming)
        request.http_1_0 = version == "1.0"
        request.keep_alive = self._parser.should_keep_alive()
        if request.http_1_0 and "close" in headers.get("connection", "").lower():
            request.keep_alive = False  # To the parser, keep-alive beside it wins.
        request.expects_continue = incoming is not None and version == "1.1" and "expect" in headers
        return request

    def _request_with(
        self,
        method: str,
        path: str,
        query: str,
        headers: dict[str, str],
        raw_headers: Sequence[tuple[bytes, bytes]],
        incoming: IncomingBody | None,
    ) -> IncomingRequest:
        """A request of HTTP/1.1 that keeps its connection open and waits for nothing."""
        body: Body = NO_BODY if incoming is None else incoming
        request = IncomingRequest(
            method, path, query, headers, raw_headers, body, self.peer, self._secure, self._local_port
        )
        request.incoming = incoming
        request.http_1_0 = False
        request.keep_alive = True
        request.expects_continue = False
        return request

    def _body_of(self, headers: dict[str, str]) -> IncomingBody | None:
        if "content-length" in headers:
            length = int(headers["content-length"])
            return self._incoming(length) if length else None
        if "transfer-encoding" in headers:
            self._between_chunks_bytes = 0
            return self._incoming(None)
        return None

    def _incoming(self, length: int | None) -> IncomingBody:
        if length is not None and length > _DIRECT_BYTES and not self._secure:
            return DirectBody(length, self._flow, self._limits.body_buffer_bytes, self._budget)
        return IncomingBody(length, self._flow, self._limits.body_buffer_bytes, self._budget)


def size_of(url: bytes, raw_headers: list[tuple[bytes, bytes]]) -> int:
    return len(url) + sum(len(name) + len(value) + 4 for name, value in raw_headers)


def headers_from(raw_headers: list[tuple[bytes, bytes]]) -> dict[str, str]:
    """Lower-case names to values; what is repeated is joined by commas, but there is only one Host."""
    names = _known_names
    headers = {
        names.get(name) or lowered(name): value.decode("latin-1").rstrip(" \t") for name, value in raw_headers
    }
    if len(headers) == len(raw_headers):
        return headers
    joined: dict[str, str] = {}
    for name, value in raw_headers:
        key, text = lowered(name), value.decode("latin-1").rstrip(" \t")
        if key == "host" and key in joined:
            raise RequestError(400, "more than one Host header")
        joined[key] = f"{joined[key]},{text}" if key in joined else text
    return joined


def lowered(name: bytes) -> str:
    known = name.lower().decode("latin-1")
    if len(_known_names) < _KNOWN_NAMES_MAX and len(name) <= 64:
        _known_names[name] = known
    return known


def check_head(method: str, version: str, headers: dict[str, str]) -> None:
    if version == "1.1":
        if "host" not in headers:
            raise RequestError(400, "no Host header")
    elif version != "1.0":
        raise RequestError(505, "HTTP/1.1 or 1.0, please")
    elif "transfer-encoding" in headers:
        raise RequestError(400, "HTTP/1.0 knows no Transfer-Encoding")
    if "," in headers.get("host", ""):
        raise RequestError(400, "more than one host in the Host header")
    if method == "CONNECT":
        raise RequestError(501, "no tunnels here")
    if "transfer-encoding" in headers and headers["transfer-encoding"].lower() != "chunked":
        raise RequestError(501, "no Transfer-Encoding other than chunked")
    if "expect" in headers and headers["expect"].lower() != "100-continue" and version == "1.1":
        raise RequestError(417, "no expectation other than 100-continue")


def split_target(method: str, target: str) -> tuple[str, str, str]:
    """Host, path and query of any form of request target, as they came. Only a URL has a host, and it wins over the
    Host header (RFC 9112, 3.2.2).
    """
    if "#" in target:
        raise RequestError(400, "a request target has no fragment")
    host = ""
    if not target.startswith("/"):
        if target == "*" and method == "OPTIONS":
            return "", "*", ""
        host, target = split_url(target)
    path, _, query = target.partition("?")
    return host, path, query


def split_url(target: str) -> tuple[str, str]:
    """The host of a URL, and what follows it."""
    scheme, separator, rest = target.partition("://")
    if not separator or scheme.lower() not in {"http", "https"}:
        raise RequestError(400, "a request target is a path or a URL")
    ends = [at for at in (rest.find("/"), rest.find("?")) if at >= 0]
    start = min(ends, default=len(rest))
    host = rest[:start]
    if not host:
        raise RequestError(400, "a URL without a host")
    if not _NOT_IN_HOSTS.isdisjoint(host):
        raise RequestError(400, "a URL whose host is none")
    return host, rest[start:] if rest[start : start + 1] == "/" else "/" + rest[start:]
