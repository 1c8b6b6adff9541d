import pytest
from hypothesis import given
from hypothesis import strategies as st

from kyanite.wire import crc64
from kyanite.wire.malformed import Malformed


def slowly(data: bytes) -> int:
    """The definition, bit by bit."""
    register = 0xFFFFFFFFFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = (register >> 1) ^ (0x9A6C9329AC4BC9B5 if register & 1 else 0)
    return register ^ 0xFFFFFFFFFFFFFFFF


def test_the_check_value() -> None:
    assert crc64.compute(b"123456789") == 0xAE8B14860A799888


@given(st.binary(max_size=200))
def test_follows_the_definition(data: bytes) -> None:
    assert crc64.compute(data) == slowly(data)


@given(st.binary(max_size=100), st.binary(max_size=100))
def test_piece_by_piece(left: bytes, right: bytes) -> None:
    whole = crc64.compute(left + right)
    assert crc64.compute(right, crc64.compute(left)) == whole
    assert crc64.combine(crc64.compute(left), crc64.compute(right), len(right)) == whole
    assert crc64.compute(memoryview(left + right)) == whole


@pytest.mark.parametrize(
    ("crc", "text"),
    [(0, "AAAAAAAAAAA="), (1, "AQAAAAAAAAA="), (0xAE8B14860A799888, "iJh5CoYUi64=")],
)
def test_text_both_ways(crc: int, text: str) -> None:
    assert crc64.encode(crc) == text
    assert crc64.decode(text) == crc


@pytest.mark.parametrize("text", ["", "AAAA", "AAAAAAAAAAAA", "AAAAAAAAAAA", "!!!!!!!!!!!=", "é"])
def test_texts_that_carry_no_crc(text: str) -> None:
    with pytest.raises(Malformed) as caught:
        crc64.decode(text)
    assert caught.value.code == "InvalidHeaderValue"
    assert caught.value.detail == {"HeaderName": "x-ms-content-crc64", "HeaderValue": text}
