"""What a batch reads and writes, in a short form in which the database can compare it with that of others.

Batches of several processes overlap in time: one with earlier instants may come to the lock after one with later
instants. That is as good as any order, if neither has written what the other one has read or written; then nobody can
tell which came first. So each batch that is committed leaves its footprint behind, and one that comes late is compared
with those of later instants (``commit_batch`` in ``schema.py``).

Keys are compared by hashes: two that meet by chance only make a batch run again. Ranges, and the keys that are written
into them, are compared by their first bytes: in practice by the container, queue or table that they belong to.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from xxhash import xxh3_64_intdigest

PART_BYTES: Final = 9
"""The letter of a row and an id."""


class Footprint(NamedTuple):
    written: list[int]
    """Hashes of the keys that were written; and the instants, which nobody may use twice."""
    read: list[int]
    """Hashes of the keys that were read and not written."""
    parts: list[bytes]
    """The first bytes of the keys that were written."""
    lows: list[bytes]
    """The first bytes of the ranges that were read."""
    highs: list[bytes]


def footprint(
    reads: Iterable[bytes],
    ranges: Iterable[tuple[bytes, bytes, bytes]],
    writes: Mapping[bytes, object],
    instants: Sequence[int],
) -> Footprint:
    ranges_read = {(low[:PART_BYTES], high[:PART_BYTES]): None for low, high, _ in ranges}
    return Footprint(
        [*instants, *[xxh3_64_intdigest(key) >> 1 for key in writes]],
        [xxh3_64_intdigest(key) >> 1 for key in reads if key not in writes],
        list({key[:PART_BYTES] for key in writes}),
        [low for low, _ in ranges_read],
        [high for _, high in ranges_read],
    )
