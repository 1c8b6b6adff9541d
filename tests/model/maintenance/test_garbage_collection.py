"""Garbage collection takes nothing that is read or referred to, leaves nothing that is not, and may stop anywhere."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from random import Random
from typing import TypeVar

import pytest

from kyanite.engine.api import Engine, EngineError, Scope, Snapshot, Transaction
from kyanite.extents.api import Extent, Stretch
from kyanite.model import keys
from kyanite.model.content import content, reading
from kyanite.model.content.content import Content
from kyanite.model.content.layer_view import layers
from kyanite.model.content.reading import KeptExtent
from kyanite.model.maintenance.freed_extents import FREED_PER_STEP
from tests.model.content.world import OWNER, Segments, World, outcome
from tests.model.files.builders import FileShare
from tests.model.maintenance.garbage_collection import GarbageCollector

T = TypeVar("T")

DEAD = b"dead owner--"


@pytest.fixture
def world() -> World:
    return World()


def stored(world: World, *bodies: bytes) -> tuple[Content, list[Extent]]:
    extents = world.segments.put(*bodies)
    return world.run(lambda tx: content.create(tx, extents)), extents


def share(world: World, what: Content) -> Content:
    return world.run(lambda tx: content.share(tx, what))


def write(world: World, what: Content, offset: int, payload: bytes | Sequence[Extent]) -> Content:
    return world.run(lambda tx: content.write(tx, what, offset, payload))


def drop(world: World, what: Content) -> None:
    world.run(lambda tx: content.drop(tx, what))


def test_a_segment_goes_when_its_last_extent_was_dropped(world: World) -> None:
    kept, _ = stored(world, b"kept")
    gone, extents = stored(world, b"gone")
    drop(world, gone)
    world.collect_all()
    assert list(world.segments.data) != []
    assert extents[0].segment not in world.segments.data
    assert world.bytes_of(kept, 0, 4) == b"kept"
    assert world.rows(b"g") == {}


def test_a_dead_stretch_of_a_living_segment_is_given_back(world: World) -> None:
    first, second = world.segments.put(b"first", b"second")
    gone = world.run(lambda tx: content.create(tx, [first]))
    kept = world.run(lambda tx: content.create(tx, [second]))
    drop(world, gone)
    world.collect_all()
    assert world.segments.read(first, 0, 5) == b"\xdd" * 5
    assert world.bytes_of(kept, 0, 6) == b"second"


def test_an_open_segment_is_removed_when_it_is_sealed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async def none(_: Iterable[bytes]) -> set[bytes]:
        return set()

    with monkeypatch.context() as patch:
        patch.setattr(world.segments, "sealed", none)
        *committed, uncommitted = world.segments.put(b"one", b"two", b"three", b"on its way")
        for each in committed:
            drop(world, world.run(lambda tx, each=each: content.create(tx, [each])))  # type: ignore[misc]
            world.collect_all()
        assert world.segments.read(uncommitted, 0, 10) == b"on its way"
        assert world.segments.read(committed[0], 0, 11) == b"\xdd" * 11
        assert len(world.rows()) == 1
    world.collect_all()
    assert world.segments.data == {}
    assert world.rows() == {}


def test_whether_a_segment_is_sealed_is_read_before_its_rows(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last extent of a segment may be committed and the segment sealed between the two."""
    dead, late = world.segments.put(b"dead", b"late")
    drop(world, world.run(lambda tx: content.create(tx, [dead])))
    committed: list[Content] = []

    async def commits_meanwhile(segments: Iterable[bytes]) -> set[bytes]:
        committed.append(world.run(lambda tx: content.create(tx, [late])))
        return set(segments)

    monkeypatch.setattr(world.segments, "sealed", commits_meanwhile)
    world.collect_all()
    assert world.bytes_of(committed[0], 0, 4) == b"late"


def test_readers_that_began_before_keep_what_they_read(world: World) -> None:
    what, extents = stored(world, b"content")
    pin = world.segments.pin()
    drop(world, what)
    assert world.collect()
    for _ in range(5):
        assert not world.collect()
    assert world.segments.read(extents[0], 0, 7) == b"content"
    later = world.segments.pin()
    world.segments.pins.remove(pin)
    world.collect_all()
    assert extents[0].segment not in world.segments.data
    world.segments.pins.remove(later)


def test_reading_what_to_free_is_work_though_readers_have_to_finish_first(world: World) -> None:
    """Otherwise maintenance would rest after every read, and give space back slower than requests free it."""
    for _ in range(3 * FREED_PER_STEP):
        drop(world, stored(world, b"content")[0])
    rests = 0
    for _ in range(3):
        pin = world.segments.pin()
        rests += not world.collect()
        world.segments.pins.remove(pin)
        rests += not world.collect()
    assert rests == 0
    assert world.rows(b"g") == {}


def test_a_dead_process_is_cleaned_up_after(world: World) -> None:
    segments = world.segments
    uncommitted = segments.put(b"never committed")
    committed = segments.put(b"committed", b"not", b"this too")
    what = world.run(lambda tx: content.create(tx, [committed[0], committed[2]]))
    layered = world.run(lambda tx: content.create(tx, segments.put(*[b"."] * 10)))
    world.run(lambda tx: reading.pin_content(tx, layered, DEAD, 1))
    world.run(lambda tx: reading.pin_content(tx, layered, OWNER, 1))
    segments.dead[DEAD] = [uncommitted[0].segment, committed[0].segment]
    pin = segments.pin()
    assert world.collect()
    for _ in range(5):
        assert not world.collect()
    assert uncommitted[0].segment in segments.data
    segments.pins.remove(pin)
    world.collect_all()
    assert uncommitted[0].segment not in segments.data
    assert world.bytes_of(what, 0, 17) == b"committedthis too"
    assert segments.read(committed[1], 0, 3) == b"\xdd" * 3
    assert segments.dead == {}
    assert [key[1:13] for key in world.rows(b"h")] == [OWNER]
    world.check_counts([what, layered])


def test_what_a_dead_process_had_open_is_closed(world: World) -> None:
    files = FileShare(world.engine)
    files.make_directory("d")
    shared, alone = files.make_file("d/shared"), files.make_file("d/alone")
    for path, owner in (("d/shared", DEAD), ("d/shared", OWNER), ("d/shared", DEAD), ("d/alone", DEAD)):
        files.open(path, owner=owner)
    files.mark("d/shared")
    files.mark("d/alone")
    world.collect_all()
    assert len(world.rows(b"Q")) == 4
    world.segments.dead[DEAD] = []
    world.collect_all()
    assert [key[1:13] for key in world.rows(b"Q")] == [OWNER]
    left = files.open_file(shared)
    assert left is not None
    assert (left.handle_count, left.is_delete_pending) == (1, True)
    assert files.open_file(alone) is None
    assert len(world.rows(keys.HANDLES)) == 2
    assert len(world.rows(b"O")) == 2
    assert [key[-6:] for key in world.rows(keys.pending_deletes_of_share(files.id))] == [b"SHARED"]


class Interrupted(Exception):
    pass


class Unsteady:
    """Lets a collector take a number of steps outside itself, and then no more."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def step(self) -> None:
        self.steps -= 1
        if self.steps < 0:
            raise Interrupted


class UnsteadyEngine:
    """Interrupted either before a transaction or after it."""

    def __init__(self, engine: Engine, unsteady: Unsteady) -> None:
        self._engine = engine
        self._unsteady = unsteady

    async def _steps(self, work: Callable[[], Awaitable[T]]) -> T:
        self._unsteady.step()
        result = await work()
        self._unsteady.step()
        return result

    def read(self, body: Callable[[Snapshot], T]) -> Awaitable[T]:
        return self._steps(lambda: self._engine.read(body))

    def run(self, body: Callable[[Transaction], T], *scopes: Scope, durable: bool = True) -> Awaitable[T]:
        return self._steps(lambda: self._engine.run(body, *scopes, durable=durable))

    def subscribe(self, topic: bytes) -> object:
        raise EngineError("not here")

    async def close(self) -> None:
        await self._engine.close()


class UnsteadySegments(Segments):
    def __init__(self, segments: Segments, unsteady: Unsteady) -> None:
        self.__dict__ = segments.__dict__
        self.__dict__["unsteady"] = unsteady

    async def punch(self, segment: bytes, stretches: Sequence[Stretch]) -> None:
        await super().punch(segment, stretches)
        self.__dict__["unsteady"].step()

    async def remove(self, segment: bytes) -> None:
        await super().remove(segment)
        self.__dict__["unsteady"].step()


def busy_world(seed: int) -> tuple[World, list[tuple[Content, bytes]]]:
    """A world with everything in it that a collector may find, and the contents that are to survive."""
    chance, world = Random(seed), World()
    bodies = [chance.randbytes(10) for _ in range(200)]
    first, _ = stored(world, *bodies)
    survivors = []
    for number in range(12):
        snapshot = share(world, first)
        offset, data = chance.randrange(1990), chance.randbytes(10)
        first = write(world, first, offset, data if number % 2 else world.segments.put(data))
        if number % 4:
            drop(world, snapshot)
        else:
            survivors.append(snapshot)
    cleared, _ = stored(world, *bodies)
    drop(world, world.run(lambda tx: content.clear(tx, cleared, 5, 1900)))
    world.segments.dead[DEAD] = [world.segments.put(b"orphan")[0].segment]
    return world, [(each, world.bytes_of(each, 0, 2000)) for each in [*survivors, first]]


def check(world: World, survivors: list[tuple[Content, bytes]]) -> None:
    for what, data in survivors:
        assert world.bytes_of(what, 0, 2000) == data
    world.check_counts(what for what, _ in survivors)


def check_all_gone(world: World, survivors: list[tuple[Content, bytes]]) -> None:
    for what, _ in survivors:
        drop(world, what)
    world.collect_all()
    assert world.rows() == {}
    assert world.segments.data == {}


def test_it_may_stop_anywhere() -> None:
    world, survivors = busy_world(1)
    for steps in range(1, 600):
        unsteady = Unsteady(steps % 47)
        collector = GarbageCollector(
            UnsteadyEngine(world.engine, unsteady),  # type: ignore[arg-type]
            UnsteadySegments(world.segments, unsteady),
            world.members,
        )
        try:
            while outcome(collector.step()):
                pass
            break
        except Interrupted:
            check(world, survivors)
    else:
        pytest.fail("It never came to an end.")
    check(world, survivors)
    check_all_gone(world, survivors)


@pytest.mark.parametrize("seed", range(3))
def test_two_collectors_may_work_side_by_side(seed: int) -> None:
    world, survivors = busy_world(seed)
    chance = Random(seed)
    collectors = [GarbageCollector(world.engine, world.segments, world.members) for _ in range(2)]
    idle = 0
    while idle < 20:
        idle = 0 if outcome(chance.choice(collectors).step()) else idle + 1
        check(world, survivors)
    check_all_gone(world, survivors)


def test_long_chains_are_flattened(world: World) -> None:
    base, _ = stored(world, *[bytes((number,)) * 10 for number in range(100)])
    snapshots = []
    for number in range(30):
        snapshots.append(share(world, base))
        base = write(world, base, number * 10, b"x")
        for _ in range(30):
            world.collect()
    depths = world.read(lambda state: [len(list(layers(state, each.layer))) for each in [*snapshots, base]])
    assert max(depths) <= 10
    world.check_counts([*snapshots, base])
    for number, snapshot in enumerate(snapshots):
        assert world.bytes_of(snapshot, number * 10, 1) == bytes((number,))


def slow_read(world: World, number: int, extents: Sequence[Extent], owner: bytes = OWNER) -> None:
    kept = [KeptExtent(each.segment, each.start, each.length) for each in extents]
    world.run(lambda tx: reading.keep_extents(tx, owner, number, kept))


def test_a_slow_read_keeps_what_it_reads_and_nothing_else(world: World) -> None:
    """Extents before, between and after it in the order of their deletion, in the same segment and in others."""
    extents = world.segments.put(b"before", b"read", b"beside")
    shared = world.run(lambda tx: content.create(tx, extents))
    alone, own_segment = stored(world, b"read too")
    others = [stored(world, b"other %d" % number) for number in range(2 * FREED_PER_STEP)]
    slow_read(world, 1, [extents[1], own_segment[0]])
    for what, _ in others[:FREED_PER_STEP]:
        drop(world, what)
    drop(world, shared)
    drop(world, alone)
    for what, _ in others[FREED_PER_STEP:]:
        drop(world, what)
    world.collect_all()
    assert world.segments.read(extents[1], 0, 4) == b"read"
    assert world.segments.read(own_segment[0], 0, 8) == b"read too"
    assert world.segments.read(extents[0], 0, 6) == b"\xdd" * 6
    assert world.segments.read(extents[2], 0, 6) == b"\xdd" * 6
    assert set(world.segments.data) == {extents[1].segment, own_segment[0].segment}
    world.run(lambda tx: reading.forget_extents(tx, OWNER, 1))
    world.collect_all()
    assert world.segments.data == {}
    assert world.rows() == {}


def test_very_many_extents_of_slow_reads_do_not_hide_the_others(world: World) -> None:
    kept = [stored(world, b"kept")[0] for _ in range(3)]
    extents = world.segments.put(*[b"."] * (3 * FREED_PER_STEP))
    long = world.run(lambda tx: content.create(tx, extents))
    for number in range(3 * FREED_PER_STEP):
        slow_read(world, number, [extents[number]])
    drop(world, long)
    late, late_extents = stored(world, b"late")
    drop(world, late)
    world.collect_all()
    assert late_extents[0].segment not in world.segments.data
    assert all(world.segments.read(extent, 0, 1) == b"." for extent in extents)
    world.check_counts(kept)


def test_the_slow_reads_of_dead_processes_end(world: World) -> None:
    """What another process reads slowly of the bytes of a dead one is kept, and given back later."""
    extents = world.segments.put(b"read here", b"read by the dead one", b"never committed")
    what = world.run(lambda tx: content.create(tx, extents[:2]))
    slow_read(world, 1, [extents[0]])
    slow_read(world, 1, [extents[1]], DEAD)
    drop(world, what)
    world.segments.dead[DEAD] = [extents[0].segment]
    world.collect_all()
    assert world.segments.read(extents[0], 0, 9) == b"read here"
    assert world.segments.read(extents[2], 0, 5) == b"\xdd" * 5
    assert [key[1:13] for key in world.rows(b"1")] == [OWNER]
    world.run(lambda tx: reading.forget_extents(tx, OWNER, 1))
    world.collect_all()
    assert world.segments.data == {}
    assert world.rows() == {}
