"""Put Block List with more blocks than one transaction takes.

The list is found valid in one snapshot, read in steps. Then bounded transactions write its intervals into a layer of
its own and count their references. Nothing refers to that layer but a pinned read of this process, so it disappears
with the process. At last one small transaction checks everything once more, as that of a short list does, and gives the
layer to the blob. The former content and the staging area are left to maintenance.

The blocks must stay as they were found. So every one of these transactions compares the staging area and the content
of the blob with what the snapshot had. Another client's Put Block or Put Block List in between makes the work begin
again, which counts as if this request had come after that one. So does a failover that has lost a part of the layer.
"""

from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from kyanite.engine.api import Engine, EngineBusy, Snapshot, Steps, Transaction
from kyanite.model.blobs import block_list, rows, staged_blocks
from kyanite.model.blobs.blob import AccessConditions, scope_of
from kyanite.model.blobs.block_list import ENTRIES_AT_ONCE, From, ListTooLong, NewBlockList
from kyanite.model.blobs.put import Destination, prepare
from kyanite.model.blobs.records import BLOCK_BLOB, BlobRecord
from kyanite.model.blobs.rows import BlobKey, StoredName
from kyanite.model.content import blocks, layers, reading, references
from kyanite.model.content.blocks import Block
from kyanite.model.content.content import NO_CONTENT, Content
from kyanite.model.content.interval_rows import ROW_MAX
from kyanite.model.content.intervals import Interval
from kyanite.slices import emptied, next_slice

_INTERVALS_PER_TRANSACTION = ROW_MAX
_ENTRIES_PER_STEP = 250
_ATTEMPTS = 8


Check = Callable[[Snapshot], Destination]
"""Loads what is stored under the name, or refuses the request."""


class _Changed(Exception):
    """Another client changed the blob or its staging area meanwhile, or a part of the layer was lost."""


class Pin(msgspec.Struct, frozen=True):
    """The pinned read under which a layer is prepared: a process, and a number that it uses for no other."""

    owner: bytes
    number: int


class _Found(msgspec.Struct, frozen=True):
    """The blocks of the list, laid out, and what was stored when they were found."""

    old: StoredName
    intervals: list[Interval]
    length: int


async def put_block_list(
    engine: Engine,
    blob: BlobKey,
    new_list: NewBlockList,
    access_conditions: AccessConditions,
    *,
    may_overwrite: bool,
    pin: Pin,
) -> BlobRecord:
    """Make the blob of exactly these blocks, however many. Staged blocks that are not in the list are abandoned."""
    if len(new_list.entries) <= ENTRIES_AT_ONCE:
        try:
            return await block_list.put_short_list(
                engine, blob, new_list, access_conditions, may_overwrite=may_overwrite
            )
        except ListTooLong:
            pass
    check = partial(
        prepare,
        blob=blob,
        access_conditions=access_conditions,
        may_overwrite=may_overwrite,
        kind=BLOCK_BLOB,
        protection=new_list.protection,
    )

    def publish(tx: Transaction, layer: int, found: _Found) -> BlobRecord:
        target = check(tx)
        _check_unchanged(target.old, found.old)
        _check_kept(tx, layer, found.length)
        reading.forget_pin(tx, pin.owner, pin.number)
        record = block_list.new_record(new_list, target, Content(layer=layer), found.length, tx.now)
        rows.replace(tx, target.old, record)
        return record

    for _ in range(_ATTEMPTS):
        found = await engine.read_in_steps(partial(_find, check=check, entries=new_list.entries))
        try:
            layer = await _prepare(engine, found, pin)
            record = await engine.run(partial(publish, layer=layer, found=found), scope_of(blob))
            await emptied(found.intervals)
            return record
        except _Changed:
            await engine.run(partial(_discard, pin=pin), durable=False)
        except BaseException:
            await engine.run(partial(_discard, pin=pin), durable=False)
            raise
    raise EngineBusy("other clients keep changing the blob while its block list is prepared")


def _discard(tx: Transaction, pin: Pin) -> None:
    """Nothing happens if the layer was not made or is part of the blob."""
    reading.release_content(tx, pin.owner, pin.number)


# Finding the blocks


def _find(snap: Snapshot, check: Check, entries: Sequence[tuple[From, bytes]]) -> Steps[_Found]:
    """Find every block of the list, or refuse the list."""
    old = check(snap).old
    area = old.staging(snap.now)
    committed: dict[bytes, Block] | None = None
    intervals: list[Interval] = []
    length = 0
    for first in range(0, len(entries), _ENTRIES_PER_STEP):
        if first:
            yield
        some = entries[first : first + _ENTRIES_PER_STEP]
        ids = list({tag for source, tag in some if source is not From.COMMITTED})
        loaded = staged_blocks.load(snap, area, ids) if area is not None else {}
        staged = {tag: Block(tag, block.content.intervals) for tag, block in loaded.items()}
        if committed is None and any(source is From.COMMITTED or tag not in staged for source, tag in some):
            committed = yield from _committed(snap, old)
        chosen = block_list.choose(some, staged, committed or {})
        intervals += blocks.laid_out(chosen, length)
        length = intervals[-1].end
    while committed:
        for _ in range(min(len(committed), 2 * _ENTRIES_PER_STEP)):  # To free them all takes milliseconds.
            committed.popitem()
        yield
    return _Found(old, intervals, length)


def _committed(snap: Snapshot, old: StoredName) -> Steps[dict[bytes, Block]]:
    found: dict[bytes, Block] = {}
    if old.record is not None:
        for count, block in enumerate(blocks.blocks_of(snap, old.record.content), 1):
            if block.tag:
                found[block.tag] = block
            if count % _ENTRIES_PER_STEP == 0:
                yield
    return found


# Preparing the layer


async def _prepare(engine: Engine, found: _Found, pin: Pin) -> int:
    layer = await engine.run(partial(_begin, found=found, pin=pin), durable=False)
    for first in range(0, len(found.intervals), _INTERVALS_PER_TRANSACTION):
        await next_slice()
        some = found.intervals[first : first + _INTERVALS_PER_TRANSACTION]
        await engine.run(partial(_extend, found=found, layer=layer, intervals=some), durable=False)
    return layer


def _begin(tx: Transaction, found: _Found, pin: Pin) -> int:
    _check_rows(tx, found)
    layer = tx.new_id()
    layers.create(tx, layer, [])
    reading.keep_pin(tx, pin.owner, pin.number, layer)
    return layer


def _extend(tx: Transaction, found: _Found, layer: int, intervals: Sequence[Interval]) -> None:
    _check_rows(tx, found)
    _check_kept(tx, layer, intervals[0].offset)
    references.add(tx, intervals)
    layers.extend(tx, layer, intervals)


def _check_kept(tx: Transaction, layer: int, end: int) -> None:
    if not layers.reaches(tx, layer, end):
        raise _Changed


def _check_rows(tx: Transaction, found: _Found) -> None:
    _check_unchanged(rows.reload(tx, found.old), found.old)


def _check_unchanged(now: StoredName, then: StoredName) -> None:
    """The time of a record tells apart two lists that were written into the same layer."""
    if (now.key, now.staging_head, _content_of(now)) != (then.key, then.staging_head, _content_of(then)):
        raise _Changed


def _content_of(stored: StoredName) -> tuple[int, Content]:
    record = stored.record
    return (0, NO_CONTENT) if record is None else (record.modified_at, record.content)
