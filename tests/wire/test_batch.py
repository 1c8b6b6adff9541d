"""Batches: what clients send, in all their spellings; what is none; and what is sent back."""

from collections.abc import Callable
from contextlib import suppress
from email import message_from_bytes
from email.policy import HTTP

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kyanite.wire.batch import (
    EmbeddedRequest,
    Part,
    decode_change_set,
    decode_parts,
    decode_requests,
    encode_parts,
    encode_response,
    header_lines,
    is_multipart,
    nested,
)
from kyanite.wire.malformed import Malformed

TYPE = "multipart/mixed; boundary=b1"
PLAIN = (
    b"--b1\r\nContent-Type: application/http\r\nContent-ID: 7\r\n\r\n"
    b"PUT http://host/t(PartitionKey='p',RowKey='r') HTTP/1.1\r\nIf-Match: *\r\nContent-Length: 2\r\n\r\n{}\r\n"
    b"--b1\r\nContent-Type: application/http\r\n\r\nDELETE /t HTTP/1.1\r\n\r\n\r\n--b1--\r\n"
)
REQUESTS = [
    EmbeddedRequest(
        "PUT",
        "http://host/t(PartitionKey='p',RowKey='r')",
        {"if-match": "*", "content-length": "2"},
        b"{}",
        "7",
    ),
    EmbeddedRequest("DELETE", "/t", {}, b""),
]


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        (TYPE, PLAIN),
        ('Multipart/Mixed;boundary="b1"', PLAIN),
        ("multipart/mixed; charset=utf-8; boundary=b1; x=y", PLAIN),
        (TYPE, PLAIN.replace(b"\r\n", b"\n")),
        (TYPE, PLAIN.removesuffix(b"\r\n")),
        (TYPE, PLAIN.replace(b"--b1--\r\n", b"--b1\r\n")),
        (TYPE, PLAIN.replace(b"--b1--\r\n", b"--b1")),
        (TYPE, b"ignored\r\n" + PLAIN + b"ignored\r\n"),
        (TYPE, b"\r\n" + PLAIN),
        (TYPE, PLAIN.replace(b"--b1\r\n", b"--b1  \r\n")),
    ],
)
def test_requests_are_read_in_every_spelling(content_type: str, body: bytes) -> None:
    assert fields(decode_requests(decode_parts(content_type, body, limit=100))) == fields(REQUESTS)
    assert fields(decode_change_set(content_type, body, limit=100)) == fields(REQUESTS)


def fields(requests: list[EmbeddedRequest]) -> list[tuple[object, ...]]:
    return [(each.method, each.target, each.headers, each.body, each.content_id) for each in requests]


def test_a_body_may_hold_what_looks_like_a_boundary() -> None:
    body = b'--b1\r\nContent-Type: text/plain\r\n\r\n{"x":"--b1"} --b1--\r\n--b1--\r\n'
    assert decode_parts(TYPE, body, limit=100) == [
        Part({"content-type": "text/plain"}, b'{"x":"--b1"} --b1--')
    ]


@pytest.mark.parametrize(
    ("content_type", "body", "sentence"),
    [
        ("", PLAIN, "must be multipart/mixed with a boundary"),
        ("application/json", PLAIN, "must be multipart/mixed with a boundary"),
        ("multipart/mixed", PLAIN, "must be multipart/mixed with a boundary"),
        ("multipart/mixed; boundary=", PLAIN, "must be multipart/mixed with a boundary"),
        ("multipart/form-data; boundary=b1", PLAIN, "must be multipart/mixed with a boundary"),
        ("multipart/mixed; boundary=b2", PLAIN, "does not begin with its boundary"),
        (TYPE, b"", "does not begin with its boundary"),
        (TYPE, b"--b1--\r\n", "has no part"),
        (TYPE, b"--b1\r\nContent-Type: application/http", "Part 0 has no blank line"),
        (TYPE, PLAIN.replace(b"--b1\r\n", b"--b1more\r\n"), "something else on its line"),
        (TYPE, b"--b1\r\nno colon\r\n\r\nx\r\n--b1--", "Part 0 has a header without a colon"),
    ],
)
def test_what_is_no_multipart_body_is_refused(content_type: str, body: bytes, sentence: str) -> None:
    with pytest.raises(Malformed) as caught:
        decode_parts(content_type, body, limit=100)
    assert caught.value.code == "InvalidInput"
    assert sentence in caught.value.detail["Reason"]


HTTP_PART = {"content-type": "application/http; msgtype=request"}


@pytest.mark.parametrize(
    ("part", "sentence"),
    [
        (Part({}, b"GET / HTTP/1.1\r\n\r\n"), "Part 1 is not of the type application/http"),
        (Part({"content-type": "text/plain"}, b"GET / HTTP/1.1\r\n\r\n"), "is not of the type"),
        (Part(HTTP_PART, b""), "Part 1 does not begin with a request line"),
        (Part(HTTP_PART, b"GET\r\n\r\n"), "does not begin with a request line"),
        (Part(HTTP_PART, b"get / HTTP/1.1\r\n\r\n"), "does not begin with a request line"),
        (Part(HTTP_PART, b"GET / HTTP/2\r\n\r\n"), "does not begin with a request line"),
        (Part(HTTP_PART, b"GET /a b HTTP/1.1\r\n\r\n"), "does not begin with a request line"),
        (Part(HTTP_PART, b"GET / HTTP/1.1\r\noops\r\n\r\n"), "Part 1 has a header without a colon"),
    ],
)
def test_a_part_that_is_no_request_is_refused(part: Part, sentence: str) -> None:
    good = Part(HTTP_PART, b"GET / HTTP/1.1\r\n\r\n")
    with pytest.raises(Malformed) as caught:
        decode_requests([good, part])
    assert caught.value.code == "InvalidInput"
    assert sentence in caught.value.detail["Reason"]


def test_headers_that_repeat_are_read_the_same() -> None:
    parts = [Part(HTTP_PART, b"GET /%d HTTP/1.1\r\nA: x\r\n B : %d\r\n\r\n" % (n, n)) for n in range(3)]
    assert [request.headers for request in decode_requests(parts)] == [
        {"a": "x", "b": str(n)} for n in range(3)
    ]


LINES = st.sampled_from(
    [
        b"Content-Type: application/http\r\n",
        b"Content-ID: 1\r\n",
        b"Content-ID: 2\r\n",
        b"content-id: 3\r\n",
        b"Content-ID: 4\nContent-Type: text/plain\r\n",
        b"\r\n",
        b"\n",
        b"POST /t HTTP/1.1\r\n",
        b"PUT /t HTTP/1.1\n",
        b"Accept: a\r\n",
        b"Accept: b\r\n",
        b"{}",
        b"\r\n\r\n",
    ]
)
USUAL = st.builds(
    b"Content-Type: application/http\r\nContent-ID: %d\r\n\r\nPOST /t HTTP/1.1\r\nAccept: %d\r\n\r\n%b".__mod__,
    st.tuples(st.integers(0, 9), st.integers(0, 1), st.sampled_from([b"{}", b"", b"{\r\n\r\n}"])),
)


@given(st.lists(USUAL | st.lists(LINES, max_size=8).map(b"".join), min_size=1, max_size=5))
def test_a_change_set_is_decoded_like_its_parts_one_by_one(texts: list[bytes]) -> None:
    """Heads that repeat are found again, and only those."""
    body = b"".join(b"--b1\r\n%b\r\n" % text for text in texts) + b"--b1--\r\n"
    assert outcome(lambda: decode_change_set(TYPE, body, limit=9)) == outcome(
        lambda: decode_requests(decode_parts(TYPE, body, limit=9))
    )


def outcome(decode: Callable[[], list[EmbeddedRequest]]) -> list[tuple[object, ...]] | str:
    try:
        return fields(decode())
    except Malformed as error:
        return error.code


def test_requests_with_the_same_head_share_their_headers() -> None:
    text = (
        b"Content-Type: application/http\r\nContent-ID: %d\r\n\r\nPOST /t HTTP/1.1\r\nAccept: a\r\n\r\n{}\r\n"
    )
    body = b"".join(b"--b1\r\n" + text % number for number in range(3)) + b"--b1--\r\n"
    requests = decode_change_set(TYPE, body, limit=9)
    assert [request.content_id for request in requests] == ["0", "1", "2"]
    assert len({id(request.headers) for request in requests}) == 1


def test_an_answer_reads_like_mail() -> None:
    """The library's own reader of multipart messages finds in it what was put in."""
    inner = [
        encode_response(204, header_lines([("ETag", 'W/"1"'), ("X", "y")]), content_id="0"),
        encode_response(201, b"", b'{"a":1}'),
    ]
    body = encode_parts("outer", [nested("inner", encode_parts("inner", inner))])
    mail = message_from_bytes(b"Content-Type: multipart/mixed; boundary=outer\r\n\r\n" + body, policy=HTTP)
    (change_set,) = mail.iter_parts()
    first, second = change_set.iter_parts()
    assert change_set.get_content_type() == "multipart/mixed"
    assert first["Content-ID"] == "0"
    assert first.get_content_type() == "application/http"
    assert first.get_payload(decode=True) == b'HTTP/1.1 204 No Content\r\nETag: W/"1"\r\nX: y\r\n\r\n'
    assert second.get_payload(decode=True) == b'HTTP/1.1 201 Created\r\n\r\n{"a":1}'


PIECES = st.sampled_from(
    [
        b"--b1",
        b"--",
        b"\r\n",
        b"\n",
        b"Content-Type: application/http",
        b"GET / HTTP/1.1",
        b":",
        b"x",
        b"\xff",
    ]
)


@given(st.binary() | st.lists(PIECES).map(b"".join))
def test_garbage_is_read_or_malformed(body: bytes) -> None:
    with suppress(Malformed):
        decode_requests(decode_parts(TYPE, body, limit=100))


@given(
    st.lists(
        st.binary().filter(lambda octets: b"\n" not in octets and b"\r" not in octets), min_size=1, max_size=4
    )
)
def test_parts_come_back_as_they_were(contents: list[bytes]) -> None:
    body = encode_parts("b1", [b"A: b\r\n\r\n" + content for content in contents])
    assert decode_parts(TYPE, body, limit=100) == [Part({"a": "b"}, content) for content in contents]


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [(TYPE, True), ("MULTIPART/MIXED", True), ("multipart/form-data", False), ("", False)],
)
def test_multipart_is_recognised_by_its_type(content_type: str, expected: bool) -> None:
    assert is_multipart(content_type) is expected
