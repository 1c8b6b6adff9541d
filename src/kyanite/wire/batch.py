"""Batches: ``multipart/mixed`` bodies (RFC 2046, section 5.1) whose parts are HTTP messages (``application/http``).

Only what clients of the service send is read: parts with a few headers, one level of nesting, no preamble that means
anything. Lines end with CRLF; a bare line feed is taken as well. The last boundary may lack its ``--``, as old clients
leave it out.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import NamedTuple

from kyanite.wire.malformed import Malformed

MULTIPART = "multipart/mixed"
EMBEDDED_HTTP = "application/http"

_BOUNDARY = re.compile(r';\s*boundary=(?:"([^"]{1,70})"|([^\s;,"]{1,70}))', re.IGNORECASE)
_BLANK_LINE = re.compile(rb"\r?\n\r?\n")
_REQUEST_LINE = re.compile(r"([A-Z]{1,16}) (\S+)(?: HTTP/1\.[01])?", re.ASCII)


class Seen:
    """What was read before, by its text: the parts of a batch repeat each other's requests and headers."""

    __slots__ = ("blocks", "lines", "requests")

    def __init__(self) -> None:
        self.requests: dict[str, tuple[str, str]] = {}
        """Request lines: method and target."""
        self.blocks: dict[str, Mapping[str, str]] = {}
        """All headers of a part."""
        self.lines: dict[str, tuple[str, str]] = {}
        """Single headers."""


class Part(NamedTuple):
    headers: Mapping[str, str]
    """By lower-case name."""
    body: bytes

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "")


class EmbeddedRequest(NamedTuple):
    method: str
    target: str
    """A URL or a path, as it was written."""
    headers: Mapping[str, str]
    body: bytes


def is_multipart(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower() == MULTIPART


def decode_parts(content_type: str, body: bytes) -> list[Part]:
    """The parts of a body of this content type, in order. Raises Malformed; there is at least one."""
    found = _BOUNDARY.search(content_type)
    if found is None or not is_multipart(content_type):
        raise _invalid(f"The content type must be {MULTIPART} with a boundary, and not '{content_type}'.")
    delimiter = b"--" + (found[1] or found[2]).encode("latin-1")
    pieces = _between(delimiter, body)
    if not pieces:
        raise _invalid("The body does not begin with its boundary, or has no part.")
    seen = Seen()
    return [_part(piece, number, seen) for number, piece in enumerate(pieces)]


def _between(delimiter: bytes, body: bytes) -> list[bytes]:
    """What stands between the lines that hold the delimiter, without the line ends that belong to those."""
    if not body.startswith(delimiter):
        start = body.find(b"\n" + delimiter)
        body = body[start + 1 :] if start >= 0 else b""
    pieces = (b"\n" + body).split(b"\n" + delimiter)[1:]
    found: list[bytes] = []
    for piece in pieces:
        if piece.startswith(b"\r\n"):
            content = piece[2:]
        else:
            rest_of_line, line_end, content = piece.partition(b"\n")
            if not line_end or rest_of_line.startswith(b"--"):
                break
            if rest_of_line.strip():
                raise _invalid("A boundary is followed by something else on its line.")
        found.append(content.removesuffix(b"\r"))
    if found and not found[-1].strip():
        found.pop()  # A last boundary without its "--".
    return found


def _part(piece: bytes, number: int, seen: Seen) -> Part:
    head, content = _split(piece)
    if content is None:
        raise _invalid(f"Part {number} has no blank line behind its headers.")
    return Part(_headers(head, number, seen), content)


def decode_requests(parts: Sequence[Part]) -> list[EmbeddedRequest]:
    """The requests that the parts hold."""
    seen = Seen()
    return [_request(part, number, seen) for number, part in enumerate(parts)]


def _request(part: Part, number: int, seen: Seen) -> EmbeddedRequest:
    content_type = part.content_type
    if content_type != EMBEDDED_HTTP and content_type.partition(";")[0].strip().lower() != EMBEDDED_HTTP:
        raise _invalid(f"Part {number} is not of the type {EMBEDDED_HTTP}.")
    head, content = _split(part.body)
    line, _, block = head.partition("\n")
    asked = seen.requests.get(line)
    if asked is None:
        match = _REQUEST_LINE.fullmatch(line.rstrip("\r"))
        if match is None:
            raise _invalid(f"Part {number} does not begin with a request line.")
        asked = seen.requests[line] = (match[1], match[2])
    return EmbeddedRequest(*asked, _headers(block, number, seen), content or b"")


def _split(octets: bytes) -> tuple[str, bytes | None]:
    """What is before the first blank line, and what is behind it; None when there is no blank line."""
    if octets.startswith((b"\r\n", b"\n")):
        return "", octets[octets.index(b"\n") + 1 :]
    at = octets.find(b"\r\n\r\n")
    if at >= 0:
        return octets[:at].decode("latin-1"), octets[at + 4 :]
    match = _BLANK_LINE.search(octets)
    if match is None:
        return octets.decode("latin-1"), None
    return octets[: match.start()].decode("latin-1"), octets[match.end() :]


def _headers(block: str, number: int, seen: Seen) -> Mapping[str, str]:
    known = seen.blocks.get(block)
    if known is not None:
        return known
    headers: dict[str, str] = {}
    for line in block.split("\n"):
        pair = seen.lines.get(line)
        if pair is None:
            name, colon, value = line.partition(":")
            if not colon:
                if line.strip():
                    raise _invalid(f"Part {number} has a header without a colon.")
                continue
            pair = seen.lines[line] = (name.strip().lower(), value.strip())
        headers[pair[0]] = pair[1]
    seen.blocks[block] = headers
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


_HTTP_PART = b"Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n"


def encode_response(status: int, headers: bytes, body: bytes = b"", content_id: str | None = None) -> bytes:
    """A part that is an answer. ``headers`` are whole lines."""
    named = b"" if content_id is None else f"Content-ID: {content_id}\r\n".encode("latin-1")
    return b"%b%b%b%b\r\n%b" % (_HTTP_PART, named, _STATUS_LINES[status], headers, body)


def header_lines(headers: Iterable[tuple[str, str]]) -> bytes:
    return "".join([f"{name}: {value}\r\n" for name, value in headers]).encode("latin-1")


_STATUS_LINES = {
    status.value: f"\r\nHTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus
}


def _invalid(sentence: str) -> Malformed:
    return Malformed("InvalidInput", Reason=sentence)
