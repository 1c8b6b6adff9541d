"""Contents that share their history, against byte arrays: every step, every count, and nothing left in the end."""

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kyanite.extents.api import Extent
from kyanite.model.content import content, reading
from kyanite.model.content.content import NO_CONTENT, Content
from tests.model.content.world import OWNER, World
from tests.profiles import examples

SPACE = 120
"""How long the contents may get. Small, so that splices meet each other."""

OFFSETS = st.integers(0, SPACE - 1)
BODIES = st.binary(min_size=1, max_size=24)
PAYLOADS = st.lists(BODIES, min_size=1, max_size=3)
SEEDS = 8
STEPS = 150


class Contents(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.contents: list[Content] = []
        self.expected: list[bytearray] = []
        self.pinned: list[tuple[int, Content, bytes]] = []
        self.next_number = 0

    def pick(self, index: int) -> int:
        return index % len(self.contents)

    def payload(self, bodies: list[bytes], is_inline: bool) -> bytes | Sequence[Extent]:
        return b"".join(bodies) if is_inline else self.world.segments.put(*bodies)

    @rule(bodies=PAYLOADS, is_inline=st.booleans())
    def create(self, bodies: list[bytes], is_inline: bool) -> None:
        payload = self.payload(bodies, is_inline)
        self.contents.append(self.world.run(lambda tx: content.create(tx, payload)))
        data = b"".join(bodies)
        self.expected.append(bytearray(data + bytes(2 * SPACE - len(data))))

    @rule()
    def create_empty(self) -> None:
        self.contents.append(NO_CONTENT)
        self.expected.append(bytearray(2 * SPACE))

    @precondition(lambda self: self.contents)
    @rule(index=st.integers(0, 9), offset=OFFSETS, bodies=PAYLOADS, is_inline=st.booleans())
    def write(self, index: int, offset: int, bodies: list[bytes], is_inline: bool) -> None:
        at = self.pick(index)
        payload, data = self.payload(bodies, is_inline), b"".join(bodies)
        self.contents[at] = self.world.run(lambda tx: content.write(tx, self.contents[at], offset, payload))
        self.expected[at][offset : offset + len(data)] = data

    @precondition(lambda self: self.contents)
    @rule(index=st.integers(0, 9), offset=OFFSETS, length=st.integers(0, SPACE))
    def clear(self, index: int, offset: int, length: int) -> None:
        at = self.pick(index)
        self.contents[at] = self.world.run(lambda tx: content.clear(tx, self.contents[at], offset, length))
        self.expected[at][offset : offset + length] = bytes(length)

    @precondition(lambda self: self.contents)
    @rule(index=st.integers(0, 9), length=OFFSETS)
    def truncate(self, index: int, length: int) -> None:
        at = self.pick(index)
        self.contents[at] = self.world.run(lambda tx: content.truncate(tx, self.contents[at], length))
        self.expected[at][length:] = bytes(2 * SPACE - length)

    @precondition(lambda self: 0 < len(self.contents) < 8)
    @rule(index=st.integers(0, 9))
    def share(self, index: int) -> None:
        at = self.pick(index)
        self.contents.append(self.world.run(lambda tx: content.share(tx, self.contents[at])))
        self.expected.append(bytearray(self.expected[at]))

    @precondition(lambda self: self.contents)
    @rule(
        index=st.integers(0, 9),
        offset=OFFSETS,
        source=st.integers(0, 9),
        start=OFFSETS,
        length=st.integers(1, SPACE),
        limit=st.sampled_from((1, 2, 100)),
    )
    def copy(self, index: int, offset: int, source: int, start: int, length: int, limit: int) -> None:
        at, of = self.pick(index), self.pick(source)
        stored, copied, intervals = self.world.run(
            lambda tx: content.copy(
                tx, self.contents[at], offset, self.contents[of], start, length, limit=limit
            )
        )
        assert 0 < copied <= length
        assert intervals <= limit + 2
        assert copied == length or intervals >= limit
        self.contents[at] = stored
        self.expected[at][offset : offset + copied] = self.expected[of][start : start + copied]

    @precondition(lambda self: self.contents)
    @rule(index=st.integers(0, 9))
    def drop(self, index: int) -> None:
        at = self.pick(index)
        self.world.run(lambda tx: content.drop(tx, self.contents[at]))
        del self.contents[at], self.expected[at]

    @precondition(lambda self: self.contents)
    @rule(index=st.integers(0, 9))
    def pin(self, index: int) -> None:
        content_to_pin = self.contents[self.pick(index)]
        self.next_number += 1
        number = self.next_number
        if content_to_pin.layer:
            self.world.run(lambda tx: reading.pin_content(tx, content_to_pin, OWNER, number))
            self.pinned.append((number, content_to_pin, bytes(self.expected[self.pick(index)])))

    @precondition(lambda self: self.pinned)
    @rule()
    def release(self) -> None:
        number, _, _ = self.pinned.pop()
        self.world.run(lambda tx: reading.release_content(tx, OWNER, number))

    @rule(steps=st.integers(1, 4))
    def collect(self, steps: int) -> None:
        for _ in range(steps):
            self.world.collect()

    @invariant()
    def every_byte_is_right(self) -> None:
        for stored, expected in zip(self.contents, self.expected, strict=True):
            assert self.world.bytes_of(stored, 0, len(expected)) == expected
        for _, stored, then in self.pinned:
            assert self.world.bytes_of(stored, 0, len(then)) == then

    @invariant()
    def every_count_is_right(self) -> None:
        self.world.check_counts(self.contents)

    def wander(self, chance: Random) -> None:
        """One step of a random walk. It gets deeper into layers than machines that are kept short to be shrunk."""
        index, offset = chance.randrange(10), chance.randrange(SPACE)
        bodies = [chance.randbytes(chance.randint(1, 12)) for _ in range(chance.choice((1, 2, 3, 10)))]
        match chance.choices("wctsdhrpo", (10, 3, 1, 4, 3, 1, 1, 5, 5))[0]:
            case "w":
                self.write(index, offset, bodies[:3], chance.random() < 0.5)
            case "c":
                self.clear(index, offset, chance.choice((offset, chance.randrange(20))))
            case "t":
                self.truncate(index, offset)
            case "s" if len(self.contents) < 8:
                self.share(index)
            case "d" if len(self.contents) > 1:
                self.drop(index)
            case "h" if len(self.pinned) < 3:
                self.pin(index)
            case "r" if self.pinned:
                self.release()
            case "p":
                self.collect(chance.randint(1, 4))
            case "o":
                source, start, length = (
                    chance.randrange(10),
                    chance.randrange(SPACE),
                    chance.randint(1, SPACE),
                )
                self.copy(index, offset, source, start, length, chance.choice((1, 3, 100)))

    def teardown(self) -> None:
        while self.pinned:
            self.release()
        self.world.collect_all()
        self.every_byte_is_right()
        while self.contents:
            self.drop(0)
        self.world.collect_all()
        assert self.world.rows() == {}
        assert self.world.segments.data == {}


@pytest.mark.usefixtures("small_limits")
def test_contents_against_byte_arrays() -> None:
    Contents.TestCase.settings = settings(
        max_examples=examples(60),
        stateful_step_count=40,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    Contents.TestCase().runTest()


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("seed", range(examples(SEEDS)))
def test_a_random_walk(seed: int) -> None:
    chance = Random(seed)
    contents = Contents()
    contents.create([chance.randbytes(9) for _ in range(10)], is_inline=False)
    for _ in range(STEPS):
        contents.wander(chance)
        contents.every_byte_is_right()
        contents.every_count_is_right()
    contents.teardown()
