"""Ranges, against arrays that say for every byte who wrote it."""

from collections.abc import Callable
from itertools import groupby
from random import Random

import pytest

from kyanite.engine.api import Snapshot, Steps
from kyanite.model.content import content, ranges
from kyanite.model.content.content import NO_CONTENT, Content
from kyanite.model.content.ranges import Range, RangePage
from tests.model.content.world import World

SPACE = 300

pytestmark = pytest.mark.usefixtures("small_limits")


@pytest.fixture
def world() -> World:
    return World()


class Written:
    """A content, and for every byte the number of the step that wrote it, or 0."""

    def __init__(self, world: World, chance: Random) -> None:
        self.world = world
        self.chance = chance
        self.stored = NO_CONTENT
        self.steps = [0] * SPACE
        self._step = 0

    def change(self) -> None:
        self._step += 1
        start, length = self.chance.randrange(SPACE - 40), self.chance.randint(1, 40)
        is_clear = self.chance.random() < 0.3
        payload = bytes(length) if self.chance.random() < 0.5 else self.world.segments.put(bytes(length))
        if is_clear:
            self.stored = self.world.run(lambda tx: content.clear(tx, self.stored, start, length))
        else:
            self.stored = self.world.run(lambda tx: content.write(tx, self.stored, start, payload))
        self.steps[start : start + length] = [0 if is_clear else self._step] * length


def expected(kinds: list[str]) -> list[Range]:
    """Ranges of equal letters: d for data, c for cleared, anything else for neither."""
    found, at = [], 0
    for kind, group in groupby(kinds):
        length = len(list(group))
        if kind in "dc":
            found.append(Range(at, at + length, kind == "c"))
        at += length
    return found


def pages(world: World, read: Callable[[Snapshot, int], Steps[RangePage]]) -> list[Range]:
    """All pages one after the other, put together again where a page ended within a range."""
    found: list[Range] = []
    start: int | None = 0
    while start is not None:
        at = start
        page = world.read_in_steps(lambda snapshot: read(snapshot, at))  # noqa: B023
        found += page.ranges
        assert page.next_start is None or page.next_start > start
        start = page.next_start
    return found


@pytest.mark.parametrize("seed", range(10))
def test_where_there_is_data(world: World, seed: int) -> None:
    written = Written(world, Random(seed))
    for _ in range(40):
        written.change()
        world.collect()
    found = pages(
        world, lambda snapshot, at: ranges.data_ranges(snapshot, written.stored, at, SPACE, limit=3)
    )
    assert found == expected(["d" if step else "-" for step in written.steps])


def kind_of(before: int, after: int) -> str:
    if before == after:
        return "-"
    return "d" if after else "c"


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("steps", [0, 3])
def test_what_has_changed(world: World, seed: int, steps: int) -> None:
    written = Written(world, Random(seed))
    for _ in range(30):
        written.change()
    snapshots: list[tuple[Content, list[int]]] = []
    for _ in range(4):
        snapshots.append((world.run(lambda tx: content.share(tx, written.stored)), list(written.steps)))
        for _ in range(5):
            written.change()
            for _ in range(steps):
                world.collect()
    snapshots.append((written.stored, written.steps))
    for old, old_steps in snapshots[:3]:
        for new, new_steps in snapshots[1:]:

            def read(snapshot: Snapshot, at: int, old: Content = old, new: Content = new) -> Steps[RangePage]:
                return ranges.changed_ranges(snapshot, (old, new), at, SPACE, limit=3)

            kinds = [kind_of(*steps) for steps in zip(old_steps, new_steps, strict=True)]
            assert pages(world, read) == expected(kinds)


BLOCK = 16


def in_blocks(kinds: list[str]) -> list[str]:
    """Of each block one kind: data before cleared before data that stayed before nothing."""
    found = []
    for at in range(0, SPACE, BLOCK):
        letters = set(kinds[at : at + BLOCK])
        is_changed, has_data = letters & {"d", "c"}, letters & {"d", "s"}
        kind = "-" if not is_changed else "d" if has_data else "c"
        found += [kind] * len(kinds[at : at + BLOCK])
    return found


@pytest.mark.parametrize("seed", range(20))
def test_what_has_changed_by_blocks_and_through_versions(world: World, seed: int) -> None:
    """A byte has changed if it differs between any version and the next."""
    written = Written(world, Random(seed))
    versions: list[tuple[Content, list[int]]] = []
    for _ in range(4):
        for _ in range(6):
            written.change()
        versions.append((world.run(lambda tx: content.share(tx, written.stored)), list(written.steps)))
    contents = [stored for stored, _ in versions]
    histories = list(zip(*[steps for _, steps in versions], strict=True))
    kinds = []
    for history in histories:
        is_changed = len(set(history)) > 1
        kinds.append(("d" if history[-1] else "c") if is_changed else ("s" if history[-1] else "-"))
    for start in (0, BLOCK * 3 + 5):
        found = pages(
            world,
            lambda snapshot, at: ranges.changed_ranges(
                snapshot,
                contents,
                max(at, start),  # noqa: B023
                SPACE,
                limit=3,
                block=BLOCK,
            ),
        )
        assert found == expected(["-"] * start + in_blocks(kinds)[start:])
    data = pages(
        world,
        lambda snapshot, at: ranges.data_ranges(snapshot, contents[-1], at, SPACE, limit=3, block=BLOCK),
    )
    assert data == expected(in_blocks(["d" if history[-1] else "-" for history in histories]))


def test_a_page_ends_after_reading_very_many_intervals(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "_INTERVALS_MAX", 5)
    bodies = world.segments.put(*[bytes(10)] * 20)
    stored = world.run(lambda tx: content.create(tx, bodies))
    page = world.read_in_steps(lambda snapshot: ranges.data_ranges(snapshot, stored, 0, 200, limit=10))
    assert page == RangePage([Range(0, 50)], 50)


def test_a_layer_that_two_contents_share_is_not_read(world: World) -> None:
    stored = world.run(lambda tx: content.create(tx, world.segments.put(*[bytes(10)] * 50)))
    snapshot = world.run(lambda tx: content.share(tx, stored))
    changed = world.run(lambda tx: content.write(tx, stored, 105, b"x"))
    for layer_row in world.rows(b"r" + snapshot.layer.to_bytes(8, "big")):
        if not layer_row.endswith((90).to_bytes(8, "big")):
            world.run(lambda tx, key=layer_row: tx.delete(key))  # type: ignore[misc]
    page = world.read_in_steps(
        lambda state: ranges.changed_ranges(state, (snapshot, changed), 0, 500, limit=10)
    )
    assert page == RangePage([Range(105, 106)], None)
