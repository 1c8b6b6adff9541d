"""Structured bodies, read and written."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kyanite.wire import crc64, structured_message
from kyanite.wire.malformed import Malformed
from kyanite.wire.structured_message import FORM, framed_length, is_structured
from tests.wire.structured_messages import read, written

CRC = crc64.compute(b"abc").to_bytes(8, "little")
ABC = (
    b"\x01" + (13 + 10 + 3 + 8 + 8).to_bytes(8, "little") + b"\x01\0" + b"\x01\0"  # header
    b"\x01\0"
    + (3).to_bytes(8, "little")
    + b"abc"
    + CRC  # segment
    + CRC  # footer
)


async def test_a_message_is_what_the_reference_says() -> None:
    assert await written(b"abc") == ABC
    for step in (1, 5, 13, 100):
        assert await read(ABC, 3, step) == b"abc"
    assert framed_length(3) == len(ABC)


async def test_what_is_written_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structured_message, "SEGMENT_BYTES", 10)
    for length in (0, 1, 9, 10, 11, 35):
        message = await written(bytes(range(length)))
        assert await read(message, length) == bytes(range(length))
        assert len(message) == framed_length(length)


@pytest.mark.parametrize("at", range(len(ABC)))
async def test_no_byte_can_be_changed_or_missing(at: int) -> None:
    for spoiled in (ABC[:at] + bytes([ABC[at] ^ 1]) + ABC[at + 1 :], ABC[:at], ABC[:at] + ABC[at + 1 :]):
        with pytest.raises(Malformed):
            await read(spoiled, 3)


@given(st.binary(max_size=100))
def test_garbage_is_refused(data: bytes) -> None:
    for message in (data, ABC[:13] + data, ABC + data + b"x"):
        with pytest.raises(Malformed):
            asyncio.run(read(message, 3))


@pytest.mark.parametrize("length", [0, 2, 4])
async def test_there_is_as_much_data_as_was_announced(length: int) -> None:
    with pytest.raises(Malformed):
        await read(ABC, length)


def test_one_form_is_known() -> None:
    assert is_structured(FORM)
    assert is_structured("xsm/1.0;properties=CRC64")
    assert not is_structured(None)
    with pytest.raises(Malformed):
        is_structured("XSM/2.0; properties=crc64")
