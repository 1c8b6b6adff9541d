import pytest
from hypothesis import given
from hypothesis import strategies as st

from kyanite.wire import ranges
from kyanite.wire.ranges import ByteRange, ResolvedRange

BOTH_WAYS = [
    ("bytes=0-0", ByteRange(0, 0)),
    ("bytes=0-499", ByteRange(0, 499)),
    ("bytes=500-", ByteRange(500, None)),
    ("bytes=0-", ByteRange(0, None)),
    ("bytes=9223372036854775807-", ByteRange(2**63 - 1, None)),
]


@pytest.mark.parametrize(("text", "requested"), BOTH_WAYS)
def test_both_ways(text: str, requested: ByteRange) -> None:
    assert ranges.decode(text) == requested
    assert ranges.encode(requested) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "bytes",
        "bytes=",
        "bytes=-",
        "bytes=-500",
        "bytes=0--1",
        "bytes=5-4",
        "bytes=0-1,5-6",
        "bytes=a-b",
        "bytes=1-2-3",
        "items=0-1",
        "0-1",
        "bytes=９-",
        "bytes=9223372036854775808-",
        "bytes=0-99999999999999999999",
    ],
)
def test_what_the_service_passes_over(text: str) -> None:
    assert ranges.decode(text) is None


def test_its_own_header_wins() -> None:
    assert ranges.from_headers({"range": "bytes=0-1", "x-ms-range": "bytes=2-3"}) == ByteRange(2, 3)
    assert ranges.from_headers({"range": "bytes=0-1"}) == ByteRange(0, 1)
    assert ranges.from_headers({}) is None


@pytest.mark.parametrize(
    ("requested", "total", "resolved"),
    [
        (ByteRange(0, 9), 100, ResolvedRange(0, 10)),
        (ByteRange(90, 99), 100, ResolvedRange(90, 10)),
        (ByteRange(90, 500), 100, ResolvedRange(90, 10)),
        (ByteRange(90, None), 100, ResolvedRange(90, 10)),
        (ByteRange(0, None), 100, ResolvedRange(0, 100)),
        (ByteRange(99, None), 100, ResolvedRange(99, 1)),
        (ByteRange(100, None), 100, None),
        (ByteRange(100, 200), 100, None),
        (ByteRange(0, 0), 0, None),
        (ByteRange(0, None), 0, None),
    ],
)
def test_against_a_length(requested: ByteRange, total: int, resolved: ResolvedRange | None) -> None:
    assert ranges.resolve(requested, total) == resolved


@given(st.integers(0, 60), st.one_of(st.none(), st.integers(0, 60)), st.integers(0, 50))
def test_covers_what_a_slice_covers(first: int, count: int | None, total: int) -> None:
    requested = ByteRange(first, None if count is None else first + count)
    body = bytes(range(total))
    expected = body[first:] if count is None else body[first : first + count + 1]
    resolved = ranges.resolve(requested, total)
    assert (resolved is None) == (expected == b"")
    if resolved is not None:
        assert body[resolved.offset : resolved.offset + resolved.length] == expected


def test_lengths_and_texts_of_answers() -> None:
    assert ByteRange(5, 9).length == 5
    assert ByteRange(5, None).length is None
    assert ranges.content_range(ResolvedRange(10, 5), 100) == "bytes 10-14/100"
    assert ranges.unsatisfied_content_range(0) == "bytes */0"
