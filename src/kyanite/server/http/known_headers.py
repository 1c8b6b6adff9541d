"""Headers that were parsed before, by their exact bytes.

Many clients send the same headers with every request, and only the request line differs. What the parser has accepted
once it accepts again, so of such a request the line alone is read anew. Here are only parsed forms: whether a request
is allowed is decided each time.

The line must be of the plainest form: a usual method, a path, HTTP/1.1. Everything else is left to the parser.
"""

import re
from collections.abc import Sequence
from typing import Final

KNOWN_MAX: Final = 256
BYTES_MAX: Final = 1024
_COUNT_MAX: Final = 32
"""Bounds of what is remembered, because clients choose the headers."""

_DIFFERENT_EACH_TIME: Final = (
    "x-ms-client-request-id",
    "x-ms-date",
    "date",
    "authorization",
    "traceparent",
    "expect",
    "transfer-encoding",
    "upgrade",
)
"""Headers that hardly ever repeat, and those after which the parser has to go on."""

_METHODS: Final = frozenset(("GET", "HEAD", "PUT", "POST", "DELETE", "MERGE", "PATCH"))
_VERSION: Final = " HTTP/1.1"
_END: Final = b"\r\n\r\n"

_known: Final[dict[bytes, "KnownHeaders"]] = {}
_known_queries: Final[dict[str, str]] = {}
"""Queries without a character that a request target cannot have: those with a token come again and again."""
_is_plain: Final = re.compile(r"[!-\"$-~]*").fullmatch


class KnownHeaders:
    """The headers of a request that keeps its connection open: from its second line to the empty one."""

    __slots__ = ("headers", "length", "raw_headers")

    def __init__(
        self, headers: dict[str, str], raw_headers: Sequence[tuple[bytes, bytes]], length: int
    ) -> None:
        self.headers: Final = headers
        self.raw_headers: Final = raw_headers
        self.length: Final = length
        """Of the body that follows."""


class KnownHead:
    """A head whose headers are known, and what followed it."""

    __slots__ = ("body", "known", "method", "path", "query")

    def __init__(self, method: str, path: str, query: str, known: KnownHeaders, body: bytes) -> None:
        self.method: Final = method
        self.path: Final = path
        self.query: Final = query
        self.known: Final = known
        self.body: Final = body


def find(data: bytes) -> KnownHead | None:
    """The head at the beginning of what arrived, if it is a plain line and known headers."""
    line, _, block = data.partition(b"\r\n")
    body = b""
    known = _known.get(block) if block.endswith(_END) else None
    if known is None:
        headers, end, body = block.partition(_END)
        known = _known.get(headers + end)
        if known is None:
            return None
    try:
        text = line.decode("ascii")
    except UnicodeDecodeError:
        return None
    method, _, rest = text.partition(" ")
    if method not in _METHODS or not rest.startswith("/") or not rest.endswith(_VERSION):
        return None
    path, mark, query = rest[: -len(_VERSION)].partition("?")
    if not path.isprintable() or " " in path or "#" in path:
        return None
    if mark:
        plain = _known_queries.get(query) or _plain(query)
        if plain is None:
            return None
        query = plain
    return KnownHead(method, path, query, known, body)


def remember(
    data: bytes, headers: dict[str, str], raw_headers: Sequence[tuple[bytes, bytes]], length: int
) -> bool:
    """Remember the headers of a request that the parser has found at the beginning of what arrived, if they may come
    again. Returns whether they may."""
    for name in _DIFFERENT_EACH_TIME:
        if name in headers:
            return False
    line, _, block = data.partition(b"\r\n")
    block, end, _ = block.partition(_END)
    # Not when the parser has skipped something before the line, or takes the host from it.
    is_plain = line[:1].isalpha() and b" /" in line and line.endswith(b" HTTP/1.1")
    if not end or not is_plain or len(block) > BYTES_MAX or len(raw_headers) > _COUNT_MAX:
        return False
    if len(_known) >= KNOWN_MAX:
        _known.clear()
    _known[block + end] = KnownHeaders(headers, raw_headers, length)
    return True


def _plain(query: str) -> str | None:
    if _is_plain(query) is None:
        return None
    if len(query) <= BYTES_MAX:
        if len(_known_queries) >= KNOWN_MAX:
            _known_queries.clear()
        _known_queries[query] = query
    return query
