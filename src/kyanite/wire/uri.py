"""The target of a request: account, service and path from Host and request line, and the query's parameters.

Two styles name the account. *Host style*, ``{account}.{service}.anything``, names account and service on any
port; *path style*, ``/{account}/…``, is what the emulator's clients use and takes the service from the port.
Either may name ``{account}-secondary``, the read-only secondary.

Signatures cover the path as it was sent, so the raw text is kept beside the decoded names. In a query ``+`` is a space,
in a path it is a plus, as in Azure (a base64 signature with a bare ``+`` fails there, and clients that form-encode a
space in ``prefix=`` work).
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final
from urllib.parse import unquote_to_bytes

from kyanite.wire.malformed import Malformed

SERVICES: Final = ("blob", "queue", "table", "file", "dfs")
SECONDARY: Final = "-secondary"

CACHED_QUERY_LENGTH: Final = 1024
"""Longer queries are not cached, so that clients without access cannot fill the cache with long ones."""

_REMEMBERED_PAIR_LENGTH: Final = 128
_MAX_HOST_LENGTH: Final = 300

_HOST_STYLE: Final = re.compile(r"([a-z0-9]{3,24})(-secondary)?\.(blob|queue|table|file|dfs)\.[^.:/]")
_AUTHORITY: Final = re.compile(r"([a-z0-9._-]+|\[[0-9a-f:.]+\])(?::([0-9]{1,5}))?")
_USUAL_PORTS: Final = {"http": (80,), "https": (443,), "": (80, 443)}
_BAD_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


class Target:
    """The target of a request. ``first`` is a container, queue, table or share, ``rest`` the text after it."""

    __slots__ = ("account", "first", "path", "path_style", "rest", "secondary", "service")

    def __init__(
        self,
        *,
        account: str,
        service: str,
        secondary: bool,
        path_style: bool,
        path: str,
        first: str,
        rest: str,
    ) -> None:
        self.account = account
        """Without the suffix of the secondary; empty when a path-style URL has none."""
        self.service = service
        self.secondary = secondary
        self.path_style = path_style
        self.path = path
        """The whole path as on the wire; signatures cover this."""
        self.first = first
        """The first name below the account, decoded; empty for the account itself."""
        self.rest = rest
        """Everything after the slash that ends ``first``, decoded; empty when there is nothing."""


class Query:
    """The parameters of a query, decoded. Names compare without case, as in Azure.

    Immutable, because instances are cached.
    """

    __slots__ = ("derived", "first", "pairs", "size")

    def __init__(self, pairs: Sequence[tuple[str, str]], size: int) -> None:
        self.pairs = pairs
        """Every parameter in order, names in the sender's case."""
        first: dict[str, str] = {}
        for name, value in pairs:
            first.setdefault(name.lower(), value)
        self.first = first
        """Lower-case name to the first value sent for it."""
        self.size = size
        """The length of its text."""
        self.derived: dict[str, object] = {}
        """Values that pure functions have derived from it, by name."""

    def get(self, name: str) -> str | None:
        return self.first.get(name)


def decode_target(host: str, path: str, service: str) -> Target:
    """The target of a request to the port of ``service``."""
    from_host = _account_in_host(host) if len(host) <= _MAX_HOST_LENGTH else None
    if from_host is None:
        account, _, below = path[1:].partition("/")
        secondary = account.endswith(SECONDARY)
        if secondary:
            account = account[: -len(SECONDARY)]
    else:
        account, secondary, service = from_host
        below = path[1:]
    first, rest = _names(below)
    return Target(
        account=account,
        service=service,
        secondary=secondary,
        path_style=from_host is None,
        path=path,
        first=first,
        rest=rest,
    )


def decode_authority(authority: str, scheme: str = "") -> tuple[str, int | None]:
    """The domain and port of a URL, or of a Host header if there is no scheme.

    The domain is in lower case and without the account and service of a host-style name. The port is None for the
    usual one. Anything else that a URL may have there, such as a user, is refused.
    """
    match = _AUTHORITY.fullmatch(authority.lower())
    if match is None or len(authority) > _MAX_HOST_LENGTH:
        raise Malformed("InvalidUri")
    name, port = match[1], int(match[2]) if match[2] else None
    style = _HOST_STYLE.match(name)
    domain = name if style is None else name[style.end() - 1 :]
    return domain, None if port in _USUAL_PORTS[scheme] else port


def decode_query(query: str) -> Query:
    """Split the query after the ``?``. A parameter without ``=`` has the empty value.

    Busy clients repeat their queries, tokens included, so the last ones of a usual length are cached.
    """
    return _cached_query(query) if len(query) <= CACHED_QUERY_LENGTH else _read_query(query)


def _read_query(query: str) -> Query:
    """Single parameters are cached too: where one is new each time, such as a pop receipt, the others still repeat."""
    return Query(
        tuple(
            [
                _cached_pair(piece) if len(piece) <= _REMEMBERED_PAIR_LENGTH else _read_pair(piece)
                for piece in query.replace("+", " ").split("&")
                if piece
            ]
        ),
        len(query),
    )


def _read_pair(piece: str) -> tuple[str, str]:
    name, _, value = piece.partition("=")
    return decode_percent(name), decode_percent(value)


_cached_query: Final = lru_cache(maxsize=1024)(_read_query)
_cached_pair: Final = lru_cache(maxsize=2048)(_read_pair)


def decode_percent(text: str) -> str:
    """Undo percent-encoding. The octets must be UTF-8, encoded or not."""
    if "%" not in text and text.isascii():
        return text
    if _BAD_PERCENT.search(text):
        raise Malformed("InvalidUri")
    try:
        return unquote_to_bytes(text.encode("latin-1")).decode("utf-8")
    except UnicodeError:
        raise Malformed("InvalidUri") from None


def _names(path: str) -> tuple[str, str]:
    """The first name and the rest, decoded. Only a bare slash separates: an encoded one belongs to a name."""
    first, _, rest = path.partition("/")
    if "%" not in path and path.isascii():
        return first, rest
    return decode_percent(first), decode_percent(rest)


@lru_cache(maxsize=256)
def _account_in_host(host: str) -> tuple[str, bool, str] | None:
    """Account, whether secondary, and service, if the host is of the host style. Pure, so caching is safe."""
    match = _HOST_STYLE.match(host.lower())
    if match is None:
        return None
    account, suffix, service = match.groups()
    return account, suffix is not None, service
