"""Reading all rows of a store in pages, also past rows that cannot be read.

Rows are read by the first byte of their keys, because an engine may store keys of one letter apart: damage there must
not end a page of the others. Where a row cannot be read and the engine does not know its key, the next key from which
on rows can be read again is found by bisection.
"""

from collections.abc import AsyncGenerator, Callable
from functools import partial
from typing import NamedTuple, Protocol, TypeVar

from kyanite.engine.api import Damaged, Engine, EngineBusy, EngineClosed, EngineError, Snapshot, TooLarge

PAGE_ROWS = 1000
PAGE_BYTES = 4 * 1024 * 1024
BEHIND_ALL = b"\xff" * 16
"""No key is beyond this one."""
_SEARCH_BYTES = 64
"""Keys that have this many bytes in common with one that cannot be read are skipped together with it."""
_ZEROS_MAX = 32


class Row(NamedTuple):
    key: bytes
    value: bytes


class Rows(NamedTuple):
    """Rows that follow one another."""

    rows: list[Row]
    next_key: bytes | None
    """Where the next page begins; None at the end of the range."""
    is_cut: bool = False
    """Whether the page ends because the next row cannot be read."""


class Unreadable(NamedTuple):
    """A range of keys in which rows cannot be read."""

    start: bytes
    end: bytes
    key: bytes | None = None
    """The key of the row, if it is only one."""

    @property
    def subject(self) -> bytes:
        """What names the range in findings."""
        return self.start if self.key is None else self.key


class Page(Protocol):
    """What a body makes of some rows."""

    @property
    def next_key(self) -> bytes | None: ...

    @property
    def is_cut(self) -> bool: ...


P = TypeVar("P", bound=Page)
T = TypeVar("T")
ReadPage = Callable[[Snapshot, bytes, bytes], P]
"""Reads a page of the range of keys from ``start`` to ``end``."""


def take(
    snap: Snapshot, start: bytes, end: bytes, *, rows_max: int = PAGE_ROWS, bytes_max: int = PAGE_BYTES
) -> Rows:
    """The first rows of the range, up to a bounded number of rows and bytes, or up to one that cannot be read."""
    found: list[Row] = []
    size = 0
    scan = snap.scan(start, end)
    while True:
        try:
            row = next(scan, None)
        except TooLarge:
            raise
        except Exception:  # Whatever an engine raises on damage within a body.
            return _take_singly(snap, found, start, end, rows_max)
        if row is None:
            return Rows(found, None)
        found.append(Row(*row))
        size += len(row[1])
        if len(found) >= rows_max or size >= bytes_max:
            return Rows(found, _behind(found, start))


def _take_singly(snap: Snapshot, found: list[Row], start: bytes, end: bytes, rows_max: int) -> Rows:
    """A scan may fail somewhat before the row that cannot be read, so the last rows before it are read one by one."""
    while len(found) < rows_max:
        try:
            row = next(snap.scan(_behind(found, start), end, limit=1), None)
        except TooLarge:
            raise
        except Exception:
            return Rows(found, _behind(found, start), is_cut=True)
        if row is None:
            return Rows(found, None)
        found.append(Row(*row))
    return Rows(found, _behind(found, start))


def _behind(found: list[Row], start: bytes) -> bytes:
    return found[-1].key + b"\0" if found else start


async def pages(
    engine: Engine, read: ReadPage[P], start: bytes = b"", end: bytes | None = None
) -> AsyncGenerator[P | Unreadable, None]:
    """All pages from one key to another, or to the last one, and in between what cannot be read."""
    position: bytes = start
    while position is not None and (end is None or position < end):
        letter_end = _letter_end(position)
        within = min(each for each in (letter_end, end, BEHIND_ALL) if each is not None)
        page = await engine.read(partial(_read, read=read, start=position, end=within))
        yield page
        if page.is_cut:
            assert page.next_key is not None
            unreadable = await find_end(engine, page.next_key, within)
            yield unreadable
            position = unreadable.end
        elif page.next_key is not None:
            position = page.next_key
        elif letter_end is None:
            return
        else:
            position = within


def _read(snap: Snapshot, read: ReadPage[P], start: bytes, end: bytes) -> P:
    return read(snap, start, end)


def _letter_end(position: bytes) -> bytes | None:
    letter = position[0] if position else 0
    return bytes((letter + 1,)) if letter < 0xFF else None


async def find_end(engine: Engine, start: bytes, end: bytes) -> Unreadable:
    """How far the rows cannot be read, after the first one of the range could not be."""
    try:
        await engine.read(lambda snap: list(snap.scan(start, end, limit=1)))
    except Damaged as damaged:
        if damaged.key is not None and start <= damaged.key < end:
            return Unreadable(start, damaged.key + b"\0", damaged.key)
    except (EngineBusy, EngineClosed):
        raise
    except EngineError:
        pass
    return await _search_end(engine, start, end)


async def _search_end(engine: Engine, start: bytes, end: bytes) -> Unreadable:
    first = await _first_unreadable(engine, start, end)
    if await _is_readable(engine, first + b"\0", end):
        return Unreadable(start, first + b"\0", first)
    return Unreadable(start, await _first_readable(engine, first, end))


async def _first_unreadable(engine: Engine, start: bytes, end: bytes) -> bytes:
    """The key of the first row that cannot be read, if it is short enough: the last key up to which there is none."""
    width = max(_SEARCH_BYTES, len(start))
    low, high = _number(start, width), _number(end, width)
    while high - low > 1:
        middle = (low + high) // 2
        if await _is_readable(engine, start, _key(middle, width)):
            low = middle
        else:
            high = middle
    first = max(start, _key(low, width))
    for _ in range(_ZEROS_MAX):  # How many zeros a key ends with cannot be told from a number.
        if not await _is_readable(engine, start, first + b"\0"):
            break
        first += b"\0"
    return first


async def _first_readable(engine: Engine, start: bytes, end: bytes) -> bytes:
    """Where rows can be read again. Steps that grow find the end of this range and not that of a later one."""
    width = max(_SEARCH_BYTES, len(start))
    low, high = _number(start, width), _number(end, width)
    for zeros in range(0, 8 * width, 8):
        candidate = ((low >> zeros) + 1) << zeros
        if candidate >= high:
            break
        if await _is_readable(engine, _key(candidate, width), end):
            high = candidate
            break
        low = candidate
    while high - low > 1:
        middle = (low + high) // 2
        if await _is_readable(engine, _key(middle, width), end):
            high = middle
        else:
            low = middle
    return min(max(_key(high, width), start + b"\0"), end)


def _key(number: int, width: int) -> bytes:
    """The shortest key that has this number."""
    return number.to_bytes(width, "big").rstrip(b"\0")


def _number(key: bytes, width: int) -> int:
    return int.from_bytes(key[:width].ljust(width, b"\0"), "big")


async def _is_readable(engine: Engine, start: bytes, end: bytes) -> bool:
    """Whether the first row of the range can be read, or there is none."""
    return await read_if_possible(engine, lambda snap: list(snap.scan(start, end, limit=1))) is not None


async def read_if_possible(engine: Engine, body: Callable[[Snapshot], T]) -> T | None:
    """None if rows that the body reads are damaged."""
    try:
        return await engine.read(body)
    except (EngineBusy, EngineClosed, TooLarge):
        raise
    except EngineError:
        return None


def range_of(key: bytes) -> Unreadable:
    """One row, as a range."""
    return Unreadable(key, key + b"\0", key)
