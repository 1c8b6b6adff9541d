"""Structured bodies, read and written."""

from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kyanite.wire import crc64, structured_message
from kyanite.wire.malformed import Malformed
from kyanite.wire.structured_message import FORM, decode, encode, framed_length, is_asked

CRC = crc64.compute(b"abc").to_bytes(8, "little")
ABC = (
    b"\x01" + (13 + 10 + 3 + 8 + 8).to_bytes(8, "little") + b"\x01\0" + b"\x01\0"  # header
    b"\x01\0"
    + (3).to_bytes(8, "little")
    + b"abc"
    + CRC  # segment
    + CRC  # footer
)


async def written(data: bytes, step: int = 7) -> bytes:
    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(data), step):
            yield data[at : at + step]

    return b"".join([piece async for piece in encode(pieces(), len(data))])


async def test_a_message_is_what_the_reference_says() -> None:
    assert await written(b"abc") == ABC
    assert decode(ABC) == b"abc"
    assert framed_length(3) == len(ABC)


async def test_what_is_written_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structured_message, "SEGMENT_BYTES", 10)
    for length in (0, 1, 9, 10, 11, 35):
        message = await written(bytes(range(length)))
        assert decode(message) == bytes(range(length))
        assert len(message) == framed_length(length)


@pytest.mark.parametrize("at", range(len(ABC)))
def test_no_byte_can_be_changed_or_missing(at: int) -> None:
    for spoiled in (ABC[:at] + bytes([ABC[at] ^ 1]) + ABC[at + 1 :], ABC[:at], ABC[:at] + ABC[at + 1 :]):
        with pytest.raises(Malformed):
            decode(spoiled)


@given(st.binary(max_size=100))
def test_garbage_is_refused(data: bytes) -> None:
    for message in (data, ABC[:13] + data, ABC + data + b"x"):
        with pytest.raises(Malformed):
            decode(message)


def test_one_form_is_known() -> None:
    assert is_asked(FORM)
    assert is_asked("xsm/1.0;properties=CRC64")
    assert not is_asked(None)
    with pytest.raises(Malformed):
        is_asked("XSM/2.0; properties=crc64")
