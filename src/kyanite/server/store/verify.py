"""``kyanite verify``: read every extent that a stopped store refers to, and check its CRC."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import uvloop

from kyanite.engine.api import Snapshot
from kyanite.engine.clock import wall_clock
from kyanite.extents.api import SEGMENT_BYTES, Damaged, Extent
from kyanite.model import keys
from kyanite.model.content.references import decode_extent
from kyanite.server.failures import Failure
from kyanite.server.store.api import Store, StoreKind
from kyanite.server.store.factory import factory_of
from kyanite.server.store.format import check_folder, is_store, prepare
from kyanite.server.store.lock import take_store_lock

_PAGE = 1000


@dataclass(slots=True)
class Findings:
    extents: int = 0
    bytes: int = 0
    damages: list[str] = field(default_factory=list)


def verify(location: Path) -> None:
    """Print what was found. Raises a Failure if anything is damaged."""
    if not is_store(location):
        raise Failure(f"There is no store in {location}.")
    take_store_lock(location)
    check_folder(location)
    findings = uvloop.run(_verify(location))
    for damage in findings.damages:
        print(damage)
    if findings.damages:
        raise Failure(f"{len(findings.damages)} of {findings.extents} extents in {location} are damaged.")
    print(f"{findings.extents} extents with {findings.bytes} bytes, all as they were written.")


async def _verify(location: Path) -> Findings:
    store = factory_of(StoreKind.EMBEDDED, location).open(wall_clock)
    findings = Findings()
    try:
        await prepare(store.engine, location, is_testing=None)
        async for extent in _extents(store):
            findings.extents += 1
            findings.bytes += extent.length
            try:
                async for _ in store.extents.stream(extent, 0, extent.length):
                    pass
            except Damaged as damage:
                findings.damages.append(str(damage))
    finally:
        await store.close()
    return findings


async def _extents(store: Store) -> AsyncIterator[Extent]:
    """Every extent that has a row, a page at a time."""
    start = keys.EXTENTS
    while True:
        page = await store.engine.read(partial(_page, start))
        for key, value in page:
            segment, offset = key[1 : 1 + SEGMENT_BYTES], int.from_bytes(key[1 + SEGMENT_BYTES :], "big")
            row = decode_extent(value)
            yield Extent(segment, offset, row.length, row.crc64)
        if len(page) < _PAGE:
            return
        start = page[-1][0] + b"\0"


def _page(start: bytes, snapshot: Snapshot) -> list[tuple[bytes, bytes]]:
    return list(snapshot.scan(start, keys.after(keys.EXTENTS), limit=_PAGE))
