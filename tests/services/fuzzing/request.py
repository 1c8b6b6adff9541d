"""A request before it is bytes: parts that mutations can change, and that are signed at the end."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from urllib.parse import quote

Pairs = list[tuple[str, str]]
_SAFE_IN_PATH = "/~!$&'()*+,;=:@-._"


class Framing(Enum):
    """How the body is announced. All but the first two are mistakes, after which the connection is not used again."""

    LENGTH = "length"
    CHUNKED = "chunked"
    TOO_SHORT = "too short"
    """Less comes than was announced."""
    TOO_LONG = "too long"
    BROKEN = "broken"
    """Bytes of the head or between the chunks are wrong."""


class Credentials(Enum):
    KEY = "key"
    KEY_LITE = "key lite"
    ACCOUNT_SAS = "account SAS"
    SERVICE_SAS = "service SAS"
    NONE = "none"
    OTHER_KEY = "other key"
    """The key of another account."""
    BEARER = "bearer token"
    USER_DELEGATION = "user delegation SAS"


@dataclass
class FuzzRequest:
    service: str
    label: str
    """The operation that it was made for."""
    method: str
    path: str
    """Below the account, not encoded; it begins with a slash."""
    query: Pairs = field(default_factory=list)
    headers: Pairs = field(default_factory=list)
    body: bytes = b""
    credentials: Credentials = Credentials.KEY
    framing: Framing = Framing.LENGTH
    raw_query: str | None = None
    """The query as it is sent, if it is not the encoded one."""
    raw_path: str | None = None
    spoiled_headers: Pairs = field(default_factory=list)
    """Set after signing, in place of what is there."""
    names_account_in_host: bool = False
    spoils_token: bool = False
    """Fields of the shared access signature are changed."""
    spoil_seed: int = 0
    """What the bytes are broken with."""

    def copy(self) -> "FuzzRequest":
        return replace(
            self,
            query=list(self.query),
            headers=list(self.headers),
            spoiled_headers=list(self.spoiled_headers),
        )

    def header(self, name: str) -> str | None:
        return next((value for each, value in self.headers if each.lower() == name.lower()), None)

    def set_header(self, name: str, value: str) -> None:
        self.headers = [pair for pair in self.headers if pair[0].lower() != name.lower()]
        self.headers.append((name, value))

    def encoded_path(self, account: str) -> str:
        below = self.raw_path if self.raw_path is not None else quote(self.path, safe=_SAFE_IN_PATH)
        if self.names_account_in_host:
            return below if below.startswith("/") else f"/{below}"
        return f"/{account}{below}"

    def encoded_query(self) -> str:
        if self.raw_query is not None:
            return self.raw_query
        return encode_query(self.query)


def encode_query(pairs: Sequence[tuple[str, str]]) -> str:
    return "&".join(f"{quote(name, safe='$')}={quote(value, safe='~')}" for name, value in pairs)


def head_bytes(method: str, target: str, headers: Sequence[tuple[str, str]]) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


def chunks_of(body: bytes, size: int) -> bytes:
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
