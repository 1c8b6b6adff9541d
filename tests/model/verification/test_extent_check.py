"""Checking the bytes of one extent: whole pieces, single blocks, and what older versions wrote."""

from collections.abc import Collection

import pytest

from kyanite.engine.api import Damaged
from kyanite.extents.api import BLOCK_BYTES, EXTENT_MAX, Extent
from kyanite.extents.crc64 import checksums_of
from kyanite.model import keys
from kyanite.model.content.references import ExtentRow
from kyanite.model.verification.extent_check import ExtentCheck, Span, joined
from tests.model.content.world import outcome

KEY = keys.extent(b"s" * 16, 4096)
LENGTH = 9 * BLOCK_BYTES + 100
DATA = b"".join(bytes([number]) * BLOCK_BYTES for number in range(9)) + b"x" * 100
CRC64, CHECKSUMS = checksums_of(DATA)


class Bytes:
    """The bytes of an extent, of which some blocks cannot be read."""

    def __init__(self, data: bytes, missing: Collection[int] = ()) -> None:
        self._data = data
        self._missing = missing

    def pin(self) -> "Bytes":
        return self

    def release(self) -> None: ...

    async def read_cold(self, extent: Extent, offset: int, length: int) -> bytes:
        if any(offset <= block * BLOCK_BYTES < offset + length for block in self._missing):
            raise Damaged(f"Bytes of {extent} are missing.")
        return self._data[offset : offset + length]


def checked(data: bytes, row: ExtentRow, missing: Collection[int] = ()) -> ExtentCheck:
    check = ExtentCheck(Bytes(data, missing), KEY, row)
    count = 0
    while not check.is_done:
        count += outcome(check.read_piece())
    assert count == row.length or not 0 < row.length <= EXTENT_MAX
    return check


NEW = ExtentRow(LENGTH, CRC64, 1, CHECKSUMS)
OLD = ExtentRow(LENGTH, CRC64, 1)


def flipped(*offsets: int) -> bytes:
    data = bytearray(DATA)
    for offset in offsets:
        data[offset] ^= 1
    return bytes(data)


def block(first: int, end: int) -> Span:
    return Span(first * BLOCK_BYTES, min(end * BLOCK_BYTES, LENGTH))


@pytest.mark.parametrize(
    ("data", "missing", "damaged"),
    [
        (DATA, (), []),
        (flipped(0), (), [block(0, 1)]),
        (flipped(BLOCK_BYTES - 1), (), [block(0, 1)]),
        (flipped(BLOCK_BYTES), (), [block(1, 2)]),
        (flipped(LENGTH - 1), (), [block(9, 10)]),
        (flipped(3 * BLOCK_BYTES, 4 * BLOCK_BYTES), (), [block(3, 5)]),
        (flipped(0, 5 * BLOCK_BYTES), (), [block(0, 1), block(5, 6)]),
        (DATA, [2], [block(2, 3)]),
        (flipped(3 * BLOCK_BYTES), [2, 9], [block(2, 4), block(9, 10)]),
    ],
)
def test_blocks_that_are_damaged(data: bytes, missing: list[int], damaged: list[Span]) -> None:
    check = checked(data, NEW, missing)
    assert check.damaged == damaged
    assert bool(check.problem) == bool(damaged)
    assert check.missing_checksums == b""


@pytest.mark.parametrize(("data", "missing"), [(flipped(7), ()), (DATA, [4]), (DATA, range(10))])
def test_an_old_extent_is_damaged_as_a_whole(data: bytes, missing: Collection[int]) -> None:
    check = checked(data, OLD, missing)
    assert check.damaged == [Span(0, LENGTH)]
    assert check.missing_checksums == b""


def test_the_checksums_of_an_old_extent() -> None:
    check = checked(DATA, OLD)
    assert check.damaged == []
    assert check.missing_checksums == CHECKSUMS


def test_checksums_that_are_not_those_of_the_extent() -> None:
    """The bytes are those of the blocks, but not of the extent."""
    other = flipped(0)
    check = checked(other, ExtentRow(LENGTH, CRC64, 1, checksums_of(other)[1]))
    assert check.damaged == [Span(0, LENGTH)]


@pytest.mark.parametrize("length", [-5, 0, EXTENT_MAX + 1, 1 << 62])
def test_a_length_that_no_extent_has(length: int) -> None:
    check = checked(DATA, ExtentRow(length, CRC64, 1))
    assert check.damaged
    assert check.problem == f"The length of {check.extent} is wrong."


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([], []),
        ([Span(5, 9), Span(0, 5)], [Span(0, 9)]),
        ([Span(0, 9), Span(2, 3)], [Span(0, 9)]),
        ([Span(0, 1), Span(2, 3)], [Span(0, 1), Span(2, 3)]),
    ],
)
def test_spans_that_touch_are_joined(spans: list[Span], expected: list[Span]) -> None:
    assert joined(spans) == expected
