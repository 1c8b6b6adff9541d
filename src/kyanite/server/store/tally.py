"""Two sums per subject, for as many subjects as there are: what rows state, and what was counted. And rows for later.

They are kept in a temporary database, which lies in a file beyond a few megabytes, so that memory stays bounded.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import apsw

_SUMS = "CREATE TABLE sums (subject BLOB PRIMARY KEY, stated INTEGER, counted INTEGER) WITHOUT ROWID"
_ADD = (
    "INSERT INTO sums VALUES (?, ?, ?) ON CONFLICT (subject)"
    " DO UPDATE SET stated = stated + excluded.stated, counted = counted + excluded.counted"
)
_LATER = "CREATE TABLE later (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID"
_KEEP = "INSERT OR REPLACE INTO later VALUES (?, ?)"
_KEPT = "SELECT key, value FROM later WHERE key > ? ORDER BY key LIMIT 500"
_DIFFERENCES = "SELECT subject, stated, counted FROM sums WHERE stated != counted ORDER BY subject"


class Tally:
    def __init__(self) -> None:
        # A database without a name is private and temporary.
        self._database = apsw.Connection("")
        self._database.pragma("journal_mode", "off")
        self._database.execute(_SUMS)
        self._database.execute(_LATER)

    def add(self, stated: Mapping[bytes, int], counted: Mapping[bytes, int]) -> None:
        subjects = stated.keys() | counted.keys()
        rows = [(subject, stated.get(subject, 0), counted.get(subject, 0)) for subject in sorted(subjects)]
        with self._database:
            self._database.executemany(_ADD, rows)

    def keep(self, rows: Iterable[tuple[bytes, bytes]]) -> None:
        """Keep rows, to be returned by ``kept``."""
        with self._database:
            self._database.executemany(_KEEP, rows)

    def kept(self) -> Iterator[tuple[bytes, bytes]]:
        """In the order of their keys."""
        after = b""
        while page := self._page(after):
            yield from page
            after = page[-1][0]

    def _page(self, after: bytes) -> list[tuple[bytes, bytes]]:
        rows: list[Any] = self._database.execute(_KEPT, (after,)).fetchall()
        return rows

    def differences(self) -> Iterator[tuple[bytes, int, int]]:
        """The subjects with two different sums: subject, stated, counted."""
        yield from self._database.execute(_DIFFERENCES)

    def close(self) -> None:
        self._database.close()
