"""Block lists: composing moves intervals, not bytes, and counts only what changes hands."""

from collections.abc import Sequence

import pytest

from kyanite.model.content import blocks, content
from kyanite.model.content.blocks import Block
from kyanite.model.content.content import NO_CONTENT, Content
from tests.model.content.world import World, counting, extent


@pytest.fixture
def world() -> World:
    return World()


def stage(world: World, tag: bytes, data: bytes, *, is_inline: bool = False) -> Content:
    payload = data if is_inline else world.segments.put(data)
    return world.run(lambda tx: content.create(tx, payload, tag=tag))


def compose(
    world: World, old: Content, staged: Sequence[Content], chosen: Sequence[Block]
) -> tuple[Content, int]:
    return counting(world, lambda tx: blocks.compose(tx, old, staged, chosen))


def listed(world: World, stored: Content) -> list[Block]:
    return world.read(lambda snapshot: list(blocks.blocks_of(snapshot, stored)))


def block(tag: bytes, staged: Content) -> Block:
    return Block(tag, staged.intervals)


@pytest.mark.parametrize("is_inline", [True, False])
@pytest.mark.parametrize("count", [1, 3, 200])
def test_staged_blocks_become_a_blob(world: World, count: int, is_inline: bool) -> None:
    bodies = {b"%03d" % number: b"block %d " % number for number in range(count)}
    staged = {tag: stage(world, tag, data, is_inline=is_inline) for tag, data in bodies.items()}
    chosen = [block(tag, each) for tag, each in staged.items()]
    stored, rows = compose(world, NO_CONTENT, list(staged.values()), chosen)
    assert rows <= count // 64 + 2
    whole = b"".join(bodies.values())
    assert world.bytes_of(stored, 0, len(whole)) == whole
    assert [(each.tag, each.length) for each in listed(world, stored)] == [
        (tag, len(data)) for tag, data in bodies.items()
    ]
    world.check_counts([stored])


def test_blocks_that_are_not_chosen_are_dropped(world: World) -> None:
    staged = [stage(world, b"%d" % number, bytes((number,)) * 10) for number in range(10)]
    stored, _ = compose(world, NO_CONTENT, staged, [block(b"%d" % n, staged[n]) for n in (7, 2)])
    assert world.bytes_of(stored, 0, 20) == b"\7" * 10 + b"\2" * 10
    world.check_counts([stored])
    assert len(world.rows(b"g")) == 8


def test_a_new_list_changes_only_what_is_new_or_gone(world: World) -> None:
    staged = [stage(world, b"%04d" % number, b"%04d" % number) for number in range(1000)]
    chosen = [block(b"%04d" % n, each) for n, each in enumerate(staged)]
    stored, _ = compose(world, NO_CONTENT, staged, chosen)
    fresh = stage(world, b"fresh", b"new!")
    committed = listed(world, stored)
    again = [*committed[:500], block(b"fresh", fresh), *committed[501:]]
    updated, rows = compose(world, stored, [fresh], again)
    assert updated == stored, "the layer was rewritten in place"
    assert rows <= 1 + 1 + 16 + 1 + 3
    world.check_counts([updated])
    assert world.bytes_of(updated, 1996, 12) == b"0499new!0501"


def test_a_block_may_be_in_the_list_more_than_once(world: World) -> None:
    for is_inline in (True, False):
        staged = stage(world, b"a", b"abc", is_inline=is_inline)
        stored, _ = compose(world, NO_CONTENT, [staged], [block(b"a", staged)] * 70)
        assert world.bytes_of(stored, 0, 210) == b"abc" * 70
        assert len(listed(world, stored)) == 70
        world.check_counts([stored])
        fewer, _ = compose(world, stored, [], listed(world, stored)[:2])
        world.check_counts([fewer])
        world.run(lambda tx, each=fewer: content.drop(tx, each))  # type: ignore[misc]
        world.collect_all()
        assert world.rows() == {}


def test_a_snapshot_keeps_its_list(world: World) -> None:
    staged = [stage(world, b"%d" % number, bytes((number,)) * 10) for number in range(9)]
    stored, _ = compose(world, NO_CONTENT, staged, [block(b"%d" % n, each) for n, each in enumerate(staged)])
    snapshot = world.run(lambda tx: content.share(tx, stored))
    turned, _ = compose(world, stored, [], listed(world, stored)[::-1])
    assert world.bytes_of(snapshot, 0, 90) == b"".join(bytes((n,)) * 10 for n in range(9))
    assert world.bytes_of(turned, 0, 90) == b"".join(bytes((n,)) * 10 for n in reversed(range(9)))
    world.check_counts([snapshot, turned])


def test_a_whole_body_is_replaced_by_a_list_and_a_list_by_nothing(world: World) -> None:
    for payload in (b"inline", world.segments.put(b"extent")):
        stored = world.run(lambda tx, what=payload: content.create(tx, what))  # type: ignore[misc]
        assert [(each.tag, each.length) for each in listed(world, stored)] == [(b"", 6)]
        staged = stage(world, b"x", b"block")
        composed, _ = compose(world, stored, [staged], [block(b"x", staged)])
        assert world.bytes_of(composed, 0, 5) == b"block"
        world.check_counts([composed])
        empty, _ = compose(world, composed, [], [])
        assert empty == NO_CONTENT
        world.check_counts([])


def test_a_block_of_many_extents_is_one_block(world: World) -> None:
    long = world.run(lambda tx: content.create(tx, [extent(n * 4096, 100) for n in range(63)], tag=b"long"))
    assert len(long.intervals) == 63
    short = stage(world, b"s", b"short")
    chosen = [block(b"s", short), block(b"long", long), block(b"s", short)]
    stored, _ = compose(world, NO_CONTENT, [long, short], chosen)
    assert [(each.tag, each.length) for each in listed(world, stored)] == [
        (b"s", 5),
        (b"long", 6300),
        (b"s", 5),
    ]
    world.check_counts([stored])
