"""The stored form of everything, and how it will change.

Records are msgspec structs encoded as arrays: small, fast, and validated when they are read. The stored form changes
in two ways only. A field is added at the end with a default: old rows decode with the default, and a row is rewritten
whenever its resource is. Any other change raises the format of the store (``store_format.py``) and comes with a step
that rewrites the rows concerned before the store is served (``server/store/upgrades.py``).
"""

from collections.abc import Callable
from typing import TypeVar

import msgspec

from kyanite.model.content.content import Content
from kyanite.rules.leases import NO_LEASE, Lease
from kyanite.rules.tiers import Rehydration, Tiering
from kyanite.values import ETag, Instant, etag_of

R = TypeVar("R")


class Policy(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A stored access policy. What is None is left to the token; times are kept as the instants they name."""

    id: str
    starts_at: Instant | None = None
    expires_at: Instant | None = None
    permissions: str | None = None


class ContainerRecord(msgspec.Struct, array_like=True, frozen=True, gc=False):
    id: int
    created_at: Instant
    modified_at: Instant
    metadata: dict[str, str]
    public_access: str = ""
    policies: tuple[Policy, ...] = ()
    lease: Lease = NO_LEASE

    @property
    def etag(self) -> ETag:
        return etag_of(self.modified_at)


BLOCK_BLOB = 0
PAGE_BLOB = 1
APPEND_BLOB = 2


class HttpHeaders(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The headers a client stores with a blob and gets back with it. Empty means unset."""

    content_type: str = ""
    content_encoding: str = ""
    content_language: str = ""
    cache_control: str = ""
    content_disposition: str = ""
    content_md5: bytes = b""


class CopyState(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Where a blob was copied from. A copy is complete from the beginning, so this never changes."""

    id: str
    source: str
    completed_at: Instant
    length: int


class BlobRecord(msgspec.Struct, array_like=True, frozen=True, gc=False):
    modified_at: Instant
    created_at: Instant
    kind: int
    length: int
    content: Content
    http: HttpHeaders
    metadata: dict[str, str]
    lease: Lease = NO_LEASE
    tier: str = ""
    """The access tier a client chose; empty while it is only inferred."""
    tier_changed_at: Instant | None = None
    """When it was chosen, or came into force."""
    copy: CopyState | None = None
    sequence_number: int = 0
    """Of a page blob: a number of the client's own, to be compared with by later writes."""
    appended: int = 0
    """Of an append blob: how many blocks were appended to it."""
    rehydration: Rehydration | None = None
    """Of an archived block blob that has been asked back."""
    is_sealed: bool = False
    """Of an append blob: nothing is appended to it any more."""

    @property
    def etag(self) -> ETag:
        return etag_of(self.modified_at)

    @property
    def tiering(self) -> Tiering:
        return Tiering(self.tier, self.tier_changed_at, self.rehydration)


_encoder = msgspec.msgpack.Encoder()
encode: Callable[[object], bytes] = _encoder.encode
decode_container: Callable[[bytes], ContainerRecord] = msgspec.msgpack.Decoder(ContainerRecord).decode
decode_blob: Callable[[bytes], BlobRecord] = msgspec.msgpack.Decoder(BlobRecord).decode
