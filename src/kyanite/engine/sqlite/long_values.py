"""Values that are too long to lie beside their keys: they are in a table by number, and the key's row has the number.

``kv`` is a tree of whole rows, in its upper pages too. Of a row that is longer than a quarter of a page SQLite keeps
the beginning in place and chains the rest to it, and it reads the whole chain to compare a key with the row. So a few
rows of 100 KB made each look-up of other keys read hundreds of pages. The upper pages of ``long`` have numbers only.

A number is in one row of ``kv``. When that row gets another value a trigger deletes the long one; before rows are
deleted, ``delete_of`` does. (With a trigger for that, SQLite would copy every page that a deletion of many rows
changes.) Both compare the key, so that a damaged number does not cost another row its value. Rows that versions before
schema 3 wrote are in place, however long they are, until they are written again.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import apsw

ADD_LONG_VALUES: Final = """
CREATE TABLE long (id INTEGER PRIMARY KEY, key BLOB, value BLOB);
CREATE TRIGGER long_value_replaced AFTER UPDATE ON kv
WHEN typeof(old.value) = 'integer' AND old.value IS NOT new.value BEGIN
    DELETE FROM long WHERE id = old.value AND key = old.key;
END;
"""

SHORT_MAX: Final = 2_000
"""Bytes of a key and a value that stay together; a quarter of a page is 2,030, with the head of the row."""

CHUNKS: Final = (64, 16, 4, 2, 1)

_GET: Final = "SELECT value FROM long WHERE id = ?"
_GET_MANY: Final = {n: f"SELECT id, value FROM long WHERE id IN ({','.join('?' * n)})" for n in CHUNKS}
_ADD: Final = "INSERT INTO long (key, value) VALUES (?, ?)"
_REFERENCES: Final = {
    n: f"SELECT value, key FROM kv WHERE key IN ({','.join('?' * n)}) AND typeof(value) = 'integer'"
    for n in CHUNKS
}
_DELETE: Final = "DELETE FROM long WHERE id = ? AND key = ?"


class LongValues:
    """Those of one connection, within the transactions of its caller."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._cursor = connection.cursor()

    def get(self, number: int) -> Any:
        """The value, or None when there is none: then the store is damaged, as when it is not bytes."""
        try:
            return self._cursor.execute(_GET, (number,)).get
        except UnicodeDecodeError:
            self._renew_cursor()
            raise

    def get_many(self, numbers: Sequence[int]) -> dict[int, Any]:
        found: dict[int, Any] = {}
        try:
            for statement, some in in_chunks(_GET_MANY, numbers, 1):
                rows: list[Any] = self._cursor.execute(statement, some).fetchall()
                found.update(rows)
        except UnicodeDecodeError:
            self._renew_cursor()
            raise
        return found

    def add(self, key: bytes, value: bytes) -> int:
        """Store a value, and return its number."""
        self._cursor.execute(_ADD, (key, value))
        return self._connection.last_insert_rowid()

    def delete_of(self, keys: Sequence[bytes]) -> None:
        """Delete those that the rows of these keys refer to."""
        for statement, some in in_chunks(_REFERENCES, keys, 1):
            for reference in self._cursor.execute(statement, some).fetchall():
                self._cursor.execute(_DELETE, reference)

    def _renew_cursor(self) -> None:
        """A statement that has not come to its end would keep SQLite's snapshot."""
        self._cursor.close()
        self._cursor = self._connection.cursor()


def in_chunks(
    statements: Mapping[int, str], values: Sequence[Any], width: int
) -> Iterator[tuple[str, Sequence[Any]]]:
    """The values, ``width`` to a row, divided among statements of as many rows as possible."""
    position = 0
    for rows in CHUNKS:
        size = rows * width
        while len(values) - position >= size:
            yield statements[rows], values[position : position + size]
            position += size
