"""Moving one account from a store to another, whatever engines and extents the two have.

All rows of the account are compared with what the target has, and the target is corrected: in the first pass that
copies everything. Passes repeat until one finds nothing to correct. So a migration that was interrupted is one that
finds less to do, and the last pass is the proof that all rows are there. After it every byte of content that was moved
is read back from the target and checked.

The source must not be written meanwhile by clients of the account. Its maintenance may go on.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol

from kyanite.engine.api import Damaged, Engine, OutcomeUnknown, Snapshot
from kyanite.extents.api import PACK_MAX, Extent, Extents, Inspectable, WrittenExtent
from kyanite.extents.crc64 import BlockChecksums
from kyanite.model import account_rows, keys
from kyanite.model.content import interval_rows
from kyanite.model.content.intervals import ENDLESS, Interval
from kyanite.model.content.layer_view import LayerView
from kyanite.model.content.layers import Head, decode_head
from kyanite.model.content.references import decode_extent
from kyanite.model.migration import transactions
from kyanite.model.migration.records import Migration
from kyanite.model.migration.rewriting import (
    Needs,
    NotMoved,
    Portable,
    Translation,
    ported,
    ported_intervals,
)
from kyanite.model.migration.rows import MOVED, Moved, Owner
from kyanite.model.migration.transactions import Changed
from kyanite.model.verification.extent_check import ExtentCheck
from kyanite.model.verification.pages import Rows, take

PAGE_ROWS = 100
PAGE_BYTES = 1024 * 1024
EXTENTS_AT_ONCE = 100
OWNERS_AT_ONCE = 500
INTERVAL_ROWS_AT_ONCE = 4
COMPARED_INTERVALS = 300
UPLOADS = 8
"""How many extents are copied at the same time."""
PIECE_BYTES = 1024 * 1024
PASSES_MAX = 6
CORRECTIONS_MAX = 1000
"""Of one page. One is enough, unless very many rows are there that should not be."""
_REMEMBERED_LAYERS = 100_000


class MovableExtents(Extents, Inspectable, Protocol):
    """What a migration needs of extents."""


class Side(NamedTuple):
    """One of the two stores."""

    engine: Engine
    extents: MovableExtents


@dataclass(slots=True)
class Moving:
    """What a migration has done so far."""

    rows: int = 0
    """Rows that the account has."""
    corrected: int = 0
    """Rows that were written or deleted in the target."""
    extents: int = 0
    bytes: int = 0
    """Of extents that were copied."""
    checked_bytes: int = 0
    """Of extents that were read back."""


class _SourceChanged(Exception):
    """Compaction has changed what was being read: it is read again."""


class AccountMove:
    def __init__(
        self,
        source: Side,
        target: Side,
        account: str,
        on_copied: Callable[[int], object] = lambda _count: None,
        on_checked: Callable[[int], object] = lambda _count: None,
    ) -> None:
        """The last two are told how many bytes of extents were copied and read back."""
        self._source = source
        self._target = target
        self._account = account
        self._on_copied = on_copied
        self._on_checked = on_checked
        self._uploads = asyncio.Semaphore(UPLOADS)
        self._compared: set[int] = set()
        self.done = Moving()

    async def found(self) -> Migration | None:
        """The migration of this account into the target, if one has begun."""
        return await self._target.engine.read(partial(transactions.load, account=self._account))

    async def is_free(self) -> bool:
        """Whether the target has nothing of an account of this name."""
        has_data = await self._target.engine.read(partial(account_rows.has_data, name=self._account))
        return not has_data

    async def run(self, source_name: str) -> None:
        """Move everything, and check it. Raises Changed if the source does not stay as it is."""
        await self._target.engine.run(partial(transactions.begin, account=self._account, source=source_name))
        for number in range(PASSES_MAX):
            corrected = self.done.corrected
            self.done.rows = 0
            self._compared.clear()
            await self._pass(is_first=number == 0)
            if number and self.done.corrected == corrected:
                break
        else:
            raise Changed("it is still being written")
        await self._check_bytes()

    async def give_up(self) -> None:
        """Delete what has moved, before the account was taken over. What owns rows goes after them."""
        for moved in reversed(MOVED):
            async for _, new in self._owners(moved.owner):
                bounds = moved.range_of(self._account, new)
                while await self._target.engine.run(partial(transactions.clear, moved=moved, bounds=bounds)):
                    pass
        await self.forget()

    async def forget(self) -> None:
        """Forget what has moved, after the account was taken over by the target."""
        while await self._target.engine.run(partial(transactions.forget, account=self._account)):
            pass

    # Rows

    async def _pass(self, *, is_first: bool) -> None:
        for moved in MOVED:
            async for old, new in self._owners(moved.owner):
                await self._sync(moved, old, new, is_first=is_first)

    async def _owners(self, owner: Owner) -> AsyncIterator[tuple[int, int]]:
        if owner is Owner.ACCOUNT:
            yield 0, 0
            return
        after = 0
        while page := await self._target.engine.read(
            partial(
                transactions.owners, account=self._account, owner=owner, after=after, limit=OWNERS_AT_ONCE
            )
        ):
            for each in page:
                yield each
            after = page[-1][0]

    async def _sync(self, moved: Moved, old: int, new: int, *, is_first: bool) -> None:
        """Correct the rows of one kind that belong to one owner."""
        start, end = moved.range_of(self._account, old)
        key: bytes | None = start
        while key is not None:
            pin = self._source.extents.pin()
            try:
                page = await self._source.engine.read(partial(_page, start=key, end=end))
                if page.is_cut:
                    raise Damaged("A row of the source cannot be read.")
                translation = await self._translate(moved, page, (moved.owner, old, new), is_first=is_first)
            except _SourceChanged:
                continue
            finally:
                pin.release()
            expected = []
            for row in page.rows:
                try:
                    expected.append(ported(moved, row.key, row.value, translation))
                except NotMoved:
                    continue
            self.done.rows += len(expected)
            await self._correct(moved, expected, self._bounds(moved, key, page.next_key, old, new))
            key = page.next_key

    def _bounds(
        self, moved: Moved, start: bytes, following: bytes | None, old: int, new: int
    ) -> tuple[bytes, bytes] | None:
        """The keys of the target that a page of the source stands for."""
        if moved.rewrite_key is not None:
            return None
        first, end = moved.range_of(self._account, new)
        length = len(moved.range_of(self._account, old)[0])
        return first + start[length:], end if following is None else first + following[length:]

    async def _correct(
        self, moved: Moved, expected: Sequence[Portable], bounds: tuple[bytes, bytes] | None
    ) -> None:
        engine = self._target.engine
        compare = partial(transactions.differences, moved=moved, expected=expected, bounds=bounds)
        correct = partial(transactions.sync, moved=moved, expected=expected, bounds=bounds)
        for _ in range(CORRECTIONS_MAX):
            if not await engine.read(compare):
                return
            self.done.corrected += await engine.run(correct)
        raise Changed("the target is being written")

    async def _translate(
        self, moved: Moved, page: Rows, of: tuple[Owner, int, int], *, is_first: bool
    ) -> Translation:
        """What the rows refer to, moved."""
        in_keys, needs = Needs(), Needs()
        for row in page.rows:
            moved.key(row.key, in_keys)
            moved.rewrite(row.value, needs)
        owner, old, new = of
        translation = Translation(ids={(owner, old): new})
        translation.ids |= await self._ids(in_keys.ids - translation.ids.keys(), needs.ids)
        translation.bodies = await self._source.engine.read(
            partial(transactions.load_bodies, numbers=needs.bodies)
        )
        translation.extents = await self._move_extents(needs.extents)
        for layer in sorted(needs.layers):
            translation.layers[layer] = await self._move_layer(layer)
            if not is_first:
                await self._compare_layer(layer, translation.layers[layer])
        return translation

    async def _ids(
        self, in_keys: Iterable[tuple[Owner, int]], in_values: Iterable[tuple[Owner, int]]
    ) -> dict[tuple[Owner, int], int]:
        """The record of an owner has its id, which moves with it. Ids in keys have moved, or wait to be purged."""
        engine, account = self._target.engine, self._account
        wanted, ordered = list(in_keys), sorted(in_values, key=lambda each: each[1])
        found = {}
        if wanted:
            found = await engine.read(partial(transactions.moved_ids, account=account, ids=wanted))
        if ordered:
            known = await engine.read(partial(transactions.moved_ids, account=account, ids=ordered))
            if len(known) < len(ordered):
                known = await engine.run(partial(transactions.move_ids, account=account, ids=ordered))
            found |= known
        return found

    # Extents

    async def _move_extents(self, extents: Iterable[Extent]) -> dict[Extent, Extent]:
        wanted = sorted(extents, key=lambda each: (each.segment, each.start))
        if not wanted:
            return {}
        read = partial(transactions.moved_extents, account=self._account, extents=wanted)
        found = await self._target.engine.read(read)
        missing = [each for each in wanted if each not in found]
        for first in range(0, len(missing), UPLOADS):
            some = missing[first : first + UPLOADS]
            await self._add_extents(some)
        return await self._target.engine.read(read) if missing else found

    async def _add_extents(self, extents: Sequence[Extent]) -> None:
        target = self._target
        copies = await asyncio.gather(*map(self._copy, extents), return_exceptions=True)
        written = [each for each in copies if isinstance(each, WrittenExtent)]
        try:
            for each in copies:
                if isinstance(each, BaseException):
                    raise each
            pairs = list(zip(extents, written, strict=True))
            await target.engine.run(partial(transactions.add_extents, account=self._account, written=pairs))
        except OutcomeUnknown:
            raise
        except BaseException:
            await target.extents.discard(written)
            raise
        target.extents.commit(written)

    async def _copy(self, extent: Extent) -> WrittenExtent:
        """The bytes of one extent, checked against its CRC as they are read and as they are stored."""
        source, target = self._source.extents, self._target.extents
        if extent.length <= PACK_MAX:
            data = await source.read_cold(extent, 0, extent.length)
            _check_crc(extent, _crc_of(data))
            written = await target.put(data)
        else:
            written = await self._stream(extent)
        if written.crc64 != extent.crc64 or written.length != extent.length:
            await target.discard([written])
            raise Damaged(f"The CRC of {extent} is wrong.")
        self.done.extents += 1
        self.done.bytes += extent.length
        self._on_copied(extent.length)
        return written

    async def _stream(self, extent: Extent) -> WrittenExtent:
        upload = self._target.extents.upload(size_hint=extent.length)
        try:
            for at in range(0, extent.length, PIECE_BYTES):
                length = min(PIECE_BYTES, extent.length - at)
                await upload.write(await self._source.extents.read_cold(extent, at, length))
            written = await upload.finish()
        except BaseException:
            await upload.abort()
            raise
        if len(written) == 1:
            return written[0]
        # The target cuts bodies into shorter extents, which one interval could not name.
        await self._target.extents.discard(written)
        data = await self._source.extents.read_cold(extent, 0, extent.length)
        return await self._target.extents.put(data)

    async def _check_bytes(self) -> None:
        """Read every extent back that was moved."""
        start = b""
        while page := await self._target.engine.read(
            partial(transactions.extents_page, account=self._account, start=start, limit=EXTENTS_AT_ONCE)
        ):
            for _, extent in page:
                await self._check_extent(extent)
            start = page[-1][0] + b"\0"

    async def _check_extent(self, extent: Extent) -> None:
        key = keys.extent(extent.segment, extent.start)
        stored = await self._target.engine.read(lambda snap: snap.get(key))
        if stored is None:
            raise Damaged(f"The row of {extent} is missing in the target.")
        check = ExtentCheck(self._target.extents, key, decode_extent(stored))
        while not check.is_done:
            count = await check.read_piece()
            self.done.checked_bytes += count
            self._on_checked(count)
        if check.damaged:
            raise Damaged(f"In the target: {check.problem}")

    # Layers

    async def _move_layer(self, old: int) -> int:
        """The layer, after those below it. Raises _SourceChanged if it is gone, or is not what it was."""
        target, account = self._target.engine, self._account
        moved = await target.read(partial(transactions.moved_layer, account=account, old=old))
        if moved is not None and moved.is_whole:
            return moved.id
        if moved is not None:
            await target.run(partial(transactions.abandon_layer, account=account, old=old))
        head = await self._source.engine.read(partial(_head, layer=old))
        below = await self._move_layer(head.below) if head.below else 0
        new = await target.run(partial(transactions.begin_layer, account=account, old=old, below=below))
        await self._copy_layer(old, new, head)
        await target.run(partial(transactions.finish_layer, account=account, old=old, new=new))
        return new

    async def _copy_layer(self, old: int, new: int, began: Head) -> None:
        start = 0
        while True:
            head, rows = await self._source.engine.read(partial(_interval_rows, layer=old, start=start))
            if (head.below, head.rewrites) != (began.below, began.rewrites):
                raise _SourceChanged
            if not rows:
                return
            translation = await self._translate_intervals(each for row in rows for each in row)
            moved = [ported_intervals(row, translation) for row in rows]
            await self._target.engine.run(partial(transactions.extend_layer, layer=new, rows=moved))
            start = rows[-1][-1].end

    async def _translate_intervals(self, intervals: Iterable[Interval]) -> Translation:
        needs = Needs()
        needs.intervals(intervals)
        bodies = await self._source.engine.read(partial(transactions.load_bodies, numbers=needs.bodies))
        return Translation(extents=await self._move_extents(needs.extents), bodies=bodies)

    async def _compare_layer(self, old: int, new: int) -> None:
        """What both show, whatever layers it is in: compaction may have worked on either. Once in each pass."""
        if old in self._compared:
            return
        at = 0
        while at < ENDLESS:
            visible, end = await self._source.engine.read(partial(_visible, layer=old, start=at, end=ENDLESS))
            translation = await self._translate_intervals(visible)
            there, moved_end = await self._target.engine.read(
                partial(_visible, layer=new, start=at, end=end, limit=4 * COMPARED_INTERVALS)
            )
            bodies = await self._target.engine.read(
                partial(transactions.load_bodies, numbers={each.body for each in there if each.body})
            )
            if moved_end < end or _pieces(visible, translation.extents, translation.bodies) != _pieces(
                there, None, bodies
            ):
                raise Changed("content was written there that has been moved already")
            at = end
        if len(self._compared) >= _REMEMBERED_LAYERS:
            self._compared.clear()
        self._compared.add(old)


def _page(snap: Snapshot, start: bytes, end: bytes) -> Rows:
    return take(snap, start, end, rows_max=PAGE_ROWS, bytes_max=PAGE_BYTES)


def _head(snap: Snapshot, layer: int) -> Head:
    stored = snap.get(keys.layer(layer))
    if stored is None:
        raise _SourceChanged
    return decode_head(stored)


def _interval_rows(snap: Snapshot, layer: int, start: int) -> tuple[Head, list[list[Interval]]]:
    rows = interval_rows.scan(snap, layer, start, limit=INTERVAL_ROWS_AT_ONCE)
    return _head(snap, layer), [row.intervals for row in rows]


def _visible(
    snap: Snapshot, layer: int, start: int, end: int, limit: int = COMPARED_INTERVALS
) -> tuple[list[Interval], int]:
    """The first intervals with data that a layer shows together with those below it, and how far they go."""
    _head(snap, layer)
    found: list[Interval] = []
    for count, interval in enumerate(LayerView(snap, layer).intervals(start, end), 1):
        if not interval.is_hole:
            found.append(interval)
        if count == limit:
            return found, interval.end
    return found, end


class _Piece(NamedTuple):
    offset: int
    length: int
    extent: Extent | None
    skip: int
    data: bytes
    tag: bytes


def _pieces(
    intervals: Iterable[Interval], extents: dict[Extent, Extent] | None, bodies: dict[int, bytes]
) -> list[_Piece]:
    """The bytes of the intervals, and the ids of blocks, however the bytes are divided among intervals."""
    pieces: list[_Piece] = []
    for each in intervals:
        extent = each.extent if extents is None or each.extent is None else extents[each.extent]
        data = bodies[each.body][each.skip : each.skip + each.length] if each.body else b""
        piece = _Piece(each.offset, each.length, extent, 0 if each.body else each.skip, data, each.tag)
        if pieces and _continues(pieces[-1], piece):
            before = pieces.pop()
            piece = before._replace(length=before.length + piece.length, data=before.data + piece.data)
        pieces.append(piece)
    return pieces


def _continues(before: _Piece, piece: _Piece) -> bool:
    if piece.tag or before.offset + before.length != piece.offset or before.extent != piece.extent:
        return False
    return piece.extent is None or before.skip + before.length == piece.skip


def _crc_of(data: bytes) -> int:
    computed = BlockChecksums()
    computed.add(data)
    return computed.finish()[0]


def _check_crc(extent: Extent, crc: int) -> None:
    if crc != extent.crc64:
        raise Damaged(f"The CRC of {extent} is wrong.")
