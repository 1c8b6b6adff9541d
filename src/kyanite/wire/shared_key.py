"""Shared Key and Shared Key Lite: the text that a request's signature covers, and whether the signature is valid.

``Authorization: SharedKey <account>:<base64 of HMAC-SHA256(key, string-to-sign)>``. Clients sign what they
send, so everything here works on header values and the path as they were sent.

Azure's order of ``x-ms-`` headers is a linguistic one in which ``-`` has no weight, and its newest clients follow it;
older ones sort by code point. The two differ only for unusual names (mostly metadata), and the difference makes no
request ambiguous, so either is accepted. For the same reason a signature may cover a header's octets read as UTF-8
or as Latin-1, its white space as it is or folded, and the path of an emulator's secondary with the suffix or without.
A plain request needs one attempt.
"""

import re
from binascii import b2a_base64
from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import sha256
from hmac import compare_digest
from itertools import product
from typing import TYPE_CHECKING, Final, NamedTuple

from kyanite.wire.malformed import Malformed
from kyanite.wire.uri import SECONDARY, Query, Target

if TYPE_CHECKING:
    from hashlib import _Hash

_ZERO_LENGTH_UNSIGNED_SINCE: Final = "2015-02-21"
_EMPTY_HEADERS_SIGNED_SINCE: Final = "2016-05-31"

_SCHEMES: Final = {"sharedkey": False, "sharedkeylite": True}
"""The two schemes, and whether each is the lite one."""

_WHITE_SPACE: Final = re.compile(r"[ \t\r\n]{2,}|[\t\r\n]")

# Azure's order of the characters of header names. "-" and "'" count only when all else is equal.
_ORDER: Final = "!#$%&*.^_`|~+0123456789abcdefghijklmnopqrstuvwxyz"
_FIRST_WEIGHTS: Final = str.maketrans(_ORDER, "".join(map(chr, range(2, len(_ORDER) + 2))), "-'")
_SECOND_WEIGHTS: Final = str.maketrans(_ORDER + "'-", "\x00" * len(_ORDER) + "\x02\x03")


class SharedKey(NamedTuple):
    """An Authorization header of either shared key scheme."""

    lite: bool
    account: str
    signature: str


class Bearer(NamedTuple):
    """An Authorization header with an OAuth token."""

    token: str


def decode_authorization(value: str) -> SharedKey | Bearer:
    """Exactly one credential: the values of a repeated header arrive joined by commas, which no credential has."""
    scheme, _, credentials = value.strip().partition(" ")
    scheme, credentials = scheme.lower(), credentials.strip()
    if scheme in _SCHEMES:
        account, _, signature = credentials.partition(":")
        if account and signature and "," not in credentials:
            return SharedKey(_SCHEMES[scheme], account, signature)
    elif scheme == "bearer" and credentials and "," not in credentials:
        return Bearer(credentials)
    raise Malformed("InvalidAuthenticationInfo")


def encode_authorization(authorization: SharedKey) -> str:
    scheme = "SharedKeyLite" if authorization.lite else "SharedKey"
    return f"{scheme} {authorization.account}:{authorization.signature}"


def sign(key: bytes, text: str) -> str:
    return b2a_base64(_hmac(key, text.encode("utf-8")), newline=False).decode("ascii")


def matches(keys: Sequence[bytes], text: str, signature: str) -> bool:
    """Whether the signature is that of the text under any of the keys, compared in constant time.

    The base64 texts are compared, not what they decode to: a signature has one spelling, and nothing inside, behind or
    instead of it is ignored.
    """
    if not signature.isascii():
        return False
    given = signature.encode("ascii")
    octets = text.encode("utf-8")
    for key in keys:  # noqa: SIM110  # Written out, because it runs for every request.
        if compare_digest(b2a_base64(_hmac(key, octets), newline=False), given):
            return True
    return False


def _hmac(key: bytes, octets: bytes) -> bytes:
    """HMAC-SHA256 (RFC 2104). Written out because the library's one-shot function takes 2.5 times as long."""
    inner_start, outer_start = _padded(key)
    inner, outer = inner_start.copy(), outer_start.copy()
    inner.update(octets)
    outer.update(inner.digest())
    return outer.digest()


@lru_cache(maxsize=64)
def _padded(key: bytes) -> "tuple[_Hash, _Hash]":
    """Both hashes after their padded key. Each account has two keys, and few accounts are busy at a time."""
    block = (sha256(key).digest() if len(key) > 64 else key).ljust(64, b"\0")
    return sha256(bytes(byte ^ 0x36 for byte in block)), sha256(bytes(byte ^ 0x5C for byte in block))


class Signable:
    """The parts of a request that a shared key signature covers."""

    __slots__ = ("headers", "method", "query", "target", "version")

    def __init__(
        self, method: str, target: Target, query: Query, headers: dict[str, str], version: str
    ) -> None:
        self.method = method
        self.target = target
        self.query = query
        self.headers = headers
        """Lower-case name to value."""
        self.version = version
        """The protocol version of the request: it decides about empty headers and zero lengths."""


def verify(authorization: SharedKey, keys: Sequence[bytes], signable: Signable) -> bool:
    """Whether the request was signed with one of the keys of its account."""
    lite, _, signature = authorization
    extras = _signed_extras(signable)
    extras.sort()
    likeliest = _text(signable, lite, extras, signable.target.path)
    return matches(keys, likeliest, signature) or any(
        matches(keys, text, signature) for text in _other_texts(signable, lite, extras)
    )


def string_to_sign(signable: Signable, *, lite: bool) -> str:
    """The text as Azure writes it, which the error for a wrong signature contains."""
    return _text(signable, lite, _service_order(_signed_extras(signable)), signable.target.path)


def _other_texts(signable: Signable, lite: bool, extras: list[tuple[str, str]]) -> Iterator[str]:
    """Every text that a client may have signed, except the most likely one."""
    target = signable.target
    orders = [extras] if target.service == "table" else list(_readings(extras))
    for order, path in list(product(orders, _paths(target)))[1:]:
        yield _text(signable, lite, order, path)


def _text(signable: Signable, lite: bool, extras: Sequence[tuple[str, str]], path: str) -> str:
    """The text, with the extra headers as given. One list, because it is made for every request."""
    target = signable.target
    resource = f"/{target.account}{path or '/'}"
    if target.service == "table":
        return _table_text(signable, lite, resource)
    get = signable.headers.get
    date = "" if "x-ms-date" in signable.headers else get("date", "")
    if lite:
        lines = [signable.method, get("content-md5", ""), get("content-type", ""), date]
    else:
        length = get("content-length", "")
        lines = [
            signable.method,
            get("content-encoding", ""),
            get("content-language", ""),
            "" if length == "0" and signable.version >= _ZERO_LENGTH_UNSIGNED_SINCE else length,
            get("content-md5", ""),
            get("content-type", ""),
            date,
            get("if-modified-since", ""),
            get("if-match", ""),
            get("if-none-match", ""),
            get("if-unmodified-since", ""),
            get("range", ""),
        ]
    lines += [f"{name}:{value}" for name, value in extras]
    if signable.query.pairs:
        resource += _comp(signable.query) if lite else _parameters(signable.query)
    lines.append(resource)
    return "\n".join(lines)


def _table_text(signable: Signable, lite: bool, resource: str) -> str:
    """Tables sign no x-ms- headers, but always a date: that of x-ms-date if there is one."""
    get = signable.headers.get
    date = get("x-ms-date") or get("date", "")
    lines = [date] if lite else [signable.method, get("content-md5", ""), get("content-type", ""), date]
    return "\n".join([*lines, resource + _comp(signable.query)])


def _comp(query: Query) -> str:
    comp = query.get("comp")
    return "" if comp is None else f"?comp={comp}"


def _parameters(query: Query) -> str:
    """Every parameter on its own line, by name in lower case; the values of one name sorted and joined."""
    if len(query.first) == len(query.pairs):
        return "".join([f"\n{name}:{value}" for name, value in sorted(query.first.items())])
    values: dict[str, list[str]] = {}
    for name, value in query.pairs:
        values.setdefault(name.lower(), []).append(value)
    return "".join([f"\n{name}:{','.join(sorted(values[name]))}" for name in sorted(values)])


def _signed_extras(signable: Signable) -> list[tuple[str, str]]:
    """The x-ms- headers, in no particular order yet."""
    extras = [pair for pair in signable.headers.items() if pair[0][:5] == "x-ms-"]
    if signable.version < _EMPTY_HEADERS_SIGNED_SINCE:
        return [(name, value) for name, value in extras if value]
    return extras


def _service_order(extras: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return sorted(extras, key=lambda pair: header_weight(pair[0]))


def header_weight(name: str) -> tuple[str, str]:
    """A sort key in Azure's order, for a name in lower case."""
    return name.translate(_FIRST_WEIGHTS), name.translate(_SECOND_WEIGHTS) + "\x01"


def _readings(extras: list[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    """The header lines in both orders, and with values in every interpretation that differs; the given one first."""
    orders = [extras]
    weighted = _service_order(extras)
    if weighted != extras:
        orders.append(weighted)
    for order in orders:
        yield order
        for read in (_as_utf8, _folded, lambda value: _folded(_as_utf8(value))):
            reading = [(name, read(value)) for name, value in order]
            if reading != order:
                yield reading


def _as_utf8(value: str) -> str:
    """Headers arrive as Latin-1; UTF-8 is decoded as such."""
    if value.isascii():
        return value
    try:
        return value.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return value


def _folded(value: str) -> str:
    return _WHITE_SPACE.sub(" ", value)


def _paths(target: Target) -> list[str]:
    if not (target.path_style and target.secondary):
        return [target.path]
    return [target.path, target.path.replace(SECONDARY, "", 1)]
