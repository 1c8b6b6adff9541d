"""The records of blobs and containers, as they are stored. The transactions over them are in the modules beside."""

from collections.abc import Callable
from functools import lru_cache

import msgspec

from kyanite.model.content.content import Content
from kyanite.model.records import CopyState, HttpHeaders, Policy, Record
from kyanite.rules.immutability import BlobProtection, BlobTimes, ContainerProtection
from kyanite.rules.lease_records import NO_LEASE, Lease
from kyanite.rules.soft_delete import Change, Deletion
from kyanite.rules.tags import NO_TAGS, Tags
from kyanite.rules.tiers import Rehydration, Tiering
from kyanite.values import ETag, Instant, etag_of, later

BLOCK_BLOB = 0
PAGE_BLOB = 1
APPEND_BLOB = 2

STAGING_LIFETIME_SECONDS = 7 * 24 * 3600
"""How long a staging area lives after its last block."""


class ContainerRecord(Record, frozen=True):
    id: int
    created_at: Instant
    modified_at: Instant
    metadata: dict[str, str]
    public_access: str = ""
    policies: tuple[Policy, ...] = ()
    lease: Lease = NO_LEASE
    protection: ContainerProtection | None = None
    """Its immutability policy and legal holds; None when it has never had any."""

    @property
    def etag(self) -> ETag:
        return etag_of(self.modified_at)


class BlobRecord(Record, frozen=True):
    """A base blob, a snapshot or a previous version."""

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
    """Of a page blob: a number that clients set and that conditions of later writes compare with."""
    appended: int = 0
    """Of an append blob: the number of blocks appended to it."""
    rehydration: Rehydration | None = None
    """Of an archived block blob that is being rehydrated."""
    is_sealed: bool = False
    """Of an append blob: no more blocks can be appended."""
    version_at: Instant | None = None
    """The version id; None of a snapshot, and of a base blob that was written while versioning was off."""
    is_previous: bool = False
    """Of a version: it is not the current one."""
    tags: Tags = NO_TAGS
    """Those of a base blob are in the index too (``tag_index.py``)."""
    protection: BlobProtection | None = None
    """Its own immutability policy and legal hold, in a container with version-level immutability."""

    @property
    def etag(self) -> ETag:
        return etag_of(self.modified_at)

    @property
    def times(self) -> BlobTimes:
        return BlobTimes(self.created_at, self.modified_at, self.kind == APPEND_BLOB)

    @property
    def tiering(self) -> Tiering:
        return Tiering(self.tier, self.tier_changed_at, self.rehydration)


class DeletedBlob(Record, frozen=True):
    """A blob, snapshot or version that is deleted and can be restored."""

    deletion: Deletion
    blob: BlobRecord


class Staging(Record, frozen=True):
    """The head of a staging area."""

    id: int
    block_id_length: int
    count: int
    last_at: Instant

    def is_alive(self, now: Instant) -> bool:
        return now < later(self.last_at, STAGING_LIFETIME_SECONDS)


decode_container: Callable[[bytes], ContainerRecord] = msgspec.msgpack.Decoder(ContainerRecord).decode
decode_blob: Callable[[bytes], BlobRecord] = msgspec.msgpack.Decoder(BlobRecord).decode
remembered_blob: Callable[[bytes], BlobRecord] = lru_cache(maxsize=1024)(decode_blob)
"""The same for blobs that are read again and again: the bytes of a row are those of one record."""
decode_deleted: Callable[[bytes], DeletedBlob] = msgspec.msgpack.Decoder(DeletedBlob).decode
decode_changes: Callable[[bytes], list[Change]] = msgspec.msgpack.Decoder(list[Change]).decode
decode_staging: Callable[[bytes], Staging] = msgspec.msgpack.Decoder(Staging).decode
