"""The codec of stored records, and what the records of several resources share. Each record is beside its resource.

Records are msgspec structs encoded as arrays: small, fast, and validated when they are read. The stored form changes
in two ways only. A field is added at the end with a default: old rows decode with the default, and a row is rewritten
whenever its resource is. Any other change raises the format of the store (``store_format.py``) and comes with a step
that rewrites the rows concerned before the store is served (``server/store/upgrades.py``).
"""

from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from kyanite.values import Instant

R = TypeVar("R")


class Value(msgspec.Struct, frozen=True, gc=False):
    """The base of values that are passed on and never stored: cheap to make, and immutable."""


class NamedKey(Value, frozen=True):
    """The base of the keys of what an account holds by name."""

    account: str
    name: str


class AtInstant(Value, Generic[R], frozen=True):
    """A record and the instant at which it was read: lease states depend on the time."""

    record: R
    at: Instant


class Record(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The base of what is stored. Fields are only ever added at the end, with a default."""


class Policy(Record, frozen=True):
    """A stored access policy. What is None is left to the token; times are kept as the instants they name."""

    id: str
    starts_at: Instant | None = None
    expires_at: Instant | None = None
    permissions: str | None = None


class HttpHeaders(Record, frozen=True):
    """The headers a client stores with a blob and gets back with it. Empty means unset."""

    content_type: str = ""
    content_encoding: str = ""
    content_language: str = ""
    cache_control: str = ""
    content_disposition: str = ""
    content_md5: bytes = b""


class CopyState(Record, frozen=True):
    """Where a blob was copied from. A copy is complete from the beginning, so this never changes."""

    id: str
    source: str
    completed_at: Instant
    length: int


encode: Callable[[object], bytes] = msgspec.msgpack.Encoder().encode
