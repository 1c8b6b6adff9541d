"""Items of lists, remembered as they were written.

A list is requested again and again while few of its rows change. So what was written for a row is remembered by the
value of the row, and used again where the same key and value are to be written in the same form. It cannot be out of
date: whatever it depends on is compared. An item that also depends on the time, such as the state of a lease, is not
remembered.

The memory of a process is bounded in bytes. When it is full, further items are left out; once as many were left out as
it holds, it begins anew. So a list that is longer than the memory costs no more than without one.
"""

from collections.abc import Callable, Sequence

from kyanite.slices import Sliced, in_slices

MAX_BYTES = 24 * 1024 * 1024
_ENTRY_BYTES = 320
"""What an entry takes beside its key, its value and its text."""

_SLICE_COST = 1000
_WRITTEN_COST = 8
"""To write an item takes as long as finding so many: a slice writes 125 of them, or finds 1,000."""

Row = tuple[bytes, bytes]
Write = Callable[[Row], tuple[str, bool]]
"""Writes the item of a row; also returns whether the text depends on nothing but the row and the form."""


class RenderedItems:
    """``form`` is a number for everything beside the row that a text depends on."""

    __slots__ = ("_known", "_left_out", "_max_bytes", "_size_bytes")

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._known: dict[bytes, tuple[bytes, int, bytes]] = {}
        """By the value of a row: its key, the form, and what was written."""
        self._size_bytes = 0
        self._left_out = 0

    @property
    def held_bytes(self) -> int:
        return self._size_bytes

    async def written(self, rows: Sequence[Row], form: int, write: Write) -> list[bytes]:
        """The items of all rows in UTF-8, a piece for each slice."""
        return await in_slices(self._written(rows, form, write))

    def _written(self, rows: Sequence[Row], form: int, write: Write) -> Sliced[list[bytes]]:
        pieces: list[bytes] = []
        items: list[bytes] = []
        find = self._known.get
        left = _SLICE_COST
        for row in rows:
            key, value = row
            known = find(value)
            if known is not None and known[0] == key and known[1] == form:
                items.append(known[2])
                left -= 1
            else:
                items.append(self._write(row, form, write))
                left -= _WRITTEN_COST
            if left <= 0:
                pieces.append(b"".join(items))
                items.clear()
                left = _SLICE_COST
                yield
        pieces.append(b"".join(items))
        return pieces

    def _write(self, row: Row, form: int, write: Write) -> bytes:
        text, is_lasting = write(row)
        item = text.encode()
        if is_lasting:
            self._remember(row, form, item)
        return item

    def _remember(self, row: Row, form: int, item: bytes) -> None:
        key, value = row
        size = len(key) + len(value) + len(item) + _ENTRY_BYTES
        if self._size_bytes + size > self._max_bytes:
            self._left_out += 1
            if self._left_out <= len(self._known):
                return
            self._known.clear()
            self._size_bytes = self._left_out = 0
        before = self._known.get(value)
        if before is not None:
            self._size_bytes -= len(before[0]) + len(value) + len(before[2]) + _ENTRY_BYTES
        self._known[value] = (key, form, item)
        self._size_bytes += size
