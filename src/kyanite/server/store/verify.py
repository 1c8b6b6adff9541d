"""``kyanite verify``: read everything in a stopped store, and report what is not as it should be.

A store of an older format is upgraded first, as ``kyanite serve`` would do: so there is one set of decoders, and what
is checked is what would be served. Memory stays bounded whatever the store holds.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import uvloop

from kyanite.engine.api import Damaged, EngineError, Snapshot
from kyanite.engine.clock import wall_clock
from kyanite.extents.api import Extent
from kyanite.model import keys
from kyanite.model.verification.rows import check_page, describe_difference
from kyanite.server.failures import Failure
from kyanite.server.store.api import Store, StoreKind
from kyanite.server.store.factory import factory_of
from kyanite.server.store.format import check_folder, is_store, prepare
from kyanite.server.store.lock import take_store_lock
from kyanite.server.store.tally import Tally


@dataclass(slots=True)
class _Totals:
    """What was read."""

    rows: int = 0
    extents: int = 0
    bytes: int = 0
    findings: int = 0


def verify(location: Path) -> None:
    """Print one line for each finding. Raises a Failure if there is any."""
    if not is_store(location):
        raise Failure(f"There is no store in {location}.")
    take_store_lock(location)
    check_folder(location)
    totals = uvloop.run(_verify(location))
    if totals.findings:
        raise Failure(f"Findings in the store {location}: {totals.findings}.")
    print(
        f"{totals.rows} rows and {totals.extents} extents with {totals.bytes} bytes, all as they were written."
    )


async def _verify(location: Path) -> _Totals:
    store = factory_of(StoreKind.EMBEDDED, location).open(wall_clock)
    totals = _Totals()
    try:
        await prepare(store.engine, location, is_testing=None)
        async with aclosing(_findings(store, totals)) as findings:
            async for finding in findings:
                totals.findings += 1
                print(finding)
        await _print_reclaimable(store)
    except EngineError as error:
        totals.findings += 1
        print(f"The engine cannot be read: {error}.")
    finally:
        await store.close()
    return totals


async def _findings(store: Store, totals: _Totals) -> AsyncGenerator[str, None]:
    tally = Tally()
    key: bytes | None = b""
    while key is not None:
        page = await store.engine.read(partial(check_page, start=key))
        key = page.next_key
        totals.rows += page.rows
        tally.add(page.stated, page.counted)
        for finding in page.findings:
            yield finding
        for extent in page.extents:
            totals.extents += 1
            totals.bytes += extent.length
            if damage := await _damage(store, extent):
                yield damage
    for difference in tally.differences():
        yield describe_difference(*difference)
    tally.close()


async def _damage(store: Store, extent: Extent) -> str | None:
    """Read the extent, which checks its CRC."""
    try:
        async for _ in store.extents.stream(extent, 0, extent.length):
            pass
    except Damaged as damage:
        return str(damage)
    return None


async def _print_reclaimable(store: Store) -> None:
    """Segments that no row refers to: left behind by uploads that were never committed, until maintenance runs."""
    segments = occupied_bytes = 0
    for segment, size in store.extents.segments():
        if not await store.engine.read(partial(_has_extents, segment=segment)):
            segments += 1
            occupied_bytes += size
    if segments:
        print(f"{segments} segments with {occupied_bytes} bytes that no row refers to can be reclaimed.")


def _has_extents(snap: Snapshot, segment: bytes) -> bool:
    prefix = keys.extents_of(segment)
    return any(True for _ in snap.scan(prefix, keys.after(prefix), limit=1))
