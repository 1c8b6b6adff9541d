"""Reading and writing through handles: what each WRITE of a group changes, and what forbids it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kyanite.engine.api import Snapshot, Transaction
from kyanite.engine.memory.engine import MemoryEngine
from kyanite.model.content.content import ExtentPart, Zeros
from kyanite.model.files import share_snapshots, tree, usage
from kyanite.model.files.entry import Entry
from kyanite.model.files.opens import data
from kyanite.model.files.opens.data import FILE_BYTES_MAX, HandleWrite, PlannedRead
from kyanite.model.files.share import ShareKey
from kyanite.rules.byte_locks import Range
from kyanite.rules.refusals import Reason, Refused
from kyanite.rules.share_modes import Rights
from tests.model.content.world import Segments, outcome
from tests.model.files.builders import SHARE, FileShare, path_of
from tests.profiles import examples

R, W = Rights.READ, Rights.WRITE
GIB = 1 << 30


class OpenFile:
    """A file of 100 zeros and a handle that may write it."""

    def __init__(self, length: int = 100) -> None:
        self.share = FileShare(MemoryEngine())
        self.engine = self.share.engine
        self.id = self.share.make_file("f", length)
        self.segments = Segments()
        self.handle = self.share.open("f", R | W).id

    def write(self, *writes: tuple[int, bytes], handle: int | None = None) -> list[Reason | None]:
        """Short payloads are passed as bytes and longer ones in extents of at most ten bytes."""
        return self.write_all([self.request(*each, handle=handle) for each in writes])

    def request(self, offset: int, payload: bytes, *, handle: int | None = None) -> HandleWrite:
        in_extents = len(payload) > 10
        pieces = [payload[at : at + 10] for at in range(0, len(payload), 10)]
        stored = tuple(self.segments.put(*pieces)) if in_extents else payload
        return HandleWrite(handle or self.handle, offset, len(payload), stored)

    def write_all(self, writes: list[HandleWrite]) -> list[Reason | None]:
        def body(tx: Transaction) -> list[Reason | None]:
            return data.write_all(tx, tree.open_tree(tx, SHARE), self.id, writes).refusals

        return outcome(self.engine.run(body))

    def plan(self, offset: int, length: int, handle: int | None = None) -> PlannedRead:
        def body(snap: Snapshot) -> PlannedRead:
            return data.read(
                snap, tree.open_tree(snap, SHARE), self.id, handle or self.handle, offset, length
            )

        return outcome(self.engine.read(body))

    def read(self, offset: int, length: int) -> bytes:
        planned, read = self.plan(offset, length), b""
        parts = list(planned.parts)
        while planned.end < planned.until:
            planned = self.plan(planned.end, offset + length - planned.end)
            parts += planned.parts
        for part in parts:
            if isinstance(part, Zeros):
                read += bytes(part.length)
            elif isinstance(part, ExtentPart):
                start = part.extent.start + part.offset
                read += bytes(self.segments.data[part.extent.segment][start : start + part.length])
            else:
                read += part
        return read

    @property
    def entry(self) -> Entry:
        return outcome(self.engine.read(lambda snap: tree.load(snap, self.share.path("f"), None))).entry

    @property
    def used(self) -> int:
        return outcome(self.engine.read(lambda snap: usage.used_bytes(snap, self.share.id)))


def test_a_group_is_written_in_its_order() -> None:
    opened = OpenFile()
    assert opened.write((0, b"first of all, and long"), (5, b"!"), (0, b"FIRST")) == [None, None, None]
    assert opened.read(0, 23) == b"FIRST!of all, and long\0"
    assert (opened.entry.length, opened.used) == (100, 100)


def test_a_write_beyond_the_end_makes_the_file_longer_and_the_gap_is_zeros() -> None:
    opened = OpenFile(3)
    before = opened.entry
    assert opened.write((10, b"ab"), (12, b"c")) == [None, None]
    assert opened.read(0, 100) == bytes(10) + b"abc"
    entry = opened.entry
    assert (entry.length, opened.used) == (13, 13)
    assert entry.etag != before.etag
    assert entry.last_write_at == entry.changed_at == entry.modified_at > before.last_write_at


def test_writes_that_continue_each_other_are_stored_as_one() -> None:
    opened = OpenFile(0)
    opened.write((0, b"abc"), (3, b"def"), (6, b"ghi"))
    assert opened.plan(0, 9).parts == [b"abcdefghi"]


def test_a_client_that_keeps_the_times_keeps_them() -> None:
    opened = OpenFile()
    before = opened.entry
    assert opened.write_all([HandleWrite(opened.handle, 0, 1, b"x", keeps_last_write=True)]) == [None]
    assert opened.entry.last_write_at == before.last_write_at
    assert opened.entry.changed_at > before.changed_at
    before = opened.entry
    assert opened.write_all([HandleWrite(opened.handle, 0, 1, b"x", keeps_change=True)]) == [None]
    assert opened.entry.changed_at == before.changed_at
    assert opened.entry.last_write_at > before.last_write_at


def test_one_that_is_refused_does_not_hinder_the_others() -> None:
    opened = OpenFile()
    other = opened.share.open("f", R | W).id
    opened.share.lock(opened.id, other, (10, 10, True))
    closed = opened.share.open("f", R | W).id
    opened.share.close(opened.id, closed)
    writes = [
        opened.request(5, b"abc"),
        opened.request(15, b"refused"),
        opened.request(15, b"gone", handle=closed),
        opened.request(15, b"mine", handle=other),
        opened.request(20, b"def"),
    ]
    assert opened.write_all(writes) == [None, Reason.FILE_LOCK_CONFLICT, Reason.HANDLE_CLOSED, None, None]
    opened.share.unlock(opened.id, other, Range(10, 10))
    assert opened.read(5, 18) == b"abc" + bytes(7) + b"mine\0def"


def test_a_group_that_is_refused_whole_changes_nothing() -> None:
    opened = OpenFile()
    before = opened.entry
    assert opened.write((0, b"x"), handle=12345) == [Reason.HANDLE_CLOSED]
    assert opened.entry == before


def test_an_own_shared_lock_forbids_an_own_write_and_no_read() -> None:
    opened = OpenFile()
    opened.share.lock(opened.id, opened.handle, (10, 10, False))
    assert opened.write((19, b"x"), (20, b"y")) == [Reason.FILE_LOCK_CONFLICT, None]
    assert opened.read(10, 10) == bytes(10)


def test_an_exclusive_lock_of_another_handle_forbids_a_read_of_its_range_only() -> None:
    opened = OpenFile()
    other = opened.share.open("f", R).id
    opened.share.lock(opened.id, opened.handle, (10, 10, True))
    assert opened.plan(0, 10, other).until == 10
    assert opened.plan(15, 0, other).parts == []
    with pytest.raises(Refused) as refused:
        opened.plan(0, 11, other)
    assert refused.value.reason is Reason.FILE_LOCK_CONFLICT


def test_a_read_through_a_closed_handle_is_refused() -> None:
    opened = OpenFile()
    opened.share.open("f")
    opened.share.close(opened.id, opened.handle)
    with pytest.raises(Refused) as refused:
        opened.read(0, 1)
    assert refused.value.reason is Reason.HANDLE_CLOSED


@pytest.mark.parametrize(("offset", "length", "until"), [(90, 50, 100), (100, 1, 100), (500, 9, 100)])
def test_a_read_ends_with_the_file(offset: int, length: int, until: int) -> None:
    planned = OpenFile().plan(offset, length)
    assert planned.until == until
    assert bool(planned.parts) == (offset < until)


def test_the_quota_refuses_the_write_that_exceeds_it_and_no_other() -> None:
    opened = OpenFile()
    quota = (
        outcome(opened.engine.read(lambda snap: tree.open_tree(snap, SHARE))).share.settings.quota_gib * GIB
    )
    opened.share.make_file("big", quota - GIB)
    end = GIB
    refusals = opened.write((end, b"12345"), (end - 4, b"1234"), (0, b"x"))
    assert refusals == [Reason.SHARE_SIZE_LIMIT_REACHED, None, None]
    assert (opened.entry.length, opened.used) == (end, quota - GIB + end)


def test_no_file_is_longer_than_azure_allows() -> None:
    opened = OpenFile()
    assert opened.write((FILE_BYTES_MAX, b"x")) == [Reason.SHARE_SIZE_LIMIT_REACHED]
    assert opened.write((FILE_BYTES_MAX - 1, b"x")) == [None]
    assert opened.entry.length == FILE_BYTES_MAX


def test_a_snapshot_keeps_what_was_there_before() -> None:
    opened = OpenFile()
    opened.write((0, b"before"))
    snapshot, _ = outcome(share_snapshots.take(opened.engine, SHARE, {}))
    opened.write((0, b"behind"))
    path = path_of("f", ShareKey(SHARE.account, SHARE.name, snapshot))

    def body(snap: Snapshot) -> PlannedRead:
        return data.plan(snap, tree.load(snap, path, None).entry, 0, 6)

    assert outcome(opened.engine.read(body)).parts == [b"before"]
    assert opened.read(0, 6) == b"behind"


def test_content_in_very_many_parts_takes_several_plans() -> None:
    opened = OpenFile(0)
    count = 5000
    for first in range(0, count, 500):
        opened.write(*((2 * at, b"x") for at in range(first, first + 500)))
    assert opened.read(0, 2 * count) == b"x\0" * (count - 1) + b"x"


@settings(max_examples=examples(50))
@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 60), st.binary(min_size=1, max_size=25)), min_size=1, max_size=5),
        max_size=6,
    )
)
def test_groups_of_writes_against_a_bytearray(groups: list[list[tuple[int, bytes]]]) -> None:
    opened, expected = OpenFile(20), bytearray(20)
    for group in groups:
        assert opened.write(*group) == [None] * len(group)
        for offset, payload in group:
            expected.extend(bytes(max(0, offset - len(expected))))
            expected[offset : offset + len(payload)] = payload
        assert opened.read(0, 1000) == expected
        assert (opened.entry.length, opened.used) == (len(expected), len(expected))
