"""Checksums of blocks are those of their bytes, in whatever pieces these come, and give the CRC of the whole."""

import hashlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kyanite.extents.api import BLOCK_BYTES
from kyanite.extents.crc64 import (
    CHECKSUM_BYTES,
    BlockChecksums,
    block_count,
    checksums_of,
    crc64,
    encode,
    whole,
)

DATA = memoryview(hashlib.shake_128(b"").digest(3 * BLOCK_BYTES + 4096))

lengths = st.one_of(
    st.integers(1, len(DATA)),
    st.builds(
        lambda blocks, more: max(blocks * BLOCK_BYTES + more, 1), st.integers(0, 3), st.integers(-2, 2)
    ),
)


def plain(data: memoryview) -> bytes:
    """Written independently: each block by itself."""
    return b"".join(
        crc64(data[at : at + BLOCK_BYTES]).to_bytes(8, "big") for at in range(0, len(data), BLOCK_BYTES)
    )


@given(length=lengths, cuts=st.lists(st.integers(0, len(DATA)), max_size=12))
def test_any_pieces_give_the_same_checksums(length: int, cuts: list[int]) -> None:
    data = DATA[:length]
    computed = BlockChecksums()
    bounds = [0, *sorted(min(cut, length) for cut in cuts), length]
    for start, end in pairwise(bounds):
        computed.add(data[start:end])
    assert computed.length == length
    assert (
        computed.finish() == checksums_of(data) == (crc64(data), plain(data) if length > BLOCK_BYTES else b"")
    )


@given(length=lengths)
def test_the_crc_of_an_extent_follows_from_those_of_its_blocks(length: int) -> None:
    data = DATA[:length]
    assert whole(plain(data), length) == crc64(data)
    assert len(plain(data)) == block_count(length) * CHECKSUM_BYTES


def test_a_changed_checksum_changes_the_crc_of_the_extent() -> None:
    checksums = [crc64(DATA[:BLOCK_BYTES]), crc64(DATA[BLOCK_BYTES : 2 * BLOCK_BYTES])]
    right = whole(encode(checksums), 2 * BLOCK_BYTES)
    assert whole(encode(checksums[::-1]), 2 * BLOCK_BYTES) != right
    assert whole(encode([checksums[0] ^ 1, checksums[1]]), 2 * BLOCK_BYTES) != right


@pytest.mark.parametrize(
    ("length", "blocks"),
    [(1, 1), (BLOCK_BYTES - 1, 1), (BLOCK_BYTES, 1), (BLOCK_BYTES + 1, 2), (64 * 1024 * 1024, 256)],
)
def test_how_many_blocks_an_extent_has(length: int, blocks: int) -> None:
    assert block_count(length) == blocks
