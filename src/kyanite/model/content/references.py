"""Reference counts of extents and of inline bodies.

Every stored interval that names a source is one reference to it. An extent has a row with its count from the first
reference to the last. Then a row for a *freed extent* replaces it, and maintenance gives the space back. An inline body
has a count only while more than one interval refers to it, which is rare. It is deleted with its last reference: the
engine keeps old rows readable for snapshots that began before.
"""

from collections.abc import Callable, Iterable

import msgspec

from kyanite.engine.api import Transaction
from kyanite.extents.api import Extent, WrittenExtent
from kyanite.model import keys
from kyanite.model.content.intervals import Interval

Source = Extent | int
"""An extent, or the number of an inline body."""


class ExtentRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Stored: fields are only ever added at the end."""

    length: int
    crc64: int
    references: int
    checksums: bytes = b""
    """Of the blocks of an extent that has more than one. Extents that an older version wrote have none."""


_encode = msgspec.msgpack.Encoder().encode
decode_extent: Callable[[bytes], ExtentRow] = msgspec.msgpack.Decoder(ExtentRow).decode
_decode_count: Callable[[bytes], int] = msgspec.msgpack.Decoder(int).decode


def begin(tx: Transaction, extents: Iterable[Extent]) -> None:
    """Count the first reference to each of these extents, which were just written."""
    for extent in extents:
        checksums = extent.checksums if isinstance(extent, WrittenExtent) else b""
        row = ExtentRow(extent.length, extent.crc64, 1, checksums)
        tx.put(keys.extent(extent.segment, extent.start), _encode(row))


def add(tx: Transaction, intervals: Iterable[Interval]) -> None:
    """Count the references of intervals that are stored once more."""
    change(tx, count({}, intervals, 1))


def drop(tx: Transaction, intervals: Iterable[Interval]) -> None:
    """Remove the references of intervals that are no longer stored."""
    change(tx, count({}, intervals, -1))


def count(differences: dict[Source, int], intervals: Iterable[Interval], each: int) -> dict[Source, int]:
    """Add ``each`` for every reference of the intervals."""
    for interval in intervals:
        if not interval.is_hole:
            source = interval.extent or interval.body
            differences[source] = differences.get(source, 0) + each
    return differences


def change(tx: Transaction, differences: dict[Source, int]) -> None:
    """Change the counts of the sources by these differences."""
    changed = [(source, difference) for source, difference in differences.items() if difference]
    if not changed:
        return
    rows = tx.get_many([_key(source) for source, _ in changed])
    for (source, difference), row in zip(changed, rows, strict=True):
        if isinstance(source, Extent):
            _change_extent(tx, source, row, difference)
        else:
            _change_body(tx, source, row, difference)


def _key(source: Source) -> bytes:
    return keys.extent(source.segment, source.start) if isinstance(source, Extent) else keys.sharing(source)


def _change_extent(tx: Transaction, extent: Extent, stored: bytes | None, difference: int) -> None:
    assert stored is not None, "An interval refers to an extent that has no row."
    row = decode_extent(stored)
    references = row.references + difference
    assert references >= 0, "An extent was dropped more often than it was referred to."
    if references:
        row = ExtentRow(row.length, row.crc64, references, row.checksums)
        tx.put(keys.extent(extent.segment, extent.start), _encode(row))
    else:
        tx.delete(keys.extent(extent.segment, extent.start))
        tx.put(keys.freed_extent(tx.now, extent.segment, extent.start), _encode(row.length))


def _change_body(tx: Transaction, number: int, stored: bytes | None, difference: int) -> None:
    references = (1 if stored is None else _decode_count(stored)) + difference
    assert references >= 0, "A body was dropped more often than it was referred to."
    if references > 1:
        tx.put(keys.sharing(number), _encode(references))
        return
    if stored is not None:
        tx.delete(keys.sharing(number))
    if not references:
        tx.delete(keys.body(number))
