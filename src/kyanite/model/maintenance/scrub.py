"""The scrub: reads everything that is stored, slowly and again and again, to find damage before a client does.

A pass goes through all rows in the order of their keys, which lets the engine check them, and at each extent's row
through its bytes. How far it has come is a row too, so a pass goes on after a restart. What is damaged is reported with
the names of what it hurts, once in each pass.

What an older version has stored gets checksums on the way: blocks of extents in the extent's row, rows by being put
once more.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from kyanite.engine.api import Engine, Snapshot, Transaction
from kyanite.extents.api import Inspectable
from kyanite.model import keys, scrub_state
from kyanite.model.content.references import ExtentRow, decode_extent
from kyanite.model.maintenance.pace import Pace
from kyanite.model.records import encode
from kyanite.model.scrub_state import ScrubState
from kyanite.model.verification.damage import Damage
from kyanite.model.verification.descriptions import descriptions
from kyanite.model.verification.extent_check import ExtentCheck, Span
from kyanite.model.verification.hurt import ROW_COST_BYTES
from kyanite.model.verification.pages import Row, Unreadable, pages, range_of, read_if_possible, take
from kyanite.model.verification.rows import describe_unreadable, name_of
from kyanite.values import Instant, later

PASS_EVERY_SECONDS = 24 * 3600.0
"""From the beginning of one pass to that of the next, unless a pass takes longer."""
BEGIN_AFTER_SECONDS = 60.0
"""After the start of the process, which has more urgent work then."""
SAVE_EVERY_SECONDS = 10.0
REPORT_AFTER_SECONDS = 60.0
"""To name what is hurt takes a search through all records, so what is found within this time is named together."""
REPORT_MAX = 1_000
"""So many damaged extents and rows are named together, and remembered."""
NAMES_MAX = 100
"""How many names of hurt things a report has."""

_ROWS_AT_ONCE = 250
_BYTES_AT_ONCE = 512 * 1024
_REWRITTEN_AT_ONCE = 100


class FoundDamage(NamedTuple):
    """One damaged extent or row, or rows that follow one another."""

    text: str
    hurt: list[str]
    """What it hurts, some of it if that is much."""
    hurt_count: int


class ScrubFigures(msgspec.Struct):
    """What the scrub of this process has done, and how much damage the store has as far as is known."""

    bytes: int = 0
    passes: int = 0
    damaged_extents: int = 0
    damaged_rows: int = 0


class _Page(NamedTuple):
    start: bytes
    extents: list[Row]
    without_checksum: list[bytes]
    row_count: int
    size_bytes: int
    next_key: bytes | None
    is_cut: bool


class Scrub:
    """One process of a store runs it."""

    def __init__(
        self, engine: Engine, extents: Inspectable, pace: Pace, report: Callable[[FoundDamage], None]
    ) -> None:
        self._engine = engine
        self._extents = extents
        self._pace = pace
        self._report = report
        self.figures = ScrubFigures()
        self._begin_at: Instant | None = None
        self._state = ScrubState()
        self._saved_at = 0.0
        self._pending_extents: dict[bytes, list[Span]] = {}
        self._pending_rows: list[Unreadable] = []
        self._pending_texts: dict[bytes, str] = {}
        self._pending_since = 0.0

    async def step(self) -> bool:
        """Run a pass to its end, if one is due. False if none is."""
        now = await self._engine.read(lambda snap: snap.now)
        if self._begin_at is None:
            self._begin_at = later(now, BEGIN_AFTER_SECONDS)
            self._state = await read_if_possible(self._engine, scrub_state.load) or ScrubState()
            self._count()
        if now < self._begin_at:
            return False
        if self._state.is_complete:
            if self._state.began_at and now < later(self._state.began_at, PASS_EVERY_SECONDS):
                if self._state.damaged and self._pace.clock() - self._saved_at >= REPORT_AFTER_SECONDS:
                    await self._save()
                return False
            self._state = ScrubState(now, is_complete=False, damaged_before=self._state.damaged)
        await self._run_pass()
        return True

    async def _run_pass(self) -> None:
        async for page in pages(self._engine, _read_page, self._state.position):
            if isinstance(page, Unreadable):
                self._add_damage(page.subject, describe_unreadable(page), rows=[page])
                continue
            await self._come_to(page.start)
            self.figures.bytes += page.size_bytes
            await self._pace.spend(page.size_bytes + page.row_count * ROW_COST_BYTES)
            await self._add_row_checksums(page.without_checksum)
            for row in page.extents:
                await self._check_extent(row)
                await self._come_to(row.key + b"\0")
        await self._report_pending()
        self.figures.passes += 1
        self._state = replace(self._state, is_complete=True, position=b"", damaged_before=())
        await self._save()

    async def _come_to(self, position: bytes) -> None:
        """Everything before this key was read."""
        self._state = replace(self._state, position=position)
        now = self._pace.clock()
        if self._pending_texts:
            is_due = now - self._pending_since >= REPORT_AFTER_SECONDS
            if is_due or len(self._pending_texts) >= REPORT_MAX:
                await self._report_pending()
        elif now - self._saved_at >= SAVE_EVERY_SECONDS:
            await self._save()

    # Extents

    async def _check_extent(self, row: Row) -> None:
        try:
            check = ExtentCheck(self._extents, row.key, decode_extent(row.value))
        except msgspec.DecodeError:
            self._add_damage(row.key, f"{name_of(row.key)}: it cannot be decoded.", rows=[range_of(row.key)])
            return
        while not check.is_done:
            pin = self._extents.pin()
            try:
                if await read_if_possible(self._engine, lambda snap: snap.get(row.key)) is None:
                    return  # Freed since its row was read: its bytes may be gone.
                count = await check.read_piece()
            finally:
                pin.release()
            self.figures.bytes += count
            await self._pace.spend(count)
        if check.damaged:
            self._add_damage(row.key, check.problem, spans=check.damaged)
        elif checksums := check.missing_checksums:
            await self._engine.run(
                partial(_add_checksums, key=row.key, checksums=checksums, length=check.extent.length),
                durable=False,
            )

    async def _add_row_checksums(self, some: list[bytes]) -> None:
        for first in range(0, len(some), _REWRITTEN_AT_ONCE):
            chunk = some[first : first + _REWRITTEN_AT_ONCE]
            size = await self._engine.run(partial(_put_again, some=chunk), durable=False)
            await self._pace.spend(size + len(chunk) * ROW_COST_BYTES)

    # Damage

    def _add_damage(
        self, subject: bytes, text: str, *, spans: list[Span] | None = None, rows: Iterable[Unreadable] = ()
    ) -> None:
        if not self._pending_texts:
            self._pending_since = self._pace.clock()
        self._pending_texts[subject] = text
        self._pending_rows += rows
        if spans:
            self._pending_extents[subject] = spans

    async def _report_pending(self) -> None:
        """Name what is hurt, and only then store that the pass has come beyond it."""
        if not self._pending_texts:
            return
        hurt: dict[bytes, list[str]] = {}
        counts: dict[bytes, int] = {}
        damage = Damage(self._pending_extents, self._pending_rows)
        async for each in descriptions(self._engine, damage, self._pace.spend):
            counts[each.subject] = counts.get(each.subject, 0) + 1
            if counts[each.subject] <= NAMES_MAX:
                hurt.setdefault(each.subject, []).append(each.text)
        for subject, text in self._pending_texts.items():
            self._report(FoundDamage(text, hurt.get(subject, []), counts.get(subject, 0)))
        damaged = {*self._state.damaged, *self._pending_texts}
        self._state = replace(self._state, damaged=tuple(sorted(damaged)[:REPORT_MAX]))
        self._pending_texts, self._pending_extents, self._pending_rows = {}, {}, []
        await self._save()

    # State

    async def _save(self) -> None:
        """Store how far the pass has come, without damage that is gone: freed extents, and rows that were replaced."""
        damaged = [key for key in self._state.damaged if await self._is_still_damaged(key)]
        before = [key for key in self._state.damaged_before if await self._is_still_damaged(key)]
        self._state = replace(self._state, damaged=tuple(damaged), damaged_before=tuple(before))
        self._saved_at = self._pace.clock()
        self._count()
        await self._engine.run(partial(scrub_state.save, state=self._state), durable=False)

    async def _is_still_damaged(self, key: bytes) -> bool:
        end = key + b"\0" if key[:1] == keys.EXTENTS else keys.after(key[:1])
        found = await read_if_possible(self._engine, lambda snap: list(snap.scan(key, end, limit=1)))
        return found is None or (key[:1] == keys.EXTENTS and bool(found))

    def _count(self) -> None:
        damaged = {*self._state.damaged, *self._state.damaged_before}
        extents = sum(key[:1] == keys.EXTENTS for key in damaged)
        self.figures.damaged_extents = extents
        self.figures.damaged_rows = len(damaged) - extents


def _read_page(snap: Snapshot, start: bytes, end: bytes) -> _Page:
    found = take(snap, start, end, rows_max=_ROWS_AT_ONCE, bytes_max=_BYTES_AT_ONCE)
    without_checksum = []
    if found.rows and not found.is_cut:
        without_checksum = snap.without_checksum(start, found.rows[-1].key + b"\0")
    return _Page(
        start,
        [row for row in found.rows if row.key[:1] == keys.EXTENTS],
        without_checksum,
        len(found.rows),
        sum(len(row.value) for row in found.rows),
        found.next_key,
        found.is_cut,
    )


def _put_again(tx: Transaction, some: list[bytes]) -> int:
    """Put rows with the values that they have, which gives them checksums; how many bytes these are."""
    size = 0
    for key, value in zip(some, tx.get_many(some), strict=True):
        if value is not None:
            tx.put(key, value)
            size += len(value)
    return size


def _add_checksums(tx: Transaction, key: bytes, checksums: bytes, length: int) -> None:
    """Unless the extent was freed meanwhile."""
    stored = tx.get(key)
    row: ExtentRow | None = None if stored is None else decode_extent(stored)
    if row is not None and row.length == length and not row.checksums:
        tx.put(key, encode(replace(row, checksums=checksums)))
