"""The statements: one that fetches and confirms, of one committed state; and one that commits a batch.

A row is asked for with the version that is known of it; the answer has those whose version is another one. So the same
statement confirms what was guessed and fetches what was not. Ranges are fetched with the next key beyond them, and
confirmed by a hash of their keys and versions.

Values are stored with a checksum of key and value, which is checked when they come back.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from xxhash import xxh3_64_digest

from kyanite.engine.api import Damaged
from kyanite.engine.postgres.known import ABSENT, FoundGroups, Stored, Version, Wanted, WantedGroups
from kyanite.engine.postgres.order import footprint
from kyanite.engine.postgres.schema import MAX_SHORT_KEY_BYTES, RANGE_HASH
from kyanite.values import Instant

UNKNOWN: Final = -1
"""The version to ask with if none is known."""

_CHECKSUM_BYTES: Final = 8
_TIME, _ROW, _LONG_ROW, _UP, _DOWN, _AFTER, _BEFORE, _CHANGED, _GROUP = range(9)
_GROUPS_BYTES: Final = 4 * 1024 * 1024
"""A scan by groups ends, to be gone on with, when what it returns is as long."""

_TIME_PART: Final = (
    f"SELECT {_TIME} AS kind, last_value AS i, NULL::bytea AS key, clock_ticks() AS version, NULL::bytea AS value"
    " FROM last_instant"
)
_ROWS_PART: Final = (
    "SELECT {kind}, q.i, NULL, s.version, s.value"
    " FROM unnest(${a}::bytea[], ${b}::bigint[]) WITH ORDINALITY q(key, version, i)"
    " LEFT JOIN {table} s ON {join} WHERE s.version IS DISTINCT FROM q.version"
)
_LONG_WITHIN: Final = (
    f"head >= substring(q.low for {MAX_SHORT_KEY_BYTES}) AND head <= substring(q.high for {MAX_SHORT_KEY_BYTES})"
    " AND key >= q.low AND key < q.high"
)
_RANGE_PART: Final = (
    "SELECT {kind}, q.i, r.key, r.version, r.value"
    " FROM unnest(${a}::bytea[], ${b}::bytea[], ${c}::bigint[]) WITH ORDINALITY q(low, high, rows, i), LATERAL ("
    "(SELECT key, version, value FROM kv WHERE key >= q.low AND key < q.high ORDER BY key {order} LIMIT q.rows)"
    f" UNION ALL (SELECT key, version, value FROM kv_long WHERE {_LONG_WITHIN}"
    " ORDER BY key {order} LIMIT q.rows)) r"
    " UNION ALL SELECT {beyond}, q.i, r.key, NULL, NULL"
    " FROM unnest(${a}::bytea[], ${b}::bytea[]) WITH ORDINALITY q(low, high, i), LATERAL ("
    "(SELECT key FROM kv WHERE key {side} ORDER BY key {order} LIMIT 1)"
    " UNION ALL (SELECT key FROM kv_long WHERE head {long_side} AND key {side} ORDER BY key {order} LIMIT 1)) r"
)
_CONFIRM_PART: Final = (
    f"SELECT {_CHANGED}, q.i, NULL, NULL, NULL"
    " FROM unnest(${a}::bytea[], ${b}::bytea[], ${c}::bytea[]) WITH ORDINALITY q(low, high, hash, i)"
    f" WHERE q.hash IS DISTINCT FROM ({RANGE_HASH})"
)
_GROUPS_PART: Final = (
    f"SELECT {_GROUP}, q.i, r.found_key, r.found_version, r.found_value"
    " FROM unnest(${a}::bytea[], ${b}::bytea[], ${c}::int[], ${d}::bytea[], ${e}::bytea[], ${f}::bigint[])"
    " WITH ORDINALITY q(low, high, inside, delimiter, behind, rows, i),"
    f" LATERAL scan_groups(q.low, q.high, q.inside, q.delimiter, q.behind, q.rows, {_GROUPS_BYTES}) r"
)
COMMIT: Final = (
    "SELECT status, last, clock, changed, changed_versions, changed_values FROM commit_batch($1,$2,$3,$4,"
    "$5::bytea[],$6::bigint[],$7::bytea[],$8::bytea[],$9::bytea[],$10,$11,$12::bytea[],$13::bytea[],$14::bytea[],$15,"
    "$16::text[],$17::bigint[],$18::bigint[],$19::bytea[],$20::bytea[],$21::bytea[])"
)
RESOLVE: Final = (
    "INSERT INTO batch (number) VALUES ($1) ON CONFLICT (number) DO UPDATE SET at = now() RETURNING xmax = 0"
)
"""True if there was no such batch. It writes in either case: its commit waits until a standby has that of the batch."""


@lru_cache(maxsize=64)
def _fetch_text(rows: bool, long_rows: bool, up: bool, down: bool, confirm: bool, groups: bool) -> str:
    parts = [_TIME_PART]
    given = 0

    def numbers(count: int) -> dict[str, int]:
        nonlocal given
        given += count
        return dict(zip("abcdef", range(given - count + 1, given + 1), strict=False))

    if rows:
        parts.append(_ROWS_PART.format(kind=_ROW, table="kv", join="s.key = q.key", **numbers(2)))
    if long_rows:
        parts.append(
            _ROWS_PART.format(kind=_LONG_ROW, table="kv_long", join="s.hash = sha256(q.key)", **numbers(2))
        )
    if up:
        side, long_side = ">= q.high", f">= substring(q.high for {MAX_SHORT_KEY_BYTES})"
        parts.append(
            _RANGE_PART.format(
                kind=_UP, beyond=_AFTER, order="ASC", side=side, long_side=long_side, **numbers(3)
            )
        )
    if down:
        side, long_side = "< q.low", f"<= substring(q.low for {MAX_SHORT_KEY_BYTES})"
        parts.append(
            _RANGE_PART.format(
                kind=_DOWN, beyond=_BEFORE, order="DESC", side=side, long_side=long_side, **numbers(3)
            )
        )
    if confirm:
        parts.append(_CONFIRM_PART.format(**numbers(3)))
    if groups:
        parts.append(_GROUPS_PART.format(**numbers(6)))
    return " UNION ALL ".join(parts)


class Request:
    """What to fetch and to confirm."""

    __slots__ = ("confirmed", "groups", "ranges", "rows")

    def __init__(
        self,
        rows: dict[bytes, Version] | None = None,
        ranges: list[Wanted] | None = None,
        confirmed: list[tuple[bytes, bytes, bytes]] | None = None,
        groups: list[WantedGroups] | None = None,
    ) -> None:
        self.rows = {} if rows is None else rows
        """Keys, and the versions that are known of them."""
        self.ranges = [] if ranges is None else ranges
        self.confirmed = [] if confirmed is None else confirmed
        """Ranges and their hashes."""
        self.groups = [] if groups is None else groups

    def statement(self) -> tuple[str, list[object]]:
        short = {key: version for key, version in self.rows.items() if len(key) <= MAX_SHORT_KEY_BYTES}
        long = {} if len(short) == len(self.rows) else {k: v for k, v in self.rows.items() if k not in short}
        up = [each for each in self.ranges if not each.reverse]
        down = [each for each in self.ranges if each.reverse]
        values: list[object] = []
        for rows in (short, long):
            if rows:
                values += [list(rows), list(rows.values())]
        for ranges in (up, down):
            if ranges:
                values += [[r.low for r in ranges], [r.high for r in ranges], [r.rows for r in ranges]]
        if self.confirmed:
            values += [list(column) for column in zip(*self.confirmed, strict=True)]
        if self.groups:
            columns = zip(*((*g, g.behind_delimiter, rows) for g, rows in self.groups), strict=True)
            values += [list(column) for column in columns]
        text = _fetch_text(
            bool(short), bool(long), bool(up), bool(down), bool(self.confirmed), bool(self.groups)
        )
        return text, values


class Answer:
    """What was found, all of one committed state."""

    __slots__ = ("changed", "clock", "groups", "last", "ranges", "rows")

    def __init__(self) -> None:
        self.last = Instant(0)
        """Not before any transaction of that state."""
        self.clock = Instant(0)
        self.rows: dict[bytes, Stored] = {}
        """The rows whose versions differ from those that were asked with."""
        self.ranges: list[tuple[Wanted, list[tuple[bytes, Stored]], bytes | None]] = []
        self.changed: list[tuple[bytes, bytes]] = []
        """The ranges that are not as they were."""
        self.groups: dict[WantedGroups, FoundGroups] = {}

    def latest_version(self) -> Instant:
        """Of the rows that were found."""
        latest = max((version or 0 for version, _ in self.rows.values()), default=0)
        for _, rows, _ in self.ranges:
            latest = max(latest, *(version or 0 for _, (version, _) in rows), 0)
        return Instant(latest)


def times(records: Sequence[Any]) -> tuple[Instant, Instant]:
    """The last instant, and the clock, of an answer that was not decoded yet."""
    for kind, last, _, clock, _ in records:
        if kind == _TIME:
            return last, clock
    raise AssertionError("every answer has the time")


def decode(request: Request, records: Sequence[Any]) -> Answer:
    short = [key for key in request.rows if len(key) <= MAX_SHORT_KEY_BYTES]
    long = (
        [] if len(short) == len(request.rows) else [k for k in request.rows if len(k) > MAX_SHORT_KEY_BYTES]
    )
    up = [each for each in request.ranges if not each.reverse]
    down = [each for each in request.ranges if each.reverse]
    found: dict[tuple[int, int], list[tuple[bytes, Stored]]] = {}
    beyond: dict[tuple[int, int], list[bytes]] = {}
    more_from: dict[int, bytes] = {}
    answer = Answer()
    for kind, i, key, version, value in records:
        if kind == _TIME:
            answer.last, answer.clock = i, version
        elif kind == _ROW:
            key = short[i - 1]
            answer.rows[key] = ABSENT if version is None else (version, checked(key, value))
        elif kind == _LONG_ROW:
            key = long[i - 1]
            answer.rows[key] = ABSENT if version is None else (version, checked(key, value))
        elif kind in (_UP, _DOWN):
            found.setdefault((kind, i), []).append((key, (version, checked(key, value))))
        elif kind == _GROUP and version is None:
            more_from[i] = key
        elif kind == _GROUP:
            found.setdefault((_GROUP, i), []).append((key, (version, checked(key, value))))
        elif kind == _CHANGED:
            answer.changed.append(request.confirmed[i - 1][:2])
        else:
            beyond.setdefault((kind, i), []).append(key)
    for i, wanted in enumerate(up, 1):
        rows = sorted(found.get((_UP, i), ()))[: wanted.rows]
        answer.ranges.append((wanted, rows, min(beyond.get((_AFTER, i), ()), default=None)))
    for i, wanted in enumerate(down, 1):
        rows = sorted(found.get((_DOWN, i), ()))[-wanted.rows :]
        answer.ranges.append((wanted, rows, max(beyond.get((_BEFORE, i), ()), default=None)))
    for i, wanted_groups in enumerate(request.groups, 1):
        rows = sorted(found.get((_GROUP, i), ()))
        answer.groups[wanted_groups] = FoundGroups(rows, more_from.get(i))
    return answer


def commit_values(
    *,
    batch: bytes,
    old_batches: Sequence[bytes],
    is_durable: bool,
    reads: Mapping[bytes, Version],
    ranges: Iterable[tuple[bytes, bytes, bytes]],
    instants: Sequence[int],
    writes: Mapping[bytes, bytes | None],
    channel: str,
    payloads: Sequence[str],
) -> list[object]:
    puts = {key: value for key, value in writes.items() if value is not None}
    deletes = [key for key, value in writes.items() if value is None]
    ranges = list(ranges)
    has_long = any(len(key) > MAX_SHORT_KEY_BYTES for keys in (reads, writes) for key in keys)
    return [
        batch,
        list(old_batches),
        is_durable,
        has_long,
        list(reads),
        list(reads.values()),
        [low for low, _, _ in ranges],
        [high for _, high, _ in ranges],
        [digest for _, _, digest in ranges],
        instants[0],
        instants[-1],
        list(puts),
        [xxh3_64_digest(key + value) + value for key, value in puts.items()],
        deletes,
        channel,
        list(payloads),
        *footprint(reads, ranges, writes, instants),
    ]


def changed_rows(
    keys: Iterable[bytes],
    numbers: Sequence[int] | None,
    versions: Sequence[Version] | None,
    values: Sequence[bytes | None] | None,
) -> dict[bytes, Stored]:
    """What the database has in the place of rows that were read, which it numbers as these keys, from one."""
    if numbers is None or versions is None or values is None:
        return {}
    ordered = list(keys)
    found: dict[bytes, Stored] = {}
    for number, version, value in zip(numbers, versions, values, strict=True):
        key = ordered[number - 1]
        found[key] = ABSENT if value is None else (version, checked(key, value))
    return found


def checked(key: bytes, stored: bytes) -> bytes:
    """The value, if it is what was written."""
    value = stored[_CHECKSUM_BYTES:]
    if xxh3_64_digest(key + value) != stored[:_CHECKSUM_BYTES]:
        raise Damaged("a row of the database is not as it was written", key)
    return value
