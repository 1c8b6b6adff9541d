"""Keys and values as rows of SQLite: two tables that together are one ordered map.

Inline bodies (``BODY_PREFIX`` and eight bytes) are in ``body``, a rowid table, which stores large values well; all
other keys are in ``kv``, clustered by key. Long values of these are in ``long`` (``long_values.py``), and ``kv`` has an
integer in their place. The caller gathers writes in one dictionary, so that they become a few
statements of many rows each.

Each row has a checksum of its key and its value, XXH3, which is checked whenever the row is read. Without one (NULL) it
is a row that an earlier version wrote, and is returned unchecked. Damage may also give a value another
type, or make it text that cannot be decoded.
"""

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, Final

import apsw
from xxhash import xxh3_64_intdigest

from kyanite.engine.api import BODY_PREFIX, STEP_ROWS, Damaged
from kyanite.engine.groups import Groups, seek_groups
from kyanite.engine.sqlite.long_values import ADD_LONG_VALUES, CHUNKS, SHORT_MAX, LongValues, in_chunks
from kyanite.engine.transaction import Row

SCHEMA: Final = f"""
CREATE TABLE kv (key BLOB PRIMARY KEY, value BLOB, checksum INTEGER) WITHOUT ROWID;
CREATE TABLE body (id INTEGER PRIMARY KEY, value BLOB, checksum INTEGER);
{ADD_LONG_VALUES}
"""
ADD_CHECKSUMS: Final = """
ALTER TABLE kv ADD COLUMN checksum INTEGER;
ALTER TABLE body ADD COLUMN checksum INTEGER;
"""
"""From a schema without checksums. It changes no row, so it takes no time."""

_BODY_KEY_BYTES: Final = 9
_BODY_PREFIX_BYTE: Final = BODY_PREFIX[0]
_BODIES_START: Final = BODY_PREFIX
_BODIES_END: Final = bytes([_BODY_PREFIX_BYTE + 1])
_LAST_ID: Final = 2**63 - 1

_GET: Final = "SELECT value, checksum FROM kv WHERE key = ?"
_GET_BODY: Final = "SELECT value, checksum FROM body WHERE id = ?"
_TAKE_SNAPSHOT: Final = "SELECT 1 FROM kv LIMIT 1"
_SCAN: Final = "SELECT key, value, checksum FROM kv WHERE key >= ? AND key < ? ORDER BY key {order} LIMIT ?"
_SCAN_BODIES: Final = (
    "SELECT id, value, checksum FROM body WHERE id BETWEEN ? AND ? ORDER BY id {order} LIMIT ?"
)
_SCANS: Final = {False: _SCAN.format(order="ASC"), True: _SCAN.format(order="DESC")}
_BODY_SCANS: Final = {False: _SCAN_BODIES.format(order="ASC"), True: _SCAN_BODIES.format(order="DESC")}

# OR ROLLBACK never happens, because nothing here can violate a constraint. The default is to undo the statement alone;
# for that SQLite copies every page that a statement of many rows changes (5 times the cost).
_PUT: Final = {
    n: "INSERT OR ROLLBACK INTO kv VALUES "
    + ",".join(["(?,?,?)"] * n)
    + " ON CONFLICT (key) DO UPDATE SET value = excluded.value, checksum = excluded.checksum"
    for n in CHUNKS
}
_PUT_BODY: Final = {
    n: "INSERT OR ROLLBACK INTO body VALUES "
    + ",".join(["(?,?,?)"] * n)
    + " ON CONFLICT (id) DO UPDATE SET value = excluded.value, checksum = excluded.checksum"
    for n in CHUNKS
}
_GET_MANY: Final = {
    n: f"SELECT key, value, checksum FROM kv WHERE key IN ({','.join('?' * n)})" for n in CHUNKS
}
_FEW_KEYS: Final = 16
_GET_FEW: Final = {
    n: " UNION ALL ".join(f"SELECT {index}, value, checksum FROM kv WHERE key = ?" for index in range(n))
    for n in range(2, 9)
}
"""Two thirds of the cost of a statement for each key. ``IN`` would build a table of its own for the keys."""
_DELETE: Final = {n: f"DELETE FROM kv WHERE key IN ({','.join('?' * n)})" for n in CHUNKS}
_DELETE_BODY: Final = {n: f"DELETE FROM body WHERE id IN ({','.join('?' * n)})" for n in CHUNKS}

_WITHOUT_CHECKSUM: Final = "SELECT key FROM kv WHERE key >= ? AND key < ? AND checksum IS NULL"
_BODIES_WITHOUT_CHECKSUM: Final = "SELECT id FROM body WHERE id BETWEEN ? AND ? AND checksum IS NULL"

_PAGE_ROWS: Final = 2_001
"""Scans with a limit up to this are read when they begin."""

_GROUPED_ROWS: Final = 64
"""Rows of a scan by groups are read so many at a time."""

_KEY_TEXT_BYTES: Final = 64
_SIGN: Final = 2**63
"""SQLite's integers are signed."""


class Rows:
    """The rows of one connection. The caller begins and ends the transactions around them."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._cursor = connection.cursor()
        self._long = LongValues(connection)
        self.open_scans: list[apsw.Cursor] = []

    def take_snapshot(self) -> None:
        """SQLite takes its snapshot at the first read."""
        self._cursor.execute(_TAKE_SNAPSHOT).fetchall()

    def get(self, key: bytes) -> bytes | None:
        try:
            if _is_body(key):
                number = int.from_bytes(key[1:], "big")
                row = self._cursor.execute(_GET_BODY, (number,)).get
                if row is None:
                    return None
                value: bytes
                value, checksum = row
                expected = xxh3_64_intdigest(memoryview(value), number) - _SIGN
            else:
                row = self._cursor.execute(_GET, (key,)).get
                if row is None:
                    return None
                stored, checksum = row
                value = self._long.get(stored) if isinstance(stored, int) else stored
                expected = xxh3_64_intdigest(key + value) - _SIGN
        except (TypeError, UnicodeDecodeError) as error:
            self._renew_cursor()
            raise _unreadable(error, key) from error
        if checksum != expected:
            _check_has_none(key, checksum)
        return value

    def _renew_cursor(self) -> None:
        """A statement that has not come to its end would keep SQLite's snapshot."""
        self._cursor.close()
        self._cursor = self._connection.cursor()

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        if len(keys) < _FEW_KEYS:
            statement = _GET_FEW.get(len(keys))
            return [self.get(key) for key in keys] if statement is None else self._get_few(statement, keys)
        found: dict[bytes, bytes] = {}
        bodies = {key for key in keys if len(key) == _BODY_KEY_BYTES and _is_body(key)}
        plain = [key for key in keys if key not in bodies] if bodies else keys
        for statement, some in in_chunks(_GET_MANY, plain, 1):
            try:
                found.update(self._checked(self._cursor.execute(statement, some)))
            except Damaged:
                self._renew_cursor()
                raise
        if bodies:
            return [self.get(key) if key in bodies else found.get(key) for key in keys]
        return list(map(found.get, keys))

    def _get_few(self, statement: str, keys: Sequence[bytes]) -> list[bytes | None]:
        for key in keys:
            if len(key) == _BODY_KEY_BYTES and key[0] == _BODY_PREFIX_BYTE:
                return [self.get(key) for key in keys]
        found: list[bytes | None] = [None] * len(keys)
        try:
            rows: list[Any] = self._cursor.execute(statement, keys).fetchall()
            for index, value, checksum in rows:
                key = keys[index]
                if isinstance(value, int):
                    value = self._long.get(value)
                if checksum != xxh3_64_intdigest(key + value) - _SIGN:
                    _check_has_none(key, checksum)
                found[index] = value
        except (TypeError, UnicodeDecodeError):  # One of the rows is damaged: each alone says which.
            self._renew_cursor()
            return [self.get(key) for key in keys]
        return found

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

    def scan_groups(self, groups: Groups, limit: int) -> Iterator[list[Row]]:
        """Behind a group the same cursor begins again, so that it reads no row that is not returned."""
        start, end, inside, delimiter = groups
        if start < _BODIES_END and end > _BODIES_START:
            yield from seek_groups(self.scan, groups, limit)
            return
        behind = groups.behind_delimiter
        cursor = self._cursor_over(_SCANS[False], (start, end, -1))
        while limit > 0:
            wanted = min(limit, _GROUPED_ROWS)
            found = self._grouped(cursor, wanted, end, inside, delimiter, behind)
            if found:
                yield found
            limit = limit - wanted if len(found) == wanted else 0

    def _grouped(
        self, cursor: apsw.Cursor, wanted: int, end: bytes, inside: int, delimiter: bytes, behind: bytes
    ) -> list[Row]:
        """So many rows, checked: of each group the first. Less, if the range has come to its end."""
        found: list[Any] = []  # Until they are fetched, long values are numbers.
        elsewhere: list[tuple[int, int, object]] = []
        missing = wanted
        try:
            while missing:
                for key, value, checksum in islice(cursor, missing):
                    if isinstance(value, int):
                        elsewhere.append((len(found), value, checksum))
                    elif checksum != xxh3_64_intdigest(key + value) - _SIGN:
                        _check_has_none(key, checksum)
                    found.append((key, value))
                    cut = key.find(delimiter, inside)
                    if cut >= 0:
                        cursor.execute(_SCANS[False], (key[:cut] + behind, end, -1))
                        break
                else:
                    break
                missing = wanted - len(found)
            if elsewhere:
                self._fetch(found, elsewhere)
        except (AttributeError, TypeError, UnicodeDecodeError) as error:
            raise _unreadable(error) from error
        return found

    def _scan_kv(self, start: bytes, end: bytes, reverse: bool, limit: int | None) -> Iterator[Row]:
        if limit is None:
            return self._each_checked(self._cursor_over(_SCANS[reverse], (start, end, -1)))
        bounds = (start, end, limit)
        if limit <= _PAGE_ROWS:
            # Read on the present cursor, because a seek should not cost a cursor of its own.
            try:
                return iter(self._checked(self._cursor.execute(_SCANS[reverse], bounds).fetchall()))
            except UnicodeDecodeError as error:
                self._renew_cursor()
                raise _unreadable(error) from error
            except Damaged:
                self._renew_cursor()
                raise
        return chain.from_iterable(self._checked_in_parts(self._cursor_over(_SCANS[reverse], bounds)))

    def _scan_bodies(self, start: bytes, end: bytes, reverse: bool, limit: int | None) -> Iterator[Row]:
        first = _first_id_from(start)
        last = _first_id_from(end) - 1
        bounds = (first, min(last, _LAST_ID), -1 if limit is None else limit)
        rows: Iterator[Any] = iter(())
        if first <= _LAST_ID:
            rows = self._cursor_over(_BODY_SCANS[reverse], bounds)
        return _bodies_checked(rows)

    def _cursor_over(self, statement: str, bounds: tuple[object, ...]) -> apsw.Cursor:
        cursor = self._connection.execute(statement, bounds)
        self.open_scans.append(cursor)
        return cursor

    def end_scans(self) -> None:
        """Close scans that a body did not read to the end, since they would keep SQLite's snapshot."""
        for cursor in self.open_scans:
            cursor.close()
        self.open_scans.clear()

    def without_checksum(self, start: bytes, end: bytes) -> list[bytes]:
        rows: list[Any] = self._cursor.execute(_WITHOUT_CHECKSUM, (start, end)).fetchall()
        bodies: list[Any] = []
        first, last = _first_id_from(start), min(_first_id_from(end) - 1, _LAST_ID)
        if first <= last:
            bodies = self._cursor.execute(_BODIES_WITHOUT_CHECKSUM, (first, last)).fetchall()
        return [key for (key,) in rows] + [_body_key(number) for (number,) in bodies]

    def apply(self, writes: Mapping[bytes, bytes | None]) -> None:
        """Put or delete (None) every key, in key order, so that neighbours share the path down the tree."""
        puts: list[bytes | int] = []
        deletes: list[bytes] = []
        body_puts: list[int | bytes] = []
        body_deletes: list[int] = []
        for key in sorted(writes):
            value = writes[key]
            if len(key) == _BODY_KEY_BYTES and _is_body(key):
                number = int.from_bytes(key[1:], "big")
                if value is None:
                    body_deletes.append(number)
                else:
                    body_puts += (number, value, xxh3_64_intdigest(memoryview(value), number) - _SIGN)
            elif value is None:
                deletes.append(key)
            else:
                is_short = len(key) + len(value) <= SHORT_MAX
                stored = value if is_short else self._long.add(key, value)
                puts += (key, stored, xxh3_64_intdigest(key + value) - _SIGN)
        if deletes:
            self._long.delete_of(deletes)
        for statements, values, width in (
            (_PUT, puts, 3),
            (_DELETE, deletes, 1),
            (_PUT_BODY, body_puts, 3),
            (_DELETE_BODY, body_deletes, 1),
        ):
            if len(values) == width:
                self._cursor.execute(statements[1], values)
            elif values:
                for statement, some in in_chunks(statements, values, width):
                    self._cursor.execute(statement, some)

    # Keys and values of rows, checked. These raise Damaged for the first row that is not as it was written.

    def _checked(self, rows: Iterable[Any]) -> list[Row]:
        found: list[Any] = []  # Until they are fetched, long values are numbers.
        elsewhere: list[tuple[int, int, object]] = []
        try:
            for key, value, checksum in rows:
                if isinstance(value, int):
                    elsewhere.append((len(found), value, checksum))
                elif checksum != xxh3_64_intdigest(key + value) - _SIGN:
                    _check_has_none(key, checksum)
                found.append((key, value))
            if elsewhere:
                self._fetch(found, elsewhere)
        except (TypeError, UnicodeDecodeError) as error:
            raise _unreadable(error) from error
        return found

    def _fetch(self, found: list[Any], elsewhere: Sequence[tuple[int, int, object]]) -> None:
        """Put long values in the places of their numbers."""
        values = self._long.get_many([number for _, number, _ in elsewhere])
        for index, number, checksum in elsewhere:
            key = found[index][0]
            value: Any = values.get(number)
            if checksum != xxh3_64_intdigest(key + value) - _SIGN:
                _check_has_none(key, checksum)
            found[index] = (key, value)

    def _checked_in_parts(self, cursor: apsw.Cursor) -> Iterator[list[Row]]:
        while part := self._checked(islice(cursor, STEP_ROWS)):
            yield part

    def _each_checked(self, cursor: apsw.Cursor) -> Iterator[Row]:
        try:
            for key, value, checksum in cursor:
                if isinstance(value, int):
                    value = self._long.get(value)
                if checksum != xxh3_64_intdigest(key + value) - _SIGN:
                    _check_has_none(key, checksum)
                yield key, value
        except (TypeError, UnicodeDecodeError) as error:
            raise _unreadable(error) from error


def _bodies_checked(rows: Iterable[Any]) -> Iterator[Row]:
    try:
        for number, value, checksum in rows:
            key = _body_key(number)
            if checksum != xxh3_64_intdigest(memoryview(value), number) - _SIGN:
                _check_has_none(key, checksum)
            yield key, value
    except (TypeError, UnicodeDecodeError) as error:
        raise _unreadable(error) from error


def _check_has_none(key: bytes, checksum: object) -> bool:
    if checksum is not None:
        raise Damaged(f"The checksum of the row {_key_text(key)} is wrong.", key)
    return True


def _unreadable(error: Exception, key: bytes | None = None) -> Damaged:
    return Damaged(f"A row cannot be read: {error}.", key)


def _key_text(key: bytes) -> str:
    return key[:_KEY_TEXT_BYTES].hex() + ("…" if len(key) > _KEY_TEXT_BYTES else "")


def _body_key(number: int) -> bytes:
    return BODY_PREFIX + number.to_bytes(8, "big")


def _is_body(key: bytes) -> bool:
    return len(key) == _BODY_KEY_BYTES and key[0] == _BODY_PREFIX_BYTE and key[1] < 128


def _first_id_from(bound: bytes) -> int:
    """The smallest body number whose key is not below the bound; 2**63 when there is none."""
    if bound <= _BODIES_START:
        return 0
    if bound >= _BODIES_END:
        return 2**63
    tail = bound[1:]
    number = int.from_bytes(tail[:8].ljust(8, b"\0"), "big")
    return min(number + (len(tail) > 8), 2**63)
