"""Which records damage hurts: all that refer to a damaged extent or row, directly or through layers.

First the interval rows are read, for the layers that refer to what is damaged, and the heads of layers, for those that
lie on them. Then all records that have content are read. On a store that is in use a record may change meanwhile, so
each one that may be hurt is read once more, together with its layers.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple

import msgspec

from kyanite.engine.api import Engine, EngineBusy, EngineClosed, EngineError, Snapshot, Steps, TooLarge
from kyanite.engine.transaction import IDS_PER_INSTANT
from kyanite.model import keys
from kyanite.model.blobs.records import decode_blob, decode_deleted
from kyanite.model.blobs.staged_blocks import decode_block
from kyanite.model.content import content
from kyanite.model.content.content import Content
from kyanite.model.content.intervals import ENDLESS, Interval
from kyanite.model.content.layer_view import layers
from kyanite.model.content.layers import decode_head
from kyanite.model.files.entry import decode_entry
from kyanite.model.queues.records import decode_message
from kyanite.model.tables import stored_entity
from kyanite.model.verification.damage import Damage
from kyanite.model.verification.extent_check import Span, joined
from kyanite.model.verification.pages import Row, Rows, Unreadable, pages, take

ROW_COST_BYTES = 4 * 1024
"""What reading a small row counts for, beside the bytes of an extent."""

_RECORDS_AT_ONCE = 200
_INTERVAL_ROWS_AT_ONCE = 32
_INTERVALS_PER_STEP = 200
SPANS_MAX = 64
"""Of one record or layer."""

Spend = Callable[[int], Awaitable[None]]
"""Called after each page with the bytes that it counts for. It may wait."""

_decode_intervals: Callable[[bytes], list[Interval]] = msgspec.msgpack.Decoder(list[Interval]).decode


class Hurt(NamedTuple):
    """A record that is damaged, or whose content is."""

    key: bytes
    subject: bytes
    """The key of the damaged extent or row. If it is the same key, the record itself cannot be read."""
    spans: tuple[Span, ...] = ()
    """The damaged bytes of its content. Without any, which bytes are damaged is not known."""


class _Part(NamedTuple):
    content: Content
    length: int | None
    """None if which bytes are damaged does not matter."""


def _blob_part(value: bytes) -> _Part:
    record = decode_blob(value)
    return _Part(record.content, record.length)


def _deleted_part(value: bytes) -> _Part:
    record = decode_deleted(value).blob
    return _Part(record.content, record.length)


def _block_part(value: bytes) -> _Part:
    block = decode_block(value)
    return _Part(block.content, block.length)


def _entry_part(value: bytes) -> _Part:
    entry = decode_entry(value)
    return _Part(entry.content, entry.length)


def _message_part(value: bytes) -> _Part:
    return _Part(decode_message(value).long_text, None)


WITH_CONTENT: Mapping[bytes, Callable[[bytes], _Part]] = {
    b"n": _blob_part,
    b"v": _blob_part,
    b"E": _blob_part,
    b"X": _deleted_part,
    b"j": _block_part,
    b"m": _message_part,
    b"N": _entry_part,
    b"V": _entry_part,
}
"""The letters of records that have content."""


async def hurt_records(engine: Engine, damage: Damage, spend: Spend) -> AsyncGenerator[Hurt, None]:
    """All records that the damage hurts, in the order of their letters."""
    for each in damage.rows:
        if each.key is not None:
            yield Hurt(each.key, each.key)
    newest_id = await engine.read(lambda snap: snap.now * IDS_PER_INSTANT)
    hurt_layers = await _hurt_layers(engine, damage, spend)
    for letter, decode in WITH_CONTENT.items():
        search = _Search(damage, hurt_layers, newest_id, decode)
        read = partial(take, rows_max=_RECORDS_AT_ONCE, bytes_max=_RECORDS_AT_ONCE * ROW_COST_BYTES)
        async for page in pages(engine, read, letter, keys.after(letter)):
            if isinstance(page, Unreadable):
                continue
            for row in page.rows:
                if search.may_be_hurt(row):
                    for hurt in await _evaluated(engine, search, row.key):
                        yield hurt
            await spend(len(page.rows) * ROW_COST_BYTES)
    if damage.has_rows_of(b"o"):
        async for hurt in _hurt_entities(engine, damage, spend):
            yield hurt


# Layers


async def _hurt_layers(engine: Engine, damage: Damage, spend: Spend) -> dict[int, list[Span]]:
    """The layers that show damaged bytes, and where in each. Layers on them have none of their own."""
    found: dict[int, list[Span]] = {}
    if damage.extents or damage.has_rows_of(b"b") or damage.has_rows_of(b"x"):
        read = partial(take, rows_max=_INTERVAL_ROWS_AT_ONCE)
        async for page in pages(engine, read, b"r", keys.after(b"r")):
            if not isinstance(page, Unreadable):
                _add_spans(found, damage, page)
                await spend(len(page.rows) * ROW_COST_BYTES)
    async for page in pages(engine, take, b"l", keys.after(b"l")):
        if not isinstance(page, Unreadable):
            for key, value in page.rows:
                _add_layer(found, damage, keys.id_of(key), value)
            await spend(len(page.rows) * ROW_COST_BYTES)
    return found


def _add_spans(found: dict[int, list[Span]], damage: Damage, page: Rows) -> None:
    for key, value in page.rows:
        try:
            intervals = _decode_intervals(value)
        except msgspec.DecodeError:
            continue
        spans = [span for each in intervals for _, span in damage.spans_of(each)]
        if spans:
            layer_id = keys.id_of(key)
            found[layer_id] = few([*found.get(layer_id, []), *spans])


def _add_layer(found: dict[int, list[Span]], damage: Damage, layer_id: int, value: bytes) -> None:
    """Layers come in the order of their ids, and a layer is newer than the one below it."""
    if any(True for _ in damage.rows_between(*_interval_rows(layer_id))):
        found.setdefault(layer_id, [])
    try:
        below = decode_head(value).below
    except msgspec.DecodeError:
        return
    if below in found or (below and damage.row_at(keys.layer(below)) is not None):
        found.setdefault(layer_id, [])


def few(spans: Iterable[Span]) -> list[Span]:
    """The same bytes in a bounded number of spans: if there are too many, those closest to one another are joined."""
    found = joined(spans)
    while len(found) > SPANS_MAX:
        at = min(range(1, len(found)), key=lambda index: found[index].start - found[index - 1].end)
        found[at - 1 : at + 1] = [Span(found[at - 1].start, found[at].end)]
    return found


# Records


class _Search(NamedTuple):
    damage: Damage
    hurt_layers: Mapping[int, list[Span]]
    newest_id: int
    """Layers above this id were made since the layers were read."""
    decode: Callable[[bytes], _Part]

    def may_be_hurt(self, row: Row) -> bool:
        try:
            stored = self.decode(row.value).content
        except msgspec.DecodeError:
            return False
        if stored.layer:
            is_new = stored.layer > self.newest_id
            is_damaged = self.damage.row_at(keys.layer(stored.layer)) is not None
            return is_new or is_damaged or stored.layer in self.hurt_layers
        if stored.body:
            return self.damage.row_at(keys.body(stored.body)) is not None
        return any(True for each in stored.intervals for _ in self.damage.spans_of(each))


async def _evaluated(engine: Engine, search: _Search, key: bytes) -> list[Hurt]:
    try:
        return await engine.read_in_steps(partial(_evaluate, search=search, key=key))
    except (EngineBusy, EngineClosed, TooLarge):
        raise
    except EngineError:
        return [Hurt(key, key)]


def _evaluate(snap: Snapshot, search: _Search, key: bytes) -> Steps[list[Hurt]]:
    """What of the record's content is damaged now, by what damages it."""
    stored = snap.get(key)
    if stored is None:
        return []
    part, damage = search.decode(stored), search.damage
    spans: dict[bytes, list[Span]] = {}
    if part.content.body:
        _add(spans, damage, Interval(0, part.length or 1, body=part.content.body))
    elif not part.content.layer:
        for each in part.content.intervals:
            _add(spans, damage, each)
    else:
        yield from _evaluate_layers(snap, search, part, spans)
    is_known = part.length is not None
    return [Hurt(key, subject, tuple(few(found)) if is_known else ()) for subject, found in spans.items()]


def _evaluate_layers(
    snap: Snapshot, search: _Search, part: _Part, spans: dict[bytes, list[Span]]
) -> Steps[None]:
    damage, layer_id = search.damage, part.content.layer
    length = ENDLESS if part.length is None else part.length
    suspected: list[Span] = []
    try:
        for layer_id in layers(snap, part.content.layer):
            if row := damage.row_at(keys.layer(layer_id)):
                spans[row.subject] = [Span(0, length)]
                return
            for row in damage.rows_between(*_interval_rows(layer_id)):
                _add_rows(spans, snap, row, layer_id, length)
            suspected += search.hurt_layers.get(layer_id, [])
            yield
        for start, end in few(suspected):
            for count, each in enumerate(content.visible(snap, part.content, start, min(end, length))):
                _add(spans, damage, each)
                if count % _INTERVALS_PER_STEP == _INTERVALS_PER_STEP - 1:
                    yield
    except TooLarge:
        raise
    except Exception:  # Whatever a damaged row leads to.
        if not spans:
            spans[keys.layer(layer_id)] = [Span(0, length)]


def _add(spans: dict[bytes, list[Span]], damage: Damage, interval: Interval) -> None:
    for subject, span in damage.spans_of(interval):
        spans[subject] = few([*spans.get(subject, []), span])


def _add_rows(
    spans: dict[bytes, list[Span]], snap: Snapshot, row: Unreadable, layer_id: int, length: int
) -> None:
    """Interval rows that cannot be read: what they cover ends where the next row begins."""
    first, behind = _interval_rows(layer_id)
    start = _offset_in(max(row.subject, first))
    next_row = next(snap.scan(max(row.end, first), behind, limit=1), None) if row.end < behind else None
    end = length if next_row is None else min(length, _offset_in(next_row[0]))
    if start < end:
        spans[row.subject] = few([*spans.get(row.subject, []), Span(start, end)])


def _interval_rows(layer_id: int) -> tuple[bytes, bytes]:
    """The range of the interval rows of a layer."""
    prefix = keys.interval_rows(layer_id)
    return prefix, keys.after(prefix)


def _offset_in(key: bytes) -> int:
    at = len(keys.interval_rows(0))
    return int.from_bytes(key[at : at + 8].ljust(8, b"\0"), "big")


# Entities


async def _hurt_entities(engine: Engine, damage: Damage, spend: Spend) -> AsyncGenerator[Hurt, None]:
    """Entities of which a further part cannot be read."""
    async for page in pages(engine, take, b"w", keys.after(b"w")):
        if isinstance(page, Unreadable):
            continue
        for key, value in page.rows:
            if not value or value.startswith(b"{"):
                continue
            for part_key in stored_entity.part_keys(keys.id_of(key), value):
                if (row := damage.row_at(part_key)) is not None:
                    yield Hurt(key, row.subject)
        await spend(len(page.rows) * ROW_COST_BYTES)
