"""Find Blobs by Tags: the blobs of an account or of one container whose tags have the wanted values.

The postings of one tag with one value lie in the order of container id and blob name. So equalities are intersected by
seeks: whichever list of postings is ahead says where the others go on, and the cost is that of the shortest list,
whatever its length. The postings of a range of values are in the order of the values, so each range is a way of its
own to the result. The record of each blob that is found on a way is read, and decides.

If a search has several ways, the results come from the first one, the equalities if there are any. In step with it, the
others are tried with a few rows each, then with four times as many, and so on. If one of them comes to its end before
the first way does, it is known to be short, and the rest of the results comes from it: all blobs on it that the first
way had still before it. So a search costs what its shortest way does, times a number that depends on the expression
only, and no page waits for the choice.

A page is one snapshot of the store, read in bounded steps, and ends after ``ROWS_MAX`` rows even if it has found
nothing. The marker of the next page has the positions on the ways.
"""

from bisect import bisect_left
from collections.abc import Awaitable, Iterator, Sequence
from typing import NamedTuple, Protocol

import msgspec

from kyanite.engine.api import STEP_ROWS, Engine, Snapshot, Steps
from kyanite.model import keys
from kyanite.model.blobs import container
from kyanite.model.blobs.container import ContainerKey
from kyanite.model.blobs.records import decode_blob, decode_container
from kyanite.model.blobs.tag_index import decode_container_key
from kyanite.rules.tag_expressions import Search, ValueRange
from kyanite.rules.tags import NO_TAGS, Tags

ROWS_MAX = 20_000
"""A page ends after reading this many rows."""

POSITION_MAX_BYTES = 6 * 1024
"""Longer than any position: a value, an id and a name."""

_FIRST_TRIAL_ROWS = 64
_RECORDS_AT_ONCE = 128
_PART_MAX = 256
_SEEK_COST = 4
"""What a seek costs, in rows."""
_ROWS_AT_ONCE = STEP_ROWS // 2
_ID_BYTES = 8


class SearchPosition(NamedTuple):
    """Where a page begins."""

    way: int = 0
    """The way from which the results come; less than ``ways_to``."""
    at: bytes = b""
    """The position on it."""
    after: bytes = b""
    """If it is not the first way: the position on that up to which results were returned already."""
    tried: int = 1
    """The way that is being tried."""
    tried_at: bytes = b""
    """The position on it."""
    limit: int = _FIRST_TRIAL_ROWS
    """With how many rows each way is tried."""
    spent: int = 0
    """How many of them were spent on it."""


BEGINNING = SearchPosition()


class FoundBlob(NamedTuple):
    container: str
    name: str
    tags: Tags
    """Those that the search names."""


class FoundPage(msgspec.Struct, frozen=True):
    blobs: list[FoundBlob]
    next_start: SearchPosition | None
    """Where the next page begins, or None when this was the last."""


class TagSearch(msgspec.Struct, frozen=True):
    account: str
    search: Search
    container: str = ""
    """The only container to search, which has to exist; empty for all of the account."""
    first: SearchPosition = BEGINNING
    limit: int = 5000


def ways_to(search: Search) -> int:
    """How many ways to its result a search has: all equalities together are one, and each range is another."""
    equal = sum(each.value is not None for each in search.ranges)
    return len(search.ranges) - equal + bool(equal)


def find_blobs(engine: Engine, request: TagSearch) -> Awaitable[FoundPage]:
    def body(snap: Snapshot) -> Steps[FoundPage]:
        scope = _scope_of(snap, request)
        if scope is _NOTHING:
            return FoundPage([], None)
        work = _Work()
        return (yield from _Page(snap, work, request, _ways(snap, work, request, scope)).read())

    return engine.read_in_steps(body)


# Which containers are searched


class _Scope(NamedTuple):
    """The range of the postings of a value that are to be found, by what their keys end with."""

    start: bytes
    end: bytes


_EVERYTHING = _Scope(b"", b"\xff" * (_ID_BYTES + 1))
_NOTHING = _Scope(b"", b"")


def _scope_of(snap: Snapshot, request: TagSearch) -> _Scope:
    if request.container:
        container_id = container.load(snap, ContainerKey(request.account, request.container)).id
    elif request.search.container is not None:
        stored = snap.get(keys.container(request.account, request.search.container))
        if stored is None:
            return _NOTHING
        container_id = decode_container(stored).id
    else:
        return _EVERYTHING
    return _Scope(_id(container_id), _id(container_id + 1))


def _id(container_id: int) -> bytes:
    return container_id.to_bytes(_ID_BYTES, "big")


class _Containers:
    """The names of containers by their ids, each looked up once for a page."""

    def __init__(self, snap: Snapshot, work: "_Work", account: str) -> None:
        self._snap = snap
        self._work = work
        self._account = account
        self._names: dict[bytes, str | None] = {}

    def name(self, coded_id: bytes) -> str | None:
        """None if the container was deleted."""
        if coded_id not in self._names:
            self._names[coded_id] = self._find(int.from_bytes(coded_id, "big"))
            self._work.rows += 2
        return self._names[coded_id]

    def _find(self, container_id: int) -> str | None:
        stored = self._snap.get(keys.tagged_container(container_id))
        if stored is None:
            return None
        name = decode_container_key(stored).name
        record = self._snap.get(keys.container(self._account, name))
        return name if record is not None and decode_container(record).id == container_id else None


# Ways to the result


class _Work(msgspec.Struct):
    """The rows that were read."""

    rows: int = 0
    _step_end: int = STEP_ROWS

    def is_step_over(self) -> bool:
        if self.rows < self._step_end:
            return False
        self._step_end = self.rows + STEP_ROWS
        return True


class _Reached(NamedTuple):
    """How far a way has come. If there is no posting at the position, it has only come to the end of a step."""

    position: bytes
    is_posting: bool


class _Way(Protocol):
    def next_from(self, position: bytes) -> _Reached | None:
        """Go on to the next posting at this position or behind it, for a bounded number of rows; None at the end."""

    def posting_at(self, position: bytes) -> bytes:
        """What the key of the posting ends with: the id of the container and the name of the blob."""

    def position_of(self, posting: bytes, tags: Tags) -> bytes:
        """Where on this way a blob is that has these tags."""

    def behind_container(self, position: bytes) -> bytes:
        """The position behind the postings of the same container, of the same value."""


def _ways(snap: Snapshot, work: _Work, request: TagSearch, scope: _Scope) -> Sequence[_Way]:
    ranges = request.search.ranges
    equal = [each for each in ranges if each.value is not None]
    ways: list[_Way] = []
    if equal:
        lists = [keys.tag(request.account, each.key, each.value or "") for each in equal]
        part_max = _PART_MAX // len(lists)
        ways.append(_Equalities([_Cursor(snap, work, prefix, *scope, part_max) for prefix in lists], work))
    ways += [
        _Values(snap, work, keys.tag_key(request.account, each.key), each, scope)
        for each in ranges
        if each.value is None
    ]
    return ways


class _Cursor:
    """Postings in the order of their keys, read in parts: longer ones where they are read one after the other."""

    def __init__(
        self,
        snap: Snapshot,
        work: _Work,
        prefix: bytes,
        start: bytes,
        end: bytes,
        part_max: int = _PART_MAX,
    ) -> None:
        self._snap = snap
        self._work = work
        self._prefix = prefix
        self._start, self._end = start, end
        self._part_max = part_max
        self._part: list[bytes] = []
        self._part_start = b""
        self._is_last_part = False
        self._returned = 0

    def seek(self, position: bytes) -> bytes | None:
        """The first at the position or behind it."""
        position = max(position, self._start)
        if position >= self._end:
            return None
        part = self._part
        if position < self._part_start or (not self._is_last_part and (not part or part[-1] < position)):
            part = self._read(position)
        at = bisect_left(part, position)
        if at == len(part):
            return None
        self._returned += 1
        return part[at]

    def _read(self, position: bytes) -> list[bytes]:
        limit = min(max(2 * self._returned, 1), self._part_max)
        prefix, cut = self._prefix, len(self._prefix)
        found = self._snap.scan(prefix + position, prefix + self._end, limit=limit)
        self._part = part = [key[cut:] for key, _ in found]
        self._part_start = position
        self._is_last_part = len(part) < limit
        self._returned = 0
        self._work.rows += _SEEK_COST + len(part)
        return part


class _Equalities:
    """The postings that all lists have. A position is what their keys end with."""

    def __init__(self, lists: Sequence[_Cursor], work: _Work) -> None:
        self._lists = lists
        self._work = work

    def next_from(self, position: bytes) -> _Reached | None:
        """Seek in one list after the other, until all of them have returned the same posting."""
        work, lists = self._work, self._lists
        limit, agreed, number = work.rows + _ROWS_AT_ONCE, 0, 0
        while work.rows < limit:
            found = lists[number].seek(position)
            if found is None:
                return None
            agreed = agreed + 1 if found == position else 1
            position = found
            if agreed == len(lists):
                return _Reached(position, is_posting=True)
            number = (number + 1) % len(lists)
        return _Reached(position, is_posting=False)

    def posting_at(self, position: bytes) -> bytes:
        return position

    def position_of(self, posting: bytes, tags: Tags) -> bytes:
        return posting

    def behind_container(self, position: bytes) -> bytes:
        return keys.after(position[:_ID_BYTES])


class _Values:
    """The postings of a range of values. A position is a value and then what their keys end with."""

    def __init__(self, snap: Snapshot, work: _Work, prefix: bytes, wanted: ValueRange, scope: _Scope) -> None:
        lower, upper = wanted.lower, wanted.upper
        start = b"" if lower is None else lower.value.encode() + (b"\0" if lower.is_included else b"\1")
        end = b"\xff" if upper is None else upper.value.encode() + (b"\1" if upper.is_included else b"\0")
        self._postings = _Cursor(snap, work, prefix, start, end)
        self._work = work
        self._scope = scope
        self._key = wanted.key

    def next_from(self, position: bytes) -> _Reached | None:
        """Other containers are skipped by seeks, two for each value."""
        limit = self._work.rows + _ROWS_AT_ONCE
        while self._work.rows < limit:
            found = self._postings.seek(position)
            if found is None:
                return None
            value, _, posting = found.partition(b"\0")
            if posting < self._scope.start:
                position = value + b"\0" + self._scope.start
            elif posting >= self._scope.end:
                position = value + b"\1"
            else:
                return _Reached(found, is_posting=True)
        return _Reached(position, is_posting=False)

    def posting_at(self, position: bytes) -> bytes:
        return position.partition(b"\0")[2]

    def position_of(self, posting: bytes, tags: Tags) -> bytes:
        return dict(tags)[self._key].encode() + b"\0" + posting

    def behind_container(self, position: bytes) -> bytes:
        value, _, posting = position.partition(b"\0")
        return value + b"\0" + keys.after(posting[:_ID_BYTES])


class _Trial:
    """Looks for a way other than the first that is known to be short."""

    def __init__(self, ways: Sequence[_Way], work: _Work, start: SearchPosition) -> None:
        self._ways = ways
        self._work = work
        self.rows = 0
        self.tried, self.at, self.limit, self.spent = start.tried, start.tried_at, start.limit, start.spent

    def go_on(self) -> int | None:
        """Try some more rows. Returns the number of a way that has come to its end."""
        before = self._work.rows
        reached = self._ways[self.tried].next_from(self.at)
        self.rows += self._work.rows - before
        self.spent += self._work.rows - before
        if reached is None:
            return self.tried
        self.at = _behind(reached)
        if self.spent >= self.limit:
            self.tried, self.at, self.spent = self.tried + 1, b"", 0
            if self.tried == len(self._ways):
                self.tried, self.limit = 1, self.limit * 4
        return None


def _behind(reached: _Reached) -> bytes:
    """Where the way goes on."""
    return reached.position + b"\0" if reached.is_posting else reached.position


# A page


class _Candidate(NamedTuple):
    way: int
    position: bytes
    after: bytes
    container: str
    posting: bytes


class _Page:
    """Reads a page."""

    def __init__(self, snap: Snapshot, work: _Work, request: TagSearch, ways: Sequence[_Way]) -> None:
        start = request.first
        self._snap = snap
        self._work = work
        self._request = request
        self._ways = ways
        self._containers = _Containers(snap, work, request.account)
        self._blobs: list[FoundBlob] = []
        self._candidates: list[_Candidate] = []
        self._way, self._position, self._after = start.way, start.at, start.after
        self._trial = _Trial(ways, work, start)
        self._is_tried = len(ways) > 1 and start.way == 0
        self._rows = 0
        """Those of the way from which the results come."""

    def read(self) -> Steps[FoundPage]:
        work, limit = self._work, self._request.limit
        end = work.rows + ROWS_MAX
        while True:
            if work.is_step_over():
                yield
            if self._is_tried and self._trial.rows <= self._rows:
                self._try()
                is_last = False
            else:
                is_last = not self._go_on()
            is_over = is_last or work.rows >= end
            if is_over or len(self._candidates) >= min(limit + 1 - len(self._blobs), _RECORDS_AT_ONCE):
                for candidate, tags in self._matching():
                    if len(self._blobs) == limit:
                        return FoundPage(self._blobs, self._start_at(*candidate[:3]))
                    name = candidate.posting[_ID_BYTES:].decode()
                    self._blobs.append(FoundBlob(candidate.container, name, tags))
            if is_over:
                start = self._start_at(self._way, self._position, self._after)
                return FoundPage(self._blobs, None if is_last else start)

    def _start_at(self, way: int, position: bytes, after: bytes) -> SearchPosition:
        trial = self._trial
        if way:
            return SearchPosition(way, position, after)
        return SearchPosition(way, position, after, trial.tried, trial.at, trial.limit, trial.spent)

    def _try(self) -> None:
        shortest = self._trial.go_on()
        if shortest is not None:
            self._is_tried = False
            self._way, self._position, self._after = shortest, b"", self._position

    def _go_on(self) -> bool:
        """Go on to the next posting. False at the end of the way."""
        way, before = self._ways[self._way], self._work.rows
        reached = way.next_from(self._position)
        if reached is None:
            return False
        position = reached.position
        self._position = _behind(reached)
        if reached.is_posting:
            posting = way.posting_at(position)
            container_name = self._containers.name(posting[:_ID_BYTES])
            if container_name is None:
                self._position = way.behind_container(position)
            else:
                found = _Candidate(self._way, position, self._after, container_name, posting)
                self._candidates.append(found)
        self._rows += self._work.rows - before
        return True

    def _matching(self) -> Iterator[tuple[_Candidate, Tags]]:
        """Those candidates whose records have what is wanted, with the tags that the search names.

        To compare two tags takes about as long as to read a row.
        """
        search, candidates, self._candidates = self._request.search, self._candidates, []
        spent = len(candidates) * (1 + len(search.ranges) // 2)
        self._work.rows += spent
        self._rows += spent
        stored = self._snap.get_many([keys.blob_of_posting(each.posting) for each in candidates])
        for each, value in zip(candidates, stored, strict=True):
            tags = NO_TAGS if value is None else decode_blob(value).tags
            if search.is_met(tags) and not self._was_returned(each, tags):
                yield each, search.named(tags)

    def _was_returned(self, candidate: _Candidate, tags: Tags) -> bool:
        """Whether the first way has been at this blob before another was taken."""
        if not candidate.way:
            return False
        return self._ways[0].position_of(candidate.posting, tags) < candidate.after
