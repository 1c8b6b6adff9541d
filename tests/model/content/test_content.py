"""Content: what every step costs and leaves in the engine. That the bytes are right is for the machine to show."""

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

import msgspec
import pytest

from kyanite.engine.api import EngineBusy, Snapshot, Steps, Transaction
from kyanite.extents.api import Extent, WrittenExtent
from kyanite.model.content import content, ranges, reading
from kyanite.model.content.content import INLINE_MAX, NO_CONTENT, Content, ExtentPart, ReadPlan, Zeros
from kyanite.model.content.intervals import Interval
from kyanite.model.content.references import ExtentRow, decode_extent
from tests.model.content.world import OWNER, SEGMENT, World, counting, extent
from tests.model.counted import Counted, unlimited

T = TypeVar("T")

encode = msgspec.msgpack.Encoder().encode

KIB = 1024
GIB = 1024**3
SPARSE_STEP = 50 * 1024 * KIB


@pytest.fixture
def world() -> World:
    return World()


def plan(world: World, stored: Content, offset: int, length: int) -> ReadPlan:
    return world.read(lambda snapshot: content.read_plan(snapshot, stored, offset, length))


def test_a_small_body_is_one_row(world: World) -> None:
    stored, rows = counting(world, lambda tx: content.create(tx, b"hello"))
    assert rows == 1
    assert list(world.rows()) == [b"b" + stored.body.to_bytes(8, "big")]
    assert plan(world, stored, 0, 5) == ReadPlan([b"hello"], 5)
    assert plan(world, stored, 1, 3) == ReadPlan([b"ell"], 4)
    assert plan(world, stored, 3, 4) == ReadPlan([b"lo", Zeros(2)], 7)
    assert plan(world, stored, 9, 1 << 40) == ReadPlan([Zeros(1 << 40)], 9 + (1 << 40))
    _, rows = counting(world, lambda tx: content.drop(tx, stored))
    assert rows == 1
    assert world.rows() == {}


def test_no_bytes_are_no_rows(world: World) -> None:
    assert world.run(lambda tx: content.create(tx, b"")) == NO_CONTENT
    assert world.rows() == {}
    assert plan(world, NO_CONTENT, 0, 0) == ReadPlan([], 0)
    assert plan(world, NO_CONTENT, 5, 10) == ReadPlan([Zeros(10)], 15)


def test_an_extent_is_one_row_and_then_a_freed_one(world: World) -> None:
    stored, rows = counting(world, lambda tx: content.create(tx, [extent(4096, 100)]))
    assert rows == 1
    (row,) = world.rows()
    assert row == b"x" + SEGMENT + (4096).to_bytes(8, "big")
    assert plan(world, stored, 0, 100) == ReadPlan([ExtentPart(extent(4096, 100), 0, 100)], 100)
    assert plan(world, stored, 90, 30) == ReadPlan([ExtentPart(extent(4096, 100), 90, 10), Zeros(20)], 120)
    world.run(lambda tx: content.drop(tx, stored))
    (freed_extent,) = world.rows()
    assert freed_extent[:1] == b"g"
    assert freed_extent[9:] == row[1:]


def test_checksums_are_stored_once_and_not_in_the_intervals(world: World) -> None:
    checksums = bytes(range(16))
    plain = [extent(at << 20, 300 * KIB) for at in range(6)]
    written = [WrittenExtent(each.segment, each.start, each.length, 0, checksums) for each in plain]
    world.run(lambda tx: content.create(tx, written))
    others = World()
    others.run(lambda tx: content.create(tx, plain))
    rows, other_rows = world.rows(), others.rows()
    assert [decode_extent(row).checksums for key, row in rows.items() if key[:1] == b"x"] == [checksums] * 6
    values = [row for key, row in rows.items() if key[:1] != b"x"]
    assert values == [row for key, row in other_rows.items() if key[:1] != b"x"]
    short = world.run(lambda tx: content.create(tx, [WrittenExtent(SEGMENT, 99, 100, 0, checksums)]))
    assert encode(short) == encode(Content(intervals=(Interval(0, 100, 0, Extent(SEGMENT, 99, 100, 0)),)))


def test_checksums_stay_when_references_come_and_go(world: World) -> None:
    checksums = bytes(range(16))
    stored = world.run(lambda tx: content.create(tx, [WrittenExtent(SEGMENT, 0, 300 * KIB, 0, checksums)]))
    world.run(lambda tx: content.share(tx, stored))
    ((_, row),) = world.rows().items()
    assert decode_extent(row) == ExtentRow(300 * KIB, 0, 2, checksums)
    world.run(lambda tx: content.drop(tx, stored))
    ((_, row),) = world.rows().items()
    assert decode_extent(row) == ExtentRow(300 * KIB, 0, 1, checksums)


def test_a_row_of_an_older_version_has_no_checksums() -> None:
    assert decode_extent(encode((1000, 7, 2))) == ExtentRow(1000, 7, 2, b"")


def test_a_transaction_can_make_several_contents(world: World) -> None:
    def body(tx: Transaction) -> list[Content]:
        return [content.create(tx, bytes((number,))) for number in range(20)]

    made = world.run(body)
    assert [world.bytes_of(each, 0, 1) for each in made] == [bytes((number,)) for number in range(20)]


def _writing(
    stored: Content, offset: int, payload: bytes | Sequence[Extent]
) -> Callable[[Transaction], Content]:
    return lambda tx: content.write(tx, stored, offset, payload)


def dense(world: World, count: int) -> Content:
    """As many pages as said, one after the other."""
    with unlimited():
        return world.run(
            lambda tx: content.create(tx, [extent(number * 4096, 512) for number in range(count)])
        )


def costs_of(
    world: World, stored: Content, writes: Sequence[tuple[int, bytes | Sequence[Extent]]]
) -> list[int]:
    costs = []
    for offset, payload in writes:
        stored, rows = counting(world, _writing(stored, offset, payload))
        costs.append(rows)
    world.check_counts([stored])
    return costs


@pytest.mark.parametrize("is_inline", [True, False])
def test_an_append_costs_the_same_however_much_is_there(is_inline: bool) -> None:
    """Up to the fifty thousand that an append blob takes."""
    costs = {}
    for count in (100, 49_800):
        payloads = [bytes(512) if is_inline else [extent((count + n) * 4096, 512)] for n in range(200)]
        writes = [((count + n) * 512, payload) for n, payload in enumerate(payloads)]
        world = World()
        costs[count] = costs_of(world, dense(world, count), writes)
        assert len(world.rows(b"r")) == -(-(count + 200) // 64)
    assert max(costs[49_800]) <= max(costs[100]) <= 10


def test_a_page_write_costs_the_same_however_fragmented_the_blob_is() -> None:
    costs = {}
    for count in (1000, 30_000):
        chance = Random(count)
        pages = [chance.randrange(count) for _ in range(300)]
        writes = [(page * 512 + 256, [extent((count + n) * 4096, 512)]) for n, page in enumerate(pages)]
        world = World()
        costs[count] = costs_of(world, dense(world, count), writes)
    assert max(costs[30_000]) <= max(costs[1000]) <= 24


@pytest.mark.parametrize("step", [1, -1, 7])
def test_interval_rows_fill_up_in_whatever_order_pages_are_written(world: World, step: int) -> None:
    stored = NO_CONTENT
    for number in range(1001):
        stored = world.run(_writing(stored, number * step % 1001 * 512, b"page"))
    assert len(world.rows(b"r")) <= 1001 / 64 * 2.1
    world.check_counts([stored])


def sparse(world: World) -> Content:
    """A page blob of 100 GiB with data here and there."""
    stored = NO_CONTENT
    for number in range(2000):
        stored = world.run(_writing(stored, number * SPARSE_STEP, [extent(number * 4096, 512)]))
    return stored


def test_a_snapshot_and_the_write_after_it_cost_a_few_rows(world: World) -> None:
    stored = sparse(world)
    snapshot, rows = counting(world, lambda tx: content.share(tx, stored))
    assert rows == 2
    written, rows = counting(world, lambda tx: content.write(tx, stored, 100 * GIB - 512, [extent(1, 512)]))
    assert rows <= 12
    assert plan(world, snapshot, 100 * GIB - 512, 512) == ReadPlan([Zeros(512)], 100 * GIB)
    assert plan(world, written, 100 * GIB - 512, 512) == ReadPlan(
        [ExtentPart(extent(1, 512), 0, 512)], 100 * GIB
    )
    world.check_counts([snapshot, written])


def test_a_drop_and_a_clear_of_everything_cost_a_few_rows(world: World) -> None:
    stored = sparse(world)
    cleared, rows = counting(world, lambda tx: content.clear(tx, stored, 0, 100 * GIB))
    assert rows < 60
    assert plan(world, cleared, 0, 100 * GIB) == ReadPlan([Zeros(100 * GIB)], 100 * GIB)
    _, rows = counting(world, lambda tx: content.drop(tx, cleared))
    assert rows <= 3
    world.collect_all()
    assert world.rows() == {}


def test_every_step_of_the_background_is_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = sparse(world)
    snapshot = world.run(lambda tx: content.share(tx, stored))
    stored = world.run(lambda tx: content.clear(tx, stored, 10 * GIB, 80 * GIB))
    world.run(lambda tx: content.drop(tx, snapshot))
    costs = []
    run = world.engine.run

    def counted_run(body: Callable[[Transaction], T], *scopes: object, durable: bool = True) -> object:
        def with_count(tx: Transaction) -> T:
            counted = Counted(tx)
            try:
                return body(counted)
            finally:
                costs.append(counted.rows)

        return run(with_count)

    monkeypatch.setattr(world.engine, "run", counted_run)
    world.collect_all()
    assert len(costs) > 2
    assert max(costs) < 2000
    assert len(world.rows(b"x")) == sum(
        not 10 * GIB <= number * SPARSE_STEP < 90 * GIB for number in range(2000)
    )
    assert len(world.rows(b"l")) == 1


def test_a_cut_interval_keeps_its_extent_until_the_last_part_goes(world: World) -> None:
    stored = world.run(lambda tx: content.create(tx, [extent(0, 1000)]))
    stored = world.run(lambda tx: content.clear(tx, stored, 400, 200))
    world.check_counts([stored])
    left, right = ExtentPart(extent(0, 1000), 0, 400), ExtentPart(extent(0, 1000), 600, 400)
    assert plan(world, stored, 0, 1000) == ReadPlan([left, Zeros(200), right], 1000)
    stored = world.run(lambda tx: content.truncate(tx, stored, 400))
    assert list(world.rows(b"g")) == []
    stored = world.run(lambda tx: content.clear(tx, stored, 0, 400))
    assert stored == NO_CONTENT
    assert len(world.rows(b"g")) == 1


def test_what_was_truncated_does_not_come_back(world: World) -> None:
    stored = world.run(lambda tx: content.create(tx, [extent(n * 4096, 100) for n in range(10)]))
    kept = world.run(lambda tx: content.share(tx, stored))
    for each in (stored, kept):
        short = world.run(_truncating(each, 350))
        assert plan(world, short, 300, 1000).parts == [ExtentPart(extent(3 * 4096, 100), 0, 50), Zeros(950)]


def _truncating(stored: Content, length: int) -> Callable[[Transaction], Content]:
    return lambda tx: content.truncate(tx, stored, length)


def test_a_long_plan_stops_short_and_continues_as_a_pinned_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(content, "_PLAN_PARTS", 10)
    bodies = [bytes((number,)) * 10 for number in range(100)]
    stored = world.run(lambda tx: content.create(tx, world.segments.put(*bodies)))
    whole = b"".join(bodies)
    first = plan(world, stored, 5, 995)
    assert len(first.parts) == 10
    assert first.end == 100

    def pin_and_plan(tx: Transaction) -> ReadPlan:
        reading.pin_content(tx, stored, OWNER, 7)
        return content.read_plan(tx, stored, 5, 995)

    read = b""
    parts = reading.planned_parts(world.engine, stored, world.run(pin_and_plan), 1000, OWNER, 7)
    written = stored
    for number in range(1000):
        try:
            piece = _next_of(parts)
        except StopAsyncIteration:
            break
        assert isinstance(piece, ExtentPart)
        read += world.segments.read(*piece)
        written = world.run(_writing(written, number * 9, b"other"))
    assert read == whole[5:]
    world.run(lambda tx: reading.release_content(tx, OWNER, 7))
    world.run(lambda tx: reading.release_content(tx, OWNER, 7))
    world.check_counts([written])
    world.collect_all()
    assert len(world.rows(b"l")) == 1


def test_a_pinned_read_whose_pin_was_lost_ends(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pinning does not wait for the disk, and a failover may lose it. Then the layer is written in place."""
    monkeypatch.setattr(content, "_PLAN_PARTS", 10)
    stored = world.run(lambda tx: content.create(tx, world.segments.put(*([b"old......."] * 100))))

    def pin_and_plan(tx: Transaction) -> ReadPlan:
        reading.pin_content(tx, stored, OWNER, 7)
        return content.read_plan(tx, stored, 0, 1000)

    parts = reading.planned_parts(world.engine, stored, world.run(pin_and_plan), 1000, OWNER, 7)
    world.run(lambda tx: reading.release_content(tx, OWNER, 7))
    world.run(_writing(stored, 500, b"new......."))
    for _ in range(10):
        _next_of(parts)
    with pytest.raises(EngineBusy):
        _next_of(parts)


def _next_of(pieces: object) -> content.PlanPart:
    step = pieces.__anext__()  # type: ignore[attr-defined]
    try:
        step.send(None)
    except StopIteration as stop:
        piece: content.PlanPart = stop.value
        return piece
    raise AssertionError("This had to wait.")


def test_a_plan_does_not_gather_too_many_inline_bytes(world: World) -> None:
    stored = NO_CONTENT
    for number in range(300):
        stored = world.run(_writing(stored, number * INLINE_MAX, bytes(INLINE_MAX)))
    short = plan(world, stored, 0, 300 * INLINE_MAX)
    assert short.end == 64 * INLINE_MAX
    assert sum(len(piece) for piece in short.parts if isinstance(piece, bytes)) == short.end


def test_holes_do_not_make_a_plan_or_a_page_of_ranges_unbounded(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Holes are stored where they hide a lower layer, and there may be more of them than of data."""
    monkeypatch.setattr(content, "_PLAN_INTERVALS", 100)
    monkeypatch.setattr(ranges, "_INTERVALS_MAX", 100)
    stored = world.run(lambda tx: content.create(tx, world.segments.put(*[b"x" * 10] * 1000)))
    older = world.run(lambda tx: content.share(tx, stored))
    for number in range(999):
        stored = world.run(_clearing(stored, number * 10, 10))
    newer, at, parts, plans = stored, 0, [], 0
    while at < 10_000:
        found = plan(world, newer, at, 10_000 - at)
        assert found.end > at
        parts += found.parts
        at, plans = found.end, plans + 1
    assert plans >= 9
    assert sum(part.length for part in parts if isinstance(part, Zeros)) == 9990
    assert [world.segments.read(*part) for part in parts if isinstance(part, ExtentPart)] == [b"x" * 10]
    data = pages(world, lambda snap, start: ranges.data_ranges(snap, newer, start, 10_000, limit=10))
    assert len(data) >= 9
    assert [each for page in data for each in page.ranges] == [(9990, 10_000, False)]
    changes = pages(
        world, lambda snap, start: ranges.changed_ranges(snap, [older, newer], start, 10_000, limit=10)
    )
    assert len(changes) >= 9
    assert {each.is_clear for page in changes for each in page.ranges} == {True}


def pages(world: World, page: Callable[[Snapshot, int], Steps[ranges.RangePage]]) -> list[ranges.RangePage]:
    found = [world.read_in_steps(lambda snap: page(snap, 0))]
    while (start := found[-1].next_start) is not None:
        found.append(world.read_in_steps(_from(page, start)))
    return found


def _from(
    page: Callable[[Snapshot, int], Steps[ranges.RangePage]], start: int
) -> Callable[[Snapshot], Steps[ranges.RangePage]]:
    return lambda snap: page(snap, start)


def _clearing(stored: Content, offset: int, length: int) -> Callable[[Transaction], Content]:
    return lambda tx: content.clear(tx, stored, offset, length)
