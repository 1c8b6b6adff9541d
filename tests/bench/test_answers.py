"""Where an answer ends, however it is framed and however it is cut into pieces."""

import pytest
from bench.load.answers import CHUNKED, INCOMPLETE, Chunks, body_of, header, length_of

PLAIN = b"HTTP/1.1 200 OK\r\nETag: 0x1\r\nContent-Length: 5\r\n\r\nhello"
CHUNKY = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1A;x=y\r\n"
    + b"z" * 26
    + b"\r\n0\r\n\r\n"
)


@pytest.mark.parametrize(
    ("data", "length"),
    [
        (PLAIN, len(PLAIN)),
        (PLAIN.upper(), len(PLAIN)),
        (PLAIN[:-5], len(PLAIN)),
        (PLAIN[:-6], INCOMPLETE),
        (b"HTTP/1.1 204 No Content\r\nA: b\r\n\r\n", 33),
        (CHUNKY, CHUNKED),
    ],
)
def test_length(data: bytes, length: int) -> None:
    assert length_of(data) == length


def test_bodies_come_out_of_their_framing() -> None:
    assert body_of(PLAIN) == b"hello"
    assert body_of(CHUNKY) == b"hello" + b"z" * 26


def test_a_header_is_found_whatever_its_case() -> None:
    assert header(PLAIN, b"etag") == b"0x1"


@pytest.mark.parametrize("step", [1, 2, 3, 7, 1000])
def test_chunks_end_with_their_last_byte_and_not_before(step: int) -> None:
    body = CHUNKY.partition(b"\r\n\r\n")[2]
    chunks = Chunks()
    fed = [chunks.feed(body[at : at + step]) for at in range(0, len(body), step)]
    assert fed == [False] * (len(fed) - 1) + [True]
