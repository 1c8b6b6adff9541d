"""Pages of listings: each is one committed state, and is read, decoded and written in bounded parts.

A page may have thousands of rows. They are read in steps, as they are stored. ``Decoded`` decodes them when they are
used, so that a service can decode and write some of them at a time.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Generic, TypeVar, overload

import msgspec

from kyanite.engine.api import STEP_ROWS, Snapshot, Steps
from kyanite.model import keys
from kyanite.values import Instant

R = TypeVar("R")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Decoded(Sequence[T_co]):
    """Rows as what they contain. A slice is decoded whenever it is taken."""

    __slots__ = ("_decode", "_rows")

    def __init__(self, rows: list[Any], decode: Callable[[Sequence[Any]], list[T_co]]) -> None:
        self._rows = rows
        self._decode = decode

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> T_co: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[T_co]: ...

    def __getitem__(self, index: int | slice) -> T_co | Sequence[T_co]:
        if isinstance(index, slice):
            return self._decode(self._rows[index])
        return self._decode([self._rows[index]])[0]

    @property
    def rows(self) -> list[Any]:
        """What is decoded: for who has to let go of very many rows in slices."""
        return self._rows

    def __iter__(self) -> Iterator[T_co]:
        return iter(self._decode(self._rows))


def collected(rows: Iterator[T]) -> Steps[list[T]]:
    """All these rows, some in each step."""
    found = part = list(islice(rows, STEP_ROWS))
    while len(part) == STEP_ROWS:
        yield
        part = list(islice(rows, STEP_ROWS))
        found += part
    return found


class Page(msgspec.Struct, Generic[R], frozen=True):
    """A page of containers or queues, in the order of their names."""

    items: Sequence[tuple[str, R]]
    next_name: str | None
    """The first name that did not fit, or None when this was the last page."""
    at: Instant


def page_by_name(
    snap: Snapshot,
    base: bytes,
    decode: Callable[[bytes], R],
    *,
    prefix: str,
    first: str,
    limit: int,
    hidden: frozenset[bytes] = frozenset(),
) -> Steps[Page[R]]:
    """A page of the rows whose key is ``base`` and a name: names that begin with the prefix, from ``first`` on.

    ``hidden`` are keys of a few rows that are not listed.
    """
    start, end = max(base + prefix.encode(), base + first.encode()), keys.after(base + prefix.encode())
    rows = yield from collected(snap.scan(start, end, limit=limit + 1 + len(hidden)))
    if hidden:
        rows = [row for row in rows if row[0] not in hidden]
    name_at = len(base)
    next_name = rows[limit][0][name_at:].decode() if len(rows) > limit else None
    del rows[limit:]

    def items(some: Sequence[tuple[bytes, bytes]]) -> list[tuple[str, R]]:
        return [(key[name_at:].decode(), decode(value)) for key, value in some]

    return Page(Decoded(rows, items), next_name, snap.now)
