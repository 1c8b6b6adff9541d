"""The scrub finds damage, keeps to its pace, and goes on where it was."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from kyanite.engine.api import Damaged, Engine, EngineBusy
from kyanite.extents.api import BLOCK_BYTES, Extent, WrittenExtent
from kyanite.extents.crc64 import checksums_of
from kyanite.model import keys, scrub_state
from kyanite.model.content.references import decode_extent
from kyanite.model.maintenance import pace, scrub
from kyanite.model.maintenance.pace import Pace
from kyanite.model.maintenance.scrub import BEGIN_AFTER_SECONDS, PASS_EVERY_SECONDS, FoundDamage, Scrub
from kyanite.model.records import encode
from kyanite.model.verification.hurt import ROW_COST_BYTES
from kyanite.slices import next_slice
from tests.model.blobs.store import BlobStore
from tests.model.content.world import Segments, outcome
from tests.model.verification.damaged_view import DamagedView

MIB = 1024 * 1024
RATE = 8 * MIB


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.on_sleep: Callable[[], None] = lambda: None

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.on_sleep()
        self.now += seconds


class Inspected:
    """The extents of a test, as the scrub reads them."""

    def __init__(self, segments: Segments) -> None:
        self._segments = segments
        self.pins = 0
        self.read: list[tuple[Extent, int]] = []
        self.on_read: Callable[[], None] = lambda: None

    def pin(self) -> "Inspected":
        self.pins += 1
        return self

    def release(self) -> None:
        self.pins -= 1

    async def read_cold(self, extent: Extent, offset: int, length: int) -> bytes:
        assert self.pins == 1
        self.on_read()
        self.read.append((extent, length))
        if extent.segment not in self._segments.data:
            raise Damaged(f"The file of {extent} is missing.")
        return self._segments.read(extent, offset, length)

    @property
    def bytes(self) -> int:
        return sum(length for _, length in self.read)


class Scrubbed(BlobStore):
    """A store with a scrub of it."""

    def __init__(self) -> None:
        super().__init__()
        self.time = Time()
        self.inspected = Inspected(self.segments)
        self.found: list[FoundDamage] = []
        self.is_busy = False
        self.scrub = self.new_scrub()

    def new_scrub(self, engine: Engine | None = None) -> Scrub:
        """As a new process has it."""
        paced = Pace(RATE, clock=self.time, sleep=self.time.sleep, is_busy=lambda: self.is_busy)
        self.scrub = Scrub(engine or self.engine, self.inspected, paced, self.found.append)
        return self.scrub

    def run(self) -> bool:
        """Step, as soon as the process has been there for long enough."""
        outcome(self.scrub.step())
        self.wait(BEGIN_AFTER_SECONDS + 1)
        return outcome(self.scrub.step())

    def put_long(self, name: str, blocks: int, *, is_old: bool = False) -> WrittenExtent:
        """A blob of one extent with so many blocks. An older version has stored no checksums of them."""
        data = b"".join(bytes([number]) * BLOCK_BYTES for number in range(blocks - 1)) + b"the last block"
        (extent,) = self.extents(data)
        crc64, checksums = checksums_of(data)
        written = WrittenExtent(
            extent.segment, extent.start, extent.length, crc64, b"" if is_old else checksums
        )
        self.put(name, (written,))
        return written

    def flip(self, extent: Extent, offset: int) -> None:
        self.segments.data[extent.segment][extent.start + offset] ^= 1

    def row(self, extent: Extent) -> bytes | None:
        key = keys.extent(extent.segment, extent.start)
        return outcome(self.engine.read(lambda snap: snap.get(key)))

    def is_complete(self) -> bool:
        return outcome(self.engine.read(scrub_state.load)).is_complete


@pytest.fixture
def store() -> Scrubbed:
    return Scrubbed()


# Finding damage


def test_a_sound_store(store: Scrubbed) -> None:
    extent = store.put_long("a", 5)
    assert store.run()
    assert store.found == []
    assert store.inspected.bytes == extent.length
    assert store.inspected.pins == 0
    assert store.scrub.figures.passes == 1
    assert store.scrub.figures.bytes > extent.length
    assert store.is_complete()


def test_damage_is_found_and_named(store: Scrubbed) -> None:
    extent = store.put_long("a", 10)
    store.put_long("sound", 3)
    store.snapshot("a")
    store.flip(extent, 4 * BLOCK_BYTES + 17)
    assert store.run()
    ((text, hurt, count),) = store.found
    assert text == f"The CRC of {extent} is wrong."
    assert count == len(hurt) == 2
    damaged = f"{BLOCK_BYTES} bytes from {4 * BLOCK_BYTES} are damaged ({extent})."
    assert hurt[0] == f"blob acme/box/a: {damaged}"
    assert hurt[1].startswith("blob acme/box/a, snapshot ")
    assert (store.scrub.figures.damaged_extents, store.scrub.figures.damaged_rows) == (1, 0)


def test_an_extent_of_one_block(store: Scrubbed) -> None:
    (extent,) = store.extents(b"x" * 100)
    store.put("a", (extent,))
    store.flip(extent, 99)
    assert store.run()
    assert store.found[0].hurt == [f"blob acme/box/a: 100 bytes from 0 are damaged ({extent})."]


def test_a_missing_segment(store: Scrubbed) -> None:
    extent = store.put_long("a", 2)
    del store.segments.data[extent.segment]
    assert store.run()
    assert store.found[0].text == f"The file of {extent} is missing."
    assert store.found[0].hurt == [f"blob acme/box/a: {extent.length} bytes from 0 are damaged ({extent})."]


def test_an_old_extent_is_damaged_as_a_whole(store: Scrubbed) -> None:
    extent = store.put_long("a", 3, is_old=True)
    store.flip(extent, 0)
    assert store.run()
    assert store.found[0].hurt == [f"blob acme/box/a: {extent.length} bytes from 0 are damaged ({extent})."]
    row = store.row(extent)
    assert row is not None
    assert decode_extent(row).checksums == b"", "damage must not get a checksum of its own"


def test_a_row_that_cannot_be_read(store: Scrubbed) -> None:
    store.put("a", b"x" * 100)
    store.put_long("behind", 2)
    (row,) = store.rows(b"b")
    store.new_scrub(DamagedView(store.engine, [row]))
    assert store.run()
    ((text, hurt, _),) = store.found
    assert text == f"inline body {keys.id_of(row)}: it cannot be read."
    assert hurt == [f"blob acme/box/a: 100 bytes from 0 are damaged (inline body {keys.id_of(row)})."]
    assert store.inspected.read, "the rest is read"
    assert (store.scrub.figures.damaged_extents, store.scrub.figures.damaged_rows) == (0, 1)


def test_an_extent_row_that_cannot_be_decoded(store: Scrubbed) -> None:
    extent = store.put_long("a", 2)
    key = keys.extent(extent.segment, extent.start)
    outcome(store.engine.run(lambda tx: tx.put(key, b"\xff")))
    assert store.run()
    assert store.found[0].text == f"{extent}: it cannot be decoded."


def test_names_are_bounded(store: Scrubbed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scrub, "NAMES_MAX", 3)
    extent = store.put_long("a", 2)
    for _ in range(5):
        store.wait(1)
        store.snapshot("a")
    store.flip(extent, 0)
    assert store.run()
    assert (len(store.found[0].hurt), store.found[0].hurt_count) == (3, 6)


# Damage that is known


def test_damage_is_reported_once_in_each_pass(store: Scrubbed) -> None:
    extent = store.put_long("a", 2)
    store.flip(extent, 0)
    assert store.run()
    for _ in range(5):
        assert not outcome(store.scrub.step())
    assert len(store.found) == 1
    store.wait(PASS_EVERY_SECONDS + 1)
    assert outcome(store.scrub.step())
    assert len(store.found) == 2
    assert store.scrub.figures.damaged_extents == 1


def test_a_new_process_knows_the_damage(store: Scrubbed) -> None:
    extent = store.put_long("a", 2)
    store.flip(extent, 0)
    assert store.run()
    store.new_scrub()
    assert not outcome(store.scrub.step())
    assert store.scrub.figures.damaged_extents == 1
    assert len(store.found) == 1


def test_a_damaged_extent_that_is_freed_does_not_count(store: Scrubbed) -> None:
    extent = store.put_long("a", 2)
    store.flip(extent, 0)
    assert store.run()
    store.delete("a")
    store.maintain()
    store.time.now += scrub.REPORT_AFTER_SECONDS
    assert not outcome(store.scrub.step())
    assert store.scrub.figures.damaged_extents == 0


def test_a_damaged_row_that_is_replaced_does_not_count(store: Scrubbed) -> None:
    store.put("a", b"x" * 100)
    (row,) = store.rows(b"n")
    engine = DamagedView(store.engine, [row])
    store.new_scrub(engine)
    assert store.run()
    assert store.scrub.figures.damaged_rows == 1
    engine.damaged = []
    store.time.now += scrub.REPORT_AFTER_SECONDS
    assert not outcome(store.scrub.step())
    assert store.scrub.figures.damaged_rows == 0


def test_an_extent_that_is_freed_meanwhile_is_no_damage(store: Scrubbed) -> None:
    """Its row is read, then it is deleted and its bytes are gone."""
    store.put_long("a", 20)

    def free() -> None:
        if store.inspected.read and store.exists("a"):
            store.delete("a")
            store.maintain()
            assert not store.segments.data

    store.time.on_sleep = free
    assert store.run()
    assert not store.exists("a")
    assert store.found == []


# Time


def test_a_pass_begins_some_time_after_the_process(store: Scrubbed) -> None:
    store.put_long("a", 2)
    assert not outcome(store.scrub.step())
    store.wait(BEGIN_AFTER_SECONDS / 2)
    assert not outcome(store.scrub.step())
    assert store.inspected.read == []


def test_a_pass_a_day(store: Scrubbed) -> None:
    extent = store.put_long("a", 2)
    assert store.run()
    store.wait(PASS_EVERY_SECONDS - 2 * BEGIN_AFTER_SECONDS)
    assert not outcome(store.scrub.step())
    assert store.inspected.bytes == extent.length
    store.wait(2 * BEGIN_AFTER_SECONDS)
    assert outcome(store.scrub.step())
    assert store.inspected.bytes == 2 * extent.length


@pytest.mark.parametrize(("is_busy", "share"), [(False, 1.0), (True, pace.BUSY_SHARE)])
def test_the_pace_is_kept(store: Scrubbed, is_busy: bool, share: float) -> None:
    store.is_busy = is_busy
    for number in range(5):
        store.put_long(f"{number}", 100)
    began_at = store.time.now
    assert store.run()
    seconds = store.time.now - began_at
    rows = len(store.rows()) * ROW_COST_BYTES
    assert store.inspected.bytes == 5 * (99 * BLOCK_BYTES + 14)
    assert store.inspected.bytes / (RATE * share) <= seconds + pace.BURST_SECONDS
    assert seconds <= (store.inspected.bytes + rows + MIB) / (RATE * share)


def test_small_rows_count_too(store: Scrubbed) -> None:
    for number in range(2000):
        store.put(f"{number}", b"")
    began_at = store.time.now
    assert store.run()
    assert store.time.now - began_at >= 2000 * ROW_COST_BYTES / RATE - pace.BURST_SECONDS


async def test_a_pause_does_not_add_up() -> None:
    time = Time()
    paced = Pace(1000, clock=time, sleep=time.sleep)
    await paced.spend(0)
    time.now += 3600
    began_at = time.now
    await paced.spend(10_000)
    assert time.now - began_at == pytest.approx(10 - pace.BURST_SECONDS)


# Going on


class Stopped(Exception):
    pass


def stop_after(store: Scrubbed, seconds: float) -> None:
    end = store.time.now + seconds

    def stop() -> None:
        if store.time.now >= end:
            raise Stopped

    store.time.on_sleep = stop


def test_a_pass_goes_on_in_the_next_process(store: Scrubbed) -> None:
    extents = [store.put_long(f"{number}", 100) for number in range(10)]
    total = sum(each.length for each in extents)
    stop_after(store, 20)
    with pytest.raises(Stopped):
        store.run()
    assert not store.is_complete()
    read = store.inspected.bytes
    assert read > 10 * RATE
    store.time.on_sleep = lambda: None
    store.new_scrub()
    assert store.run()
    assert {extent.segment for extent, _ in store.inspected.read} == {each.segment for each in extents}
    again = store.inspected.bytes - total
    assert again < 11 * RATE, "only what was read since the position was stored"
    assert store.is_complete()
    assert store.scrub.figures.passes == 1


def test_damage_that_was_not_reported_is_found_again(store: Scrubbed) -> None:
    """The process ends after it has found damage, and before it has found the names."""
    first = store.put_long("a", 10)
    for number in range(10):
        store.put_long(f"{number}", 100)
    store.flip(first, 0)
    stop_after(store, 20)
    with pytest.raises(Stopped):
        store.run()
    assert store.found == []
    store.time.on_sleep = lambda: None
    store.new_scrub()
    assert store.run()
    assert len(store.found) == 1


def test_trouble_ends_a_step_and_the_next_one_goes_on(store: Scrubbed) -> None:
    store.put_long("a", 100)

    def fail() -> None:
        store.inspected.on_read = lambda: None
        raise EngineBusy("too many files")

    store.inspected.on_read = fail
    with pytest.raises(EngineBusy):
        store.run()
    assert store.inspected.pins == 0
    assert outcome(store.scrub.step())
    assert store.found == []


# What older versions have stored


def test_old_extents_get_checksums(store: Scrubbed) -> None:
    old = store.put_long("old", 5, is_old=True)
    (short,) = store.extents(b"short")
    store.put("short", (short,))
    new = store.put_long("new", 5)
    store.snapshot("old")
    assert store.run()
    rows = [decode_extent(store.row(each) or b"") for each in (old, new, short)]
    assert rows[0].checksums == rows[1].checksums == new.checksums
    assert rows[2].checksums == b""
    assert rows[0].references == 2


def test_an_extent_whose_references_change_meanwhile(store: Scrubbed) -> None:
    old = store.put_long("old", 5, is_old=True)

    def share() -> None:
        store.inspected.on_read = lambda: None
        store.snapshot("old")

    store.inspected.on_read = share
    assert store.run()
    row = decode_extent(store.row(old) or b"")
    assert row.checksums
    assert row.references == 2


def test_a_state_of_an_older_version_decodes() -> None:
    assert scrub_state.decode(encode([])) == scrub_state.ScrubState()


async def test_next_slice_is_awaited_even_with_credit() -> None:
    """So that a scrub that is far below its pace does not keep the loop."""
    time = Time()
    paced = Pace(1e12, clock=time, sleep=time.sleep)
    time.now += 1
    waiting = next_slice()
    await paced.spend(1)
    assert waiting.done()


def test_the_row_is_the_same_but_for_its_checksums(store: Scrubbed) -> None:
    old = store.put_long("old", 3, is_old=True)
    before = decode_extent(store.row(old) or b"")
    assert store.run()
    assert replace(decode_extent(store.row(old) or b""), checksums=b"") == before
