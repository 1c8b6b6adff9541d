"""The transactions of a migration over the target, each bounded, and each of them safe to be run again."""

from collections.abc import Iterable, Sequence

from kyanite.engine.api import Snapshot, Transaction
from kyanite.extents.api import SEGMENT_BYTES, Extent, WrittenExtent
from kyanite.model import keys
from kyanite.model.content import layers, references
from kyanite.model.content.intervals import Interval
from kyanite.model.content.layers import Head
from kyanite.model.migration.records import (
    Migration,
    MovedLayer,
    decode_extent,
    decode_layer,
    decode_migration,
)
from kyanite.model.migration.rewriting import Dropping, Needs, Portable, Writing, present
from kyanite.model.migration.rows import Moved, Owner
from kyanite.model.records import encode

SCANNED_MAX = 500
"""Rows of the target that are compared at once: those that should be there, and some that should not."""
FORGOTTEN_AT_ONCE = 100
CLEARED_AT_ONCE = 100

_LAYER = b"l"
_EXTENT = b"x"


class Changed(Exception):
    """What was moved is not what the source has now, in a way that only beginning anew can mend."""


# The migration


def load(snap: Snapshot, account: str) -> Migration | None:
    stored = snap.get(keys.migration(account))
    return None if stored is None else decode_migration(stored)


def begin(tx: Transaction, account: str, source: str) -> None:
    if tx.get(keys.migration(account)) is None:
        tx.put(keys.migration(account), encode(Migration(source)))


def complete(tx: Transaction, account: str) -> None:
    migration = load(tx, account)
    assert migration is not None
    tx.put(keys.migration(account), encode(Migration(migration.source, is_complete=True)))


def forget(tx: Transaction, account: str) -> bool:
    """Forget some of what has moved, and at last the migration. Whether anything is left."""
    start = keys.migration(account)
    rows = list(tx.scan(start + b"\0", keys.after(start), limit=FORGOTTEN_AT_ONCE))
    for key, value in rows:
        _, letter, _ = keys.parts_of_moved(key)
        if letter == _LAYER:
            layers.drop(tx, decode_layer(value).id)
        elif letter == _EXTENT:
            references.drop(tx, [_whole(decode_extent(value))])
        tx.delete(key)
    if len(rows) < FORGOTTEN_AT_ONCE:
        tx.delete(start)
        return False
    return True


def _whole(extent: Extent) -> Interval:
    return Interval(0, extent.length, 0, extent)


# Ids, extents and layers


def moved_ids(snap: Snapshot, account: str, ids: Sequence[tuple[Owner, int]]) -> dict[tuple[Owner, int], int]:
    """Those of the ids that have moved."""
    rows = snap.get_many([keys.moved_id(account, owner.value, number) for owner, number in ids])
    return {each: int.from_bytes(row, "big") for each, row in zip(ids, rows, strict=True) if row is not None}


def move_ids(tx: Transaction, account: str, ids: Sequence[tuple[Owner, int]]) -> dict[tuple[Owner, int], int]:
    found = moved_ids(tx, account, ids)
    for owner, number in ids:
        if (owner, number) not in found:
            new = found[owner, number] = tx.new_id()
            tx.put(keys.moved_id(account, owner.value, number), keys.number(new))
    return found


def owners(snap: Snapshot, account: str, owner: Owner, after: int, limit: int) -> list[tuple[int, int]]:
    """Old and new ids of one kind, in the order of the old ones."""
    prefix = keys.moved_ids(account, owner.value)
    rows = snap.scan(prefix + keys.number(after + 1), keys.after(prefix), limit=limit)
    return [(int.from_bytes(key[len(prefix) :], "big"), int.from_bytes(value, "big")) for key, value in rows]


def moved_extents(snap: Snapshot, account: str, extents: Sequence[Extent]) -> dict[Extent, Extent]:
    rows = snap.get_many([keys.moved_extent(account, each.segment, each.start) for each in extents])
    return {old: decode_extent(row) for old, row in zip(extents, rows, strict=True) if row is not None}


def add_extents(tx: Transaction, account: str, written: Iterable[tuple[Extent, WrittenExtent]]) -> None:
    for old, new in written:
        references.begin(tx, [new])
        extent = Extent(new.segment, new.start, new.length, new.crc64)
        tx.put(keys.moved_extent(account, old.segment, old.start), encode(extent))


def extents_page(snap: Snapshot, account: str, start: bytes, limit: int) -> list[tuple[bytes, Extent]]:
    """Extents of the target, by the keys of their rows here."""
    prefix = keys.moved_ids(account, _EXTENT)
    rows = snap.scan(max(start, prefix), keys.after(prefix), limit=limit)
    return [(key, decode_extent(value)) for key, value in rows if len(key) == len(prefix) + SEGMENT_BYTES + 8]


def moved_layer(snap: Snapshot, account: str, old: int) -> MovedLayer | None:
    stored = snap.get(keys.moved_id(account, _LAYER, old))
    return None if stored is None else decode_layer(stored)


def begin_layer(tx: Transaction, account: str, old: int, below: int) -> int:
    """An empty layer, on one that has moved already if there is one below."""
    new = tx.new_id()
    head = Head()
    if below:
        lower = layers.load(tx, below)
        head = Head(below=below, depth=lower.depth + 1)
        tx.put(keys.edge(below, new), b"")
        layers.save(tx, below, layers.change(lower, uppers=1))
    layers.save(tx, new, head)
    tx.put(keys.moved_id(account, _LAYER, old), encode(MovedLayer(new)))
    return new


def extend_layer(tx: Transaction, layer: int, rows: Sequence[tuple[list[Interval], list[bytes]]]) -> None:
    """Add interval rows, in their portable form."""
    for intervals, bodies in rows:
        stored = Writing(tx, bodies).intervals(intervals)
        tx.put(keys.interval_row(layer, stored[0].offset), encode(stored))


def finish_layer(tx: Transaction, account: str, old: int, new: int) -> None:
    tx.put(keys.moved_id(account, _LAYER, old), encode(MovedLayer(new, is_whole=True)))


def abandon_layer(tx: Transaction, account: str, old: int) -> None:
    """Leave an unfinished layer to be purged."""
    moved = moved_layer(tx, account, old)
    if moved is not None and not moved.is_whole:
        layers.drop(tx, moved.id)
        tx.delete(keys.moved_id(account, _LAYER, old))


# Rows


def differences(
    snap: Snapshot, moved: Moved, expected: Sequence[Portable], bounds: tuple[bytes, bytes] | None
) -> list[bytes]:
    """Keys of rows that are missing, different or should not be there. Without bounds, no row is too many."""
    found = _found(snap, expected, bounds)
    wanted = {row.key: row for row in expected}
    bodies = _bodies(snap, moved, found)
    companions = [key for row in expected for key in moved.companions(row.key, row.value)]
    missing = {key for key, value in zip(companions, snap.get_many(companions), strict=True) if value is None}
    different = []
    for row in expected:
        stored = found.get(row.key)
        is_alone = bool(missing) and not missing.isdisjoint(moved.companions(row.key, row.value))
        if stored is None or is_alone or present(moved, row.key, stored, bodies) != row:
            different.append(row.key)
    return different + [key for key in found if key not in wanted]


def sync(
    tx: Transaction, moved: Moved, expected: Sequence[Portable], bounds: tuple[bytes, bytes] | None
) -> int:
    """Make the rows of the target what they should be. How many were not."""
    different = differences(tx, moved, expected, bounds)
    wanted = {row.key: row for row in expected}
    for key, stored in zip(different, tx.get_many(different), strict=True):
        row = wanted.get(key)
        if stored is not None:
            _drop(tx, moved, key, stored, is_replaced=row is not None)
        if row is not None:
            tx.put(key, moved.rewrite(row.value, Writing(tx, row.bodies)))
            for companion in moved.companions(row.key, row.value):
                tx.put(companion, b"")
    return len(different)


def clear(tx: Transaction, moved: Moved, bounds: tuple[bytes, bytes]) -> bool:
    """Delete some rows of a migration that is given up. Whether any was left."""
    rows = list(tx.scan(*bounds, limit=CLEARED_AT_ONCE))
    for key, value in rows:
        _drop(tx, moved, key, value, is_replaced=True)
    return bool(rows)


def _drop(tx: Transaction, moved: Moved, key: bytes, value: bytes, *, is_replaced: bool) -> None:
    needs = Needs()
    moved.rewrite(value, needs)
    if needs.ids and not is_replaced:
        raise Changed("something was deleted there that has been moved already")
    moved.rewrite(value, Dropping(tx))
    for companion in moved.companions(key, value):
        tx.delete(companion)
    tx.delete(key)


def _found(
    snap: Snapshot, expected: Sequence[Portable], bounds: tuple[bytes, bytes] | None
) -> dict[bytes, bytes]:
    if bounds is not None:
        return dict(snap.scan(*bounds, limit=SCANNED_MAX))
    rows = snap.get_many([row.key for row in expected])
    return {row.key: value for row, value in zip(expected, rows, strict=True) if value is not None}


def _bodies(snap: Snapshot, moved: Moved, rows: dict[bytes, bytes]) -> dict[int, bytes]:
    needs = Needs()
    for value in rows.values():
        moved.rewrite(value, needs)
    return load_bodies(snap, needs.bodies)


def load_bodies(snap: Snapshot, numbers: Iterable[int]) -> dict[int, bytes]:
    wanted = sorted(numbers)
    values = snap.get_many([keys.body(number) for number in wanted])
    return {number: value for number, value in zip(wanted, values, strict=True) if value is not None}
