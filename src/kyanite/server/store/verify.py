"""``kyanite verify``: read everything in a store, and report what is not as it should be.

The engine checks its own files first. Then every row and every extent is read; rows that cannot be read are skipped.
If anything is damaged, a second reading finds the names of the blobs and files that are hurt.

A store that is served meanwhile (``--served``, or one whose engine several machines share) is read without a lock. All
rows are read in one snapshot, in which every count must be right as well. An extent that was freed since is no finding.
Rows that cannot be read are reported and not searched, and nothing is upgraded.

A stopped store of an older format is upgraded first, as ``kyanite serve`` would do: so there is one set of decoders and
what is checked is what would be served. Memory stays bounded whatever the store holds.
"""

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import msgspec
import uvloop

from kyanite.engine.api import EngineError, Snapshot, Steps
from kyanite.engine.clock import wall_clock
from kyanite.model import keys, store_format
from kyanite.model.content.references import ExtentRow, decode_extent
from kyanite.model.records import encode
from kyanite.model.verification.damage import Damage
from kyanite.model.verification.descriptions import descriptions
from kyanite.model.verification.extent_check import ExtentCheck, Span
from kyanite.model.verification.pages import Unreadable, pages, range_of
from kyanite.model.verification.rows import (
    check_page,
    describe_difference,
    describe_unreadable,
    name_of,
)
from kyanite.server.failures import Failure
from kyanite.server.store.api import EMBEDDED_STORE, Store, StoreKind
from kyanite.server.store.factory import StoreFactory, factory_of
from kyanite.server.store.format import check_folder, is_store, make_folder, prepare
from kyanite.server.store.lock import take_store_lock
from kyanite.server.store.tally import Tally
from kyanite.slices import next_slice

_PROBLEMS_MAX = 100
"""Of what the engine finds wrong with its own files."""
_NAMED_MAX = 10_000
"""For so many damaged extents, and as many rows, the names of what they hurt are searched."""


@dataclass(slots=True)
class _Totals:
    """What was read."""

    rows: int = 0
    extents: int = 0
    bytes: int = 0
    findings: int = 0
    unreadable: int = 0
    """Rows, or ranges of rows, that cannot be read."""
    damaged_bytes: int = 0


def verify(
    location: Path, *, as_json: bool = False, kind: StoreKind = EMBEDDED_STORE, is_served: bool = False
) -> None:
    """Print one line for each finding. Raises a Failure if there is any."""
    factory = factory_of(kind, location)
    if factory.engine.is_shared:
        make_folder(location)
        is_served = True
    elif not is_store(location):
        raise Failure(f"There is no store in {location}.")
    if not is_served:
        take_store_lock(location)
    check_folder(location)
    show = _print_json if as_json else _print_text
    verification = _Verification(location, factory, show, is_served=is_served)
    uvloop.run(verification.run())
    totals = verification.totals
    if as_json:
        print(json.dumps({"totals": asdict(totals)}))
    elif not totals.findings:
        print(f"{_text_of(totals)}, all as they were written.")
    elif totals.rows:
        print(f"{_text_of(totals)} were read.{_text_of_damage(totals)}")
    if totals.findings:
        raise Failure(f"Findings in the store {location}: {totals.findings}.")


def _text_of(totals: _Totals) -> str:
    return f"{totals.rows} rows and {totals.extents} extents with {totals.bytes} bytes"


def _text_of_damage(totals: _Totals) -> str:
    if not totals.unreadable and not totals.damaged_bytes:
        return ""
    return (
        f" Stretches of rows that cannot be read: {totals.unreadable}; damaged bytes: {totals.damaged_bytes}."
    )


def _print_text(_kind: str, text: str) -> None:
    print(text)


def _print_json(kind: str, text: str) -> None:
    print(json.dumps({kind: text}, ensure_ascii=False))


class _Verification:
    def __init__(
        self, location: Path, factory: StoreFactory, show: Callable[[str, str], None], *, is_served: bool
    ) -> None:
        self._location = location
        self._factory = factory
        self._is_served = is_served
        self._show = show
        self.totals = _Totals()
        self._extents: dict[bytes, list[Span]] = {}
        self._rows: dict[bytes, Unreadable] = {}

    async def run(self) -> None:
        factory = self._factory
        if not self._is_served:
            for problem in factory.problems(limit=_PROBLEMS_MAX):
                self._find(f"The engine is damaged: {problem}.")
        if not factory.exists():
            return
        await factory.check_shared()
        store = factory.open(wall_clock)
        try:
            if self._is_served:
                await self._check_format(store)
                await self._check_served(store)
            else:
                await self._prepare(store)
                await self._check(store)
            await self._name_what_is_hurt(store)
            if not self._is_served:
                await self._show_reclaimable(store)
        except (EngineError, OSError) as error:
            self._find(f"The store cannot be read: {error}.")
        finally:
            await store.close()

    def _find(self, text: str) -> None:
        self.totals.findings += 1
        self._show("finding", text)

    async def _prepare(self, store: Store) -> None:
        """An engine that is damaged is not written to."""
        try:
            if self.totals.findings:
                found = await store.engine.read(store_format.load)
                if found.format == store_format.FORMAT:
                    return
                raise Failure(
                    f"The store {self._location} is damaged, so it is not upgraded and cannot be verified further."
                )
            await prepare(store.engine, self._location, is_testing=None)
        except (EngineError, msgspec.DecodeError) as error:
            self._find(f"The format of the store cannot be read: {error}.")

    async def _check_format(self, store: Store) -> None:
        """A store that others serve is not upgraded."""
        found = await store.engine.read(store_format.load)
        if found.format != store_format.FORMAT:
            raise Failure(
                f"The store {self._location} has format {found.format}, and this version verifies format"
                f" {store_format.FORMAT} while it is served."
            )

    async def _check_served(self, store: Store) -> None:
        read = await store.engine.read_in_steps(_read_all)
        self.totals.rows = read.rows
        self.totals.unreadable = read.unreadable
        for finding in read.findings:
            self._find(finding)
        for key in read.damaged:
            self._add_row(range_of(key))
        if read.unreadable:
            self._show("note", "References are not counted, because rows are missing.")
        else:
            for difference in read.tally.differences():
                self._find(describe_difference(*difference))
        for key, value in read.tally.kept():
            await self._check_extent_if_there(store, key, decode_extent(value))
        read.tally.close()

    async def _check_extent_if_there(self, store: Store, key: bytes, row: ExtentRow) -> None:
        """As long as its row is there, and a reader has pinned before it looked, so are the bytes."""
        pin = store.extents.pin()
        try:
            if await store.engine.read(lambda snap: snap.get(key)) is not None:
                damage = await self._check_extent(store, key, row)
                if damage:
                    self._find(damage)
        finally:
            pin.release()

    async def _check(self, store: Store) -> None:
        tally = Tally()
        async with aclosing(self._findings(store, tally)) as findings:
            async for finding in findings:
                self._find(finding)
        if self.totals.unreadable:
            self._show("note", "References are not counted, because rows are missing.")
        else:
            for difference in tally.differences():
                self._find(describe_difference(*difference))
        tally.close()

    async def _findings(self, store: Store, tally: Tally) -> AsyncGenerator[str, None]:
        async for page in pages(store.engine, check_page):
            if isinstance(page, Unreadable):
                self.totals.unreadable += 1
                self._add_row(page)
                yield describe_unreadable(page)
                continue
            self.totals.rows += page.rows
            tally.add(page.stated, page.counted)
            for key in page.damaged:
                self._add_row(range_of(key))
            for finding in page.findings:
                yield finding
            for key, row in page.extents:
                if damage := await self._check_extent(store, key, row):
                    yield damage

    def _add_row(self, row: Unreadable) -> None:
        if len(self._rows) < _NAMED_MAX:
            self._rows.setdefault(row.start, row)

    async def _check_extent(self, store: Store, key: bytes, row: ExtentRow) -> str:
        check = ExtentCheck(store.extents, key, row)
        while not check.is_done:
            self.totals.bytes += await check.read_piece()
        self.totals.extents += 1
        if check.damaged:
            self.totals.damaged_bytes += sum(end - start for start, end in check.damaged)
            if len(self._extents) < _NAMED_MAX:
                self._extents[key] = check.damaged
        return check.problem

    async def _name_what_is_hurt(self, store: Store) -> None:
        damage = Damage(self._extents, self._rows.values())
        if not damage:
            return
        named = set()
        async for description in descriptions(store.engine, damage, _next_slice):
            named.add(description.subject)
            self._show("hurt", description.text)
        for key in self._extents.keys() - named:
            self._show("note", f"{name_of(key)}: no client can read anything that refers to it.")
        if len(self._extents) == _NAMED_MAX or len(self._rows) == _NAMED_MAX:
            self._show("note", "There is more damage than names were searched for.")

    async def _show_reclaimable(self, store: Store) -> None:
        """Segments that no row refers to: left behind by uploads that were never committed, until maintenance runs."""
        segments = occupied_bytes = 0
        if self.totals.unreadable:
            return
        async for segment, size in store.extents.segments():
            if not await store.engine.read(partial(_has_extents, segment=segment)):
                segments += 1
                occupied_bytes += size
        if segments:
            text = f"{segments} segments with {occupied_bytes} bytes that no row refers to can be reclaimed."
            self._show("note", text)


@dataclass(slots=True)
class _ReadRows:
    """What all rows of one snapshot showed."""

    tally: Tally
    """It also keeps the rows of extents, whose bytes are read afterwards."""
    rows: int = 0
    unreadable: int = 0
    findings: list[str] = field(default_factory=list)
    damaged: list[bytes] = field(default_factory=list)


def _read_all(snap: Snapshot) -> Steps[_ReadRows]:
    read = _ReadRows(Tally())
    for letter in range(0xFF):
        start: bytes | None = bytes((letter,)) if letter else b""
        end = bytes((letter + 1,))
        while start is not None:
            page = check_page(snap, start, end)
            read.rows += page.rows
            read.findings += page.findings
            read.damaged += page.damaged
            read.tally.add(page.stated, page.counted)
            read.tally.keep((key, encode(row)) for key, row in page.extents)
            start = page.next_key
            if page.is_cut:
                read.unreadable += 1
                read.findings.append(f"Rows from {name_of(start or end)} on cannot be read.")
                start = None
            if page.rows:
                yield
    return read


async def _next_slice(_cost: int) -> None:
    await next_slice()


def _has_extents(snap: Snapshot, segment: bytes) -> bool:
    prefix = keys.extents_of(segment)
    return any(True for _ in snap.scan(prefix, keys.after(prefix), limit=1))
