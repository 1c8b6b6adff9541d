"""A store with one container, for tests of blobs below HTTP: a memory engine, a clock to move, extents in memory.

Everything runs inside the call, because nothing in here ever waits.
"""

from collections import Counter
from collections.abc import Awaitable
from contextlib import AbstractContextManager
from functools import partial
from typing import TypeVar

import pytest

from kyanite.engine.api import Snapshot
from kyanite.extents.api import Extent
from kyanite.model import settings
from kyanite.model.blobs import (
    append_blob,
    block_list,
    container,
    delete,
    listing,
    long_block_list,
    page_blob,
    put,
    snapshots,
    staged_blocks,
)
from kyanite.model.blobs import blob as blobs
from kyanite.model.blobs.append_blob import NewAppendBlock
from kyanite.model.blobs.blob import UNCONDITIONAL, AccessConditions, load_to_be_read
from kyanite.model.blobs.block_list import From, NewBlockList
from kyanite.model.blobs.container import ContainerKey
from kyanite.model.blobs.listed_rows import ListedParts
from kyanite.model.blobs.listing import BEGINNING, BlobItem, BlobListing
from kyanite.model.blobs.long_block_list import Pin
from kyanite.model.blobs.page_blob import PageWrite
from kyanite.model.blobs.put import NewBlob
from kyanite.model.blobs.records import APPEND_BLOB, BLOCK_BLOB, PAGE_BLOB, BlobRecord, ContainerRecord
from kyanite.model.blobs.rows import BlobKey
from kyanite.model.blobs.staged_blocks import NewBlock
from kyanite.model.content.content import ExtentPart, Zeros, read_plan
from kyanite.model.content.opening import Reading, open_content
from kyanite.model.maintenance.tasks import step_each, steps
from kyanite.model.records import HttpHeaders
from kyanite.model.verification.rows import check_page
from kyanite.rules.refusals import Reason, Refused
from kyanite.service_properties import DeleteRetention, Retention, ServiceProperties
from kyanite.values import Instant, LeaseId, instant_from_unix_seconds
from tests.model.content.world import Members, Segments, outcome
from tests.model.counted import CountingEngine, unlimited

T = TypeVar("T")

CONTAINER = ContainerKey("acme", "box")
START = instant_from_unix_seconds(1_790_000_000)
TICKS = 10_000_000
WEEK = 7 * 24 * 3600
HTTP = HttpHeaders(content_type="text/plain")
PIN = Pin(b"p" * 16, 1)


class BlobStore:
    def __init__(self) -> None:
        self.now = START
        self.engine = CountingEngine(clock=lambda: self.now)
        self.segments = Segments()
        self._maintenance = steps(self.engine, self.segments, Members(self.segments))
        outcome(container.create(self.engine, CONTAINER, metadata={}, public_access=""))

    # Time, costs and what is stored

    def wait(self, seconds: float) -> None:
        self.now = Instant(self.now + int(seconds * TICKS))

    @property
    def cost(self) -> int:
        """The rows that the last transaction read and wrote."""
        return self.engine.costs[-1]

    def rows(self, prefix: bytes = b"") -> list[bytes]:
        """The keys of all rows with this prefix."""
        with unlimited():
            return outcome(
                self.engine.read(lambda snap: [key for key, _ in snap.scan(prefix, prefix + b"\xff" * 40)])
            )

    def maintain(self) -> int:
        """Run maintenance until nothing is left to do. Returns the largest number of rows in one transaction."""
        first = len(self.engine.costs)
        for _ in range(10_000):
            if not outcome(step_each(self._maintenance)):
                return max(self.engine.costs[first:])
        raise AssertionError("Maintenance does not come to an end.")

    def check_nothing_leaks(self) -> None:
        """Delete the container. Maintenance then leaves no row and no segment."""
        outcome(container.delete(self.engine, CONTAINER, UNCONDITIONAL.conditions, None))
        self.maintain()
        assert [key for key in self.rows() if not key.startswith(b"s")] == []
        assert self.segments.data == {}

    def keep(
        self, *, versioning: bool = False, days: int | None = None, permanent_delete: bool = False
    ) -> None:
        """Set what the account keeps of its blobs."""
        retention = DeleteRetention(Retention(days), permanent_delete)
        properties = ServiceProperties(versioning=versioning, delete_retention=retention)
        outcome(settings.update(self.engine, CONTAINER.account, "blob", properties))

    # Requests

    def extents(self, *bodies: bytes) -> tuple[Extent, ...]:
        return tuple(self.segments.put(*bodies))

    def put(
        self,
        name: str,
        data: bytes | tuple[Extent, ...] = b"data",
        access_conditions: AccessConditions = UNCONDITIONAL,
        *,
        kind: int = BLOCK_BLOB,
        length: int | None = None,
        tier: str = "",
        metadata: dict[str, str] | None = None,
        may_overwrite: bool = True,
    ) -> BlobRecord:
        if length is None:
            length = len(data) if isinstance(data, bytes) else sum(extent.length for extent in data)
        new = NewBlob(data, length, HTTP, metadata or {}, tier, kind)
        return outcome(put.put(self.engine, blob(name), new, access_conditions, may_overwrite=may_overwrite))

    def put_append(self, name: str) -> BlobRecord:
        return self.put(name, b"", kind=APPEND_BLOB)

    def put_pages(self, name: str, length: int) -> BlobRecord:
        return self.put(name, b"", kind=PAGE_BLOB, length=length)

    def append(
        self,
        name: str,
        data: bytes,
        access_conditions: AccessConditions = UNCONDITIONAL,
        *,
        position: int | None = None,
        max_size: int | None = None,
    ) -> BlobRecord:
        block = NewAppendBlock(data, len(data), position, max_size)
        return outcome(append_blob.append_block(self.engine, blob(name), block, access_conditions))

    def write(self, name: str, offset: int, data: bytes) -> BlobRecord:
        request = PageWrite(offset, len(data), data)
        return outcome(page_blob.write(self.engine, blob(name), request, UNCONDITIONAL))

    def stage(
        self,
        name: str,
        block_id: bytes,
        data: bytes | tuple[Extent, ...] = b"block",
        lease_id: LeaseId | None = None,
    ) -> None:
        length = len(data) if isinstance(data, bytes) else sum(extent.length for extent in data)
        outcome(staged_blocks.put_block(self.engine, blob(name), NewBlock(block_id, data, length), lease_id))

    def commit(
        self,
        name: str,
        *block_ids: bytes,
        source: From = From.LATEST,
        access_conditions: AccessConditions = UNCONDITIONAL,
    ) -> BlobRecord:
        new_list = NewBlockList([(source, block_id) for block_id in block_ids], HTTP, {})
        return outcome(
            long_block_list.put_block_list(
                self.engine, blob(name), new_list, access_conditions, may_overwrite=True, pin=PIN
            )
        )

    def blocks(self, name: str, snapshot: Instant | None = None) -> tuple[list[bytes], list[bytes]]:
        """The ids of the committed and of the uncommitted blocks."""
        found = outcome(block_list.get_block_list(self.engine, blob(name, snapshot), UNCONDITIONAL))
        return [block_id for block_id, _ in found.committed], [block_id for block_id, _ in found.uncommitted]

    def snapshot(self, name: str, metadata: dict[str, str] | None = None) -> Instant:
        return outcome(snapshots.take(self.engine, blob(name), metadata or {}, UNCONDITIONAL))[0]

    def delete(
        self,
        name: str,
        snapshot: Instant | None = None,
        *,
        version: Instant | None = None,
        snapshots: delete.Snapshots = delete.Snapshots.REFUSE,
        access_conditions: AccessConditions = UNCONDITIONAL,
    ) -> bool:
        """Returns whether nothing is kept of it."""
        key = blob(name, snapshot, version)
        return outcome(delete.delete(self.engine, key, access_conditions, snapshots))

    def undelete(self, name: str) -> None:
        outcome(delete.undelete(self.engine, blob(name)))

    def record_of_container(self) -> ContainerRecord:
        return outcome(self.engine.read(lambda snap: container.load(snap, CONTAINER)))

    def set_metadata(self, name: str, **metadata: str) -> BlobRecord:
        return outcome(blobs.set_metadata(self.engine, blob(name), metadata, UNCONDITIONAL))

    def listed(self, parts: ListedParts, *, limit: int = 5000, delimiter: str = "") -> list[BlobItem]:
        """All items of a listing, by pages."""
        first = BEGINNING
        items: list[BlobItem] = []
        while True:
            request = BlobListing(delimiter=delimiter, first=first, limit=limit, parts=parts)
            page = outcome(listing.list_blobs(self.engine, CONTAINER, request))
            assert len(page.items) <= limit
            items += page.items
            if page.next_start is None:
                return items
            first = page.next_start

    def verify(self) -> list[str]:
        """What `kyanite verify` finds in the rows."""
        stated: Counter[bytes] = Counter()
        counted: Counter[bytes] = Counter()
        findings: list[str] = []
        start: bytes | None = b""
        while start is not None:
            page = outcome(self.engine.read(partial(check_page, start=start)))
            findings += page.findings
            stated += page.stated
            counted += page.counted
            start = page.next_key
        return findings + [f"{key!r}" for key in stated | counted if stated[key] != counted[key]]

    def record(
        self, name: str, snapshot: Instant | None = None, *, version: Instant | None = None
    ) -> BlobRecord:
        return outcome(self.engine.read(partial(_load, key=blob(name, snapshot, version))))

    def read(self, name: str, snapshot: Instant | None = None, *, version: Instant | None = None) -> bytes:
        """The bytes of a blob, snapshot or version."""
        reading = Reading(partial(_load, key=blob(name, snapshot, version)))
        opened = outcome(self.engine.read(partial(open_content, request=reading)))
        data = b""
        plan = opened.plan
        parts = list(plan.parts)
        while plan.end < opened.length:
            start = plan.end
            left = opened.length - start
            more = partial(read_plan, content=opened.record.content, offset=start, length=left)
            plan = outcome(self.engine.read(more))
            parts += plan.parts
        for part in parts:
            if isinstance(part, Zeros):
                data += bytes(part.length)
            elif isinstance(part, ExtentPart):
                data += self.segments.read(*part)
            else:
                data += part
        return data

    def exists(self, name: str, snapshot: Instant | None = None, *, version: Instant | None = None) -> bool:
        try:
            self.record(name, snapshot, version=version)
        except Refused as refusal:
            if refusal.reason is not Reason.BLOB_NOT_FOUND:
                raise
            return False
        return True


def _load(snap: Snapshot, key: BlobKey) -> BlobRecord:
    return load_to_be_read(snap, key, UNCONDITIONAL)


def blob(name: str, snapshot: Instant | None = None, version: Instant | None = None) -> BlobKey:
    return BlobKey(CONTAINER, name, snapshot, version)


def run(awaitable: Awaitable[T]) -> T:
    return outcome(awaitable)


def refused(reason: Reason) -> AbstractContextManager[object]:
    return pytest.raises(Refused, match=f"^{reason.name}$")
