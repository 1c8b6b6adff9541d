"""Keys in order, also when there are enough of them for several runs."""

from random import Random

import pytest

from kyanite.engine.memory.sorted_keys import SortedKeys


def filled(keys: list[bytes]) -> SortedKeys:
    ordered = SortedKeys()
    for key in keys:
        ordered.add(key)
    return ordered


@pytest.mark.parametrize("order", ["ascending", "descending", "random"])
def test_thousands_of_keys_come_and_go(order: str) -> None:
    random = Random(7)
    keys = [b"%06d" % number for number in range(0, 20_000, 2)]
    arrival = {"ascending": keys, "descending": keys[::-1], "random": random.sample(keys, len(keys))}[order]
    ordered = filled(arrival)
    left = set(keys)
    for _ in range(4):
        for _ in range(50):
            start, end = b"%06d" % random.randrange(20_100), b"%06d" % random.randrange(20_100)
            expected = sorted(key for key in left if start <= key < end)
            assert list(ordered.between(start, end, reverse=False)) == expected
            assert list(ordered.between(start, end, reverse=True)) == expected[::-1]
        for key in random.sample(sorted(left), len(left) // 2):
            ordered.remove(key)
            left.remove(key)


def test_it_can_be_emptied_and_filled_again() -> None:
    ordered = filled([b"a", b"b"])
    ordered.remove(b"a")
    ordered.remove(b"b")
    assert list(ordered.between(b"", b"z", reverse=False)) == []
    assert list(ordered.between(b"", b"z", reverse=True)) == []
    ordered.add(b"c")
    assert list(ordered.between(b"", b"z", reverse=True)) == [b"c"]
