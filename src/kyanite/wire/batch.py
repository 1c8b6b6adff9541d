"""Batches: ``multipart/mixed`` bodies (RFC 2046, section 5.1) whose parts are HTTP messages (``application/http``).

Only what Azure's clients send is supported: parts with a few headers, one level of nesting, no meaningful preamble.
Lines end with CRLF or a bare line feed. The last boundary may lack its ``--``: old clients leave it out.
"""

import re
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Final, NamedTuple

from kyanite.wire.malformed import Malformed

MULTIPART: Final = "multipart/mixed"
EMBEDDED_HTTP: Final = "application/http"

_HEAD_MAX_BYTES: Final = 256 * 1024
_HEADERS_MAX: Final = 100
_BOUNDARY: Final = re.compile(r';\s*boundary=(?:"([^"]{1,70})"|([^\s;,"]{1,70}))', re.IGNORECASE)
_BLANK_LINE: Final = re.compile(rb"\r?\n\r?\n")
_CONTENT_ID: Final = b"Content-ID: "
_LINE_FEED: Final = 10
"""As a number: Python looks for a byte in bytes by a number at a tenth of what it takes by a text."""
_REQUEST_LINE: Final = re.compile(r"([A-Z]{1,16}) (\S+)(?: HTTP/1\.[01])?", re.ASCII)


class NoBoundary(Malformed):
    """The content type names no boundary, or one that is nowhere in the body."""

    def __init__(self, sentence: str) -> None:
        super().__init__("InvalidInput", Reason=sentence)


class ParsedTexts:
    """Parsed request lines and headers by their text: the parts of a batch repeat each other."""

    __slots__ = ("blocks", "inner", "lines", "outer", "requests")

    def __init__(self) -> None:
        self.outer: set[bytes] = set()
        """Heads of parts without their last line, the Content-ID."""
        self.inner: dict[bytes, tuple[str, str, dict[str, str]]] = {}
        """Heads of requests: method, target and headers."""
        self.requests: dict[str, tuple[str, str]] = {}
        """Request lines: method and target."""
        self.blocks: dict[str, dict[str, str]] = {}
        """All headers of a part."""
        self.lines: dict[str, tuple[str, str]] = {}
        """Single headers."""


class Part(NamedTuple):
    headers: dict[str, str]
    """By lower-case name."""
    body: bytes

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "")


class EmbeddedRequest:
    """A class with slots, because a batch has up to a hundred of them, or 256."""

    __slots__ = ("body", "content_id", "headers", "method", "target")

    def __init__(
        self, method: str, target: str, headers: dict[str, str], body: bytes, content_id: str | None = None
    ) -> None:
        self.method = method
        self.target = target
        """A URL or a path, as it was sent."""
        self.headers = headers
        """Requests with the same head share one object."""
        self.body = body
        self.content_id = content_id
        """By which the part of the response refers to the request."""


def is_multipart(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower() == MULTIPART


def decode_parts(content_type: str, body: bytes, *, limit: int) -> list[Part]:
    """The parts of a body of this content type, in order. Raises Malformed; there is at least one.

    Of more than ``limit`` parts only one more is decoded: enough to refuse them.
    """
    parsed = ParsedTexts()
    return [_part(text, number, parsed) for number, text in enumerate(_texts(content_type, body, limit))]


def decode_change_set(content_type: str, body: bytes, *, limit: int) -> list[EmbeddedRequest]:
    """The requests of a body whose parts are requests: what ``decode_requests`` makes of ``decode_parts``."""
    parsed = ParsedTexts()
    texts = _texts(content_type, body, limit)
    return [_request_in(text, number, parsed) for number, text in enumerate(texts)]


def _texts(content_type: str, body: bytes, limit: int) -> list[bytes]:
    found = _BOUNDARY.search(content_type)
    if found is None or not is_multipart(content_type):
        raise NoBoundary(f"The content type must be {MULTIPART} with a boundary, and not '{content_type}'.")
    delimiter = b"--" + (found[1] or found[2]).encode("latin-1")
    if body.find(delimiter) < 0:
        raise NoBoundary("The body does not begin with its boundary.")
    texts = _between(delimiter, body, limit)
    if not texts:
        raise _invalid("The body does not begin with its boundary, or has no part.")
    return texts


def _between(delimiter: bytes, body: bytes, limit: int) -> list[bytes]:
    """The texts between the lines with the delimiter, without the line ends that belong to those."""
    texts = body.split(b"\n" + delimiter, limit + 2)
    # The preamble, unless the body begins with its boundary.
    first = texts.pop(0)
    if first.startswith(delimiter):
        texts.insert(0, first[len(delimiter) :])
    found: list[bytes] = []
    for text in texts[: limit + 1]:
        if text.startswith(b"\r\n"):
            content = text[2:]
        else:
            rest_of_line, line_end, content = text.partition(b"\n")
            if not line_end or rest_of_line.startswith(b"--"):
                break
            if rest_of_line.strip():
                raise _invalid("A boundary is followed by something else on its line.")
        found.append(content.removesuffix(b"\r"))
    if found and not found[-1].strip():
        found.pop()  # A last boundary without its "--".
    return found


def _part(text: bytes, number: int, parsed: ParsedTexts) -> Part:
    head, content = _split(text)
    if content is None:
        raise _invalid(f"Part {number} has no blank line behind its headers.")
    return Part(_headers(head, number, parsed), content)


def decode_requests(parts: Sequence[Part]) -> list[EmbeddedRequest]:
    """The requests in the parts."""
    parsed = ParsedTexts()
    return [_request(part, number, parsed) for number, part in enumerate(parts)]


def _request_in(text: bytes, number: int, parsed: ParsedTexts) -> EmbeddedRequest:
    """The request in a part.

    The parts of a batch repeat each other's heads but for the Content-ID. Where both heads end with CRLF CRLF and were
    decoded before, in a part that was cut there, they are not decoded again.
    """
    pieces = text.split(b"\r\n\r\n", 2)
    before, _, last_line = pieces[0].rpartition(b"\r\n")
    is_usual = len(pieces) == 3 and last_line.startswith(_CONTENT_ID) and _LINE_FEED not in last_line
    if is_usual and before in parsed.outer:
        head = parsed.inner.get(pieces[1])
        if head is not None:
            content_id = last_line[len(_CONTENT_ID) :].decode("latin-1").strip()
            method, target, headers = head
            return EmbeddedRequest(method, target, headers, pieces[2], content_id)
    request = _request(_part(text, number, parsed), number, parsed)
    if is_usual and request.body == pieces[2] and b"content-id" not in before.lower():
        parsed.outer.add(before)
        parsed.inner[pieces[1]] = (request.method, request.target, request.headers)
    return request


def _request(part: Part, number: int, parsed: ParsedTexts) -> EmbeddedRequest:
    content_type = part.content_type
    if content_type != EMBEDDED_HTTP and content_type.partition(";")[0].strip().lower() != EMBEDDED_HTTP:
        raise _invalid(f"Part {number} is not of the type {EMBEDDED_HTTP}.")
    head, content = _split(part.body)
    line, _, block = head.partition("\n")
    request = parsed.requests.get(line)
    if request is None:
        match = _REQUEST_LINE.fullmatch(line.rstrip("\r"))
        if match is None:
            raise _invalid(f"Part {number} does not begin with a request line.")
        request = parsed.requests[line] = (match[1], match[2])
    method, target = request
    headers = _headers(block, number, parsed)
    return EmbeddedRequest(method, target, headers, content or b"", part.headers.get("content-id"))


def _split(octets: bytes) -> tuple[str, bytes | None]:
    """The head before the first blank line and the content after it; None when there is no blank line."""
    if octets.startswith((b"\r\n", b"\n")):
        return "", octets[octets.index(b"\n") + 1 :]
    at = octets.find(b"\r\n\r\n", 0, _HEAD_MAX_BYTES)
    if at >= 0:
        return octets[:at].decode("latin-1"), octets[at + 4 :]
    match = _BLANK_LINE.search(octets, 0, _HEAD_MAX_BYTES)
    if match is None:
        if len(octets) > _HEAD_MAX_BYTES:
            raise _invalid("The headers of a part are too long.")
        return octets.decode("latin-1"), None
    return octets[: match.start()].decode("latin-1"), octets[match.end() :]


def _headers(block: str, number: int, parsed: ParsedTexts) -> dict[str, str]:
    known = parsed.blocks.get(block)
    if known is not None:
        return known
    if block.count("\n") > _HEADERS_MAX:
        raise _invalid(f"Part {number} has too many headers.")
    headers: dict[str, str] = {}
    for line in block.split("\n"):
        pair = parsed.lines.get(line)
        if pair is None:
            name, colon, value = line.partition(":")
            if not colon:
                if line.strip():
                    raise _invalid(f"Part {number} has a header without a colon.")
                continue
            pair = parsed.lines[line] = (name.strip().lower(), value.strip())
        headers[pair[0]] = pair[1]
    parsed.blocks[block] = headers
    return headers


def encode_parts(boundary: str, parts: Iterable[bytes]) -> bytes:
    """A body of parts, each with its own headers and blank line."""
    delimiter = b"--" + boundary.encode("ascii")
    pieces: list[bytes] = []
    for part in parts:
        pieces += (delimiter, part)
    return b"\r\n".join((*pieces, delimiter + b"--", b""))


def nested(boundary: str, body: bytes) -> bytes:
    """A part that is a multipart body itself."""
    return f"Content-Type: {MULTIPART}; boundary={boundary}\r\n\r\n".encode() + body.removesuffix(b"\r\n")


_HTTP_PART: Final = b"Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n"


def encode_response(status: int, headers: bytes, body: bytes = b"", content_id: str | None = None) -> bytes:
    """A part that is a response. ``headers`` are whole lines."""
    named = b"" if content_id is None else f"Content-ID: {content_id}\r\n".encode("latin-1")
    return b"%b%b%b%b\r\n%b" % (_HTTP_PART, named, _STATUS_LINES[status], headers, body)


def header_lines(headers: Iterable[tuple[str, str]]) -> bytes:
    return "".join([f"{name}: {value}\r\n" for name, value in headers]).encode("latin-1")


_STATUS_LINES: Final = {
    status.value: f"\r\nHTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus
}


def _invalid(sentence: str) -> Malformed:
    return Malformed("InvalidInput", Reason=sentence)
