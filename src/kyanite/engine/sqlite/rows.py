"""Keys and values as rows of SQLite: two tables that together are one ordered map.

Inline bodies (``BODY_PREFIX`` and eight bytes) are in ``body``, a rowid table, which stores large values well; all
other keys are in ``kv``, clustered by key. The caller gathers writes in one dictionary, so that they become a few
statements of many rows each.
"""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, cast

import apsw

from kyanite.engine.api import BODY_PREFIX
from kyanite.engine.transaction import Row

SCHEMA = """
CREATE TABLE kv (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID;
CREATE TABLE body (id INTEGER PRIMARY KEY, value BLOB);
"""

_BODY_KEY_BYTES = 9
_BODY_PREFIX_BYTE = BODY_PREFIX[0]
_BODIES_START = BODY_PREFIX
_BODIES_END = bytes([_BODY_PREFIX_BYTE + 1])
_LAST_ID = 2**63 - 1

_GET = "SELECT value FROM kv WHERE key = ?"
_GET_BODY = "SELECT value FROM body WHERE id = ?"
_TAKE_SNAPSHOT = "SELECT 1 FROM kv LIMIT 1"
_SCAN = "SELECT key, value FROM kv WHERE key >= ? AND key < ? ORDER BY key {order} LIMIT ?"
_SCAN_BODIES = "SELECT id, value FROM body WHERE id BETWEEN ? AND ? ORDER BY id {order} LIMIT ?"
_SCANS = {False: _SCAN.format(order="ASC"), True: _SCAN.format(order="DESC")}
_BODY_SCANS = {False: _SCAN_BODIES.format(order="ASC"), True: _SCAN_BODIES.format(order="DESC")}

# OR ROLLBACK never happens, because nothing here can violate a constraint. The default is to undo the statement alone;
# for that SQLite copies every page that a statement of many rows changes (5 times the cost).
_CHUNKS = (64, 16, 4, 1)
_PUT = {
    n: "INSERT OR ROLLBACK INTO kv VALUES "
    + ",".join(["(?,?)"] * n)
    + " ON CONFLICT (key) DO UPDATE SET value = excluded.value"
    for n in _CHUNKS
}
_PUT_BODY = {
    n: "INSERT OR ROLLBACK INTO body VALUES "
    + ",".join(["(?,?)"] * n)
    + " ON CONFLICT (id) DO UPDATE SET value = excluded.value"
    for n in _CHUNKS
}
_GET_MANY = {n: f"SELECT key, value FROM kv WHERE key IN ({','.join('?' * n)})" for n in _CHUNKS}
_FEW_KEYS = 16
_DELETE = {n: f"DELETE FROM kv WHERE key IN ({','.join('?' * n)})" for n in _CHUNKS}
_DELETE_BODY = {n: f"DELETE FROM body WHERE id IN ({','.join('?' * n)})" for n in _CHUNKS}

_FEW_ROWS = 64
"""Scans with a limit up to this are read when they begin."""


class Rows:
    """The rows of one connection. The caller begins and ends the transactions around them."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._cursor = connection.cursor()
        self._open_scans: list[apsw.Cursor] = []

    def take_snapshot(self) -> None:
        """SQLite takes its snapshot at the first read."""
        self._cursor.execute(_TAKE_SNAPSHOT).fetchall()

    def get(self, key: bytes) -> bytes | None:
        value: bytes | None
        if _is_body(key):
            value = self._cursor.execute(_GET_BODY, (int.from_bytes(key[1:], "big"),)).get
        else:
            value = self._cursor.execute(_GET, (key,)).get
        return value

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        if len(keys) < _FEW_KEYS:
            return [self.get(key) for key in keys]
        found: dict[bytes, bytes] = {}
        plain = [key for key in keys if not _is_body(key)]
        for statement, some in _in_chunks(_GET_MANY, plain, 1):
            found.update(self._cursor.execute(statement, some))
        return [self.get(key) if _is_body(key) else found.get(key) for key in keys]

    def scan(self, start: bytes, end: bytes, reverse: bool, limit: int | None) -> Iterator[Row]:
        if end <= _BODIES_START or start >= _BODIES_END:
            return self._scan_kv(start, end, reverse, limit)
        # Keys with the prefix of bodies but another length are in the other table.
        rows = heapq.merge(
            self._scan_kv(start, end, reverse, limit),
            self._scan_bodies(start, end, reverse, limit),
            reverse=reverse,
        )
        return islice(rows, limit)

    def _scan_kv(self, start: bytes, end: bytes, reverse: bool, limit: int | None) -> Iterator[Row]:
        if limit is not None and limit <= _FEW_ROWS:
            # Read on the present cursor, because a seek should not cost a cursor of its own.
            return iter(
                cast(list[Row], self._cursor.execute(_SCANS[reverse], (start, end, limit)).fetchall())
            )
        return self._cursor_over(_SCANS[reverse], (start, end, -1 if limit is None else limit))

    def _scan_bodies(self, start: bytes, end: bytes, reverse: bool, limit: int | None) -> Iterator[Row]:
        first = _first_id_from(start)
        last = _first_id_from(end) - 1
        bounds = (first, min(last, _LAST_ID), -1 if limit is None else limit)
        rows: Iterator[Any] = iter(())
        if first <= _LAST_ID:
            rows = self._cursor_over(_BODY_SCANS[reverse], bounds)
        return ((BODY_PREFIX + number.to_bytes(8, "big"), value) for number, value in rows)

    def _cursor_over(self, statement: str, bounds: tuple[object, ...]) -> apsw.Cursor:
        cursor = self._connection.execute(statement, bounds)
        self._open_scans.append(cursor)
        return cursor

    def end_scans(self) -> None:
        """Close scans that a body did not read to the end, since they would keep SQLite's snapshot."""
        if self._open_scans:
            for cursor in self._open_scans:
                cursor.close()
            self._open_scans.clear()

    def apply(self, writes: Mapping[bytes, bytes | None]) -> None:
        """Put or delete (None) every key, in key order, so that neighbours share the path down the tree."""
        puts: list[bytes] = []
        deletes: list[bytes] = []
        body_puts: list[int | bytes] = []
        body_deletes: list[int] = []
        for key in sorted(writes):
            value = writes[key]
            if _is_body(key):
                number = int.from_bytes(key[1:], "big")
                if value is None:
                    body_deletes.append(number)
                else:
                    body_puts += (number, value)
            elif value is None:
                deletes.append(key)
            else:
                puts += (key, value)
        for statements, values, width in (
            (_PUT, puts, 2),
            (_DELETE, deletes, 1),
            (_PUT_BODY, body_puts, 2),
            (_DELETE_BODY, body_deletes, 1),
        ):
            for statement, some in _in_chunks(statements, values, width):
                self._cursor.execute(statement, some)


def _is_body(key: bytes) -> bool:
    return len(key) == _BODY_KEY_BYTES and key[0] == _BODY_PREFIX_BYTE and key[1] < 128


def _in_chunks(
    statements: Mapping[int, str], values: Sequence[Any], width: int
) -> Iterator[tuple[str, Sequence[Any]]]:
    """The values, ``width`` to a row, divided among statements of as many rows as possible."""
    position = 0
    for rows in _CHUNKS:
        size = rows * width
        while len(values) - position >= size:
            yield statements[rows], values[position : position + size]
            position += size


def _first_id_from(bound: bytes) -> int:
    """The smallest body number whose key is not below the bound; 2**63 when there is none."""
    if bound <= _BODIES_START:
        return 0
    if bound >= _BODIES_END:
        return 2**63
    tail = bound[1:]
    number = int.from_bytes(tail[:8].ljust(8, b"\0"), "big")
    return min(number + (len(tail) > 8), 2**63)
