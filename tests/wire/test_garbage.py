"""Whatever a stranger sends, a decoder reads it or says that it is malformed. Nothing else escapes."""

from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kyanite.wire import (
    acl,
    crc64,
    http_date,
    iso_time,
    ranges,
    sas,
    service_properties,
    shared_key,
    uri,
    xml,
)
from kyanite.wire.malformed import Malformed

TEXT_DECODERS: list[Callable[[str], object]] = [
    uri.decode_query,
    uri.decode_percent,
    lambda text: uri.decode_target(text, "/acc/c/b", "blob"),
    lambda text: uri.decode_target("localhost", f"/{text}", "blob"),
    lambda text: sas.decode(uri.decode_query(text), "blob"),
    shared_key.decode_authorization,
    lambda text: shared_key.matches((b"key",), "text", text),
    http_date.decode,
    iso_time.decode,
    ranges.decode,
    crc64.decode,
]
DOCUMENT_DECODERS: list[Callable[[bytes], object]] = [
    lambda document: xml.decode(document, "A"),
    acl.decode,
    lambda document: service_properties.decode(document, service_properties.BLOB_ELEMENTS),
]

HEADER_TEXT = st.text(st.characters(max_codepoint=255))
LIKELY_TEXT = st.lists(
    st.sampled_from(
        [
            "sig",
            "sv",
            "sp",
            "se",
            "sr",
            "=",
            "&",
            "%",
            "%2",
            "%41",
            "+",
            "2020-12-06",
            "r",
            "b",
            "bytes=",
            "-",
            "1",
            "SharedKey ",
            "a:b",
            "Bearer",
            "Wed, 01 May 2024 12:34:56 GMT",
            "T",
            "Z",
            ":",
            ".",
            ",",
            "/",
            "ÿ",
        ]
    ),
    max_size=12,
).map("".join)
LIKELY_DOCUMENT = st.lists(
    st.sampled_from(
        [
            b"<A>",
            b"</A>",
            b"<",
            b">",
            b"&amp;",
            b"&x;",
            b"<!DOCTYPE A [",
            b"]>",
            b"<![CDATA[",
            b"]]>",
            b"<!--",
            b"-->",
            b"<?xml version='1.0'?>",
            b"\xff",
            b"\x00",
            b"text",
            b" ",
            b"<SignedIdentifiers>",
            b"<SignedIdentifier>",
            b"<Id>",
            b"</Id>",
            b"<StorageServiceProperties>",
            b"<Cors>",
            b"<Logging/>",
        ]
    ),
    max_size=12,
).map(b"".join)


@pytest.mark.parametrize("decode", TEXT_DECODERS)
@given(text=st.one_of(HEADER_TEXT, LIKELY_TEXT))
def test_texts(decode: Callable[[str], object], text: str) -> None:
    with suppress(Malformed):
        decode(text)


@pytest.mark.parametrize("decode", DOCUMENT_DECODERS)
@given(document=st.one_of(st.binary(), LIKELY_DOCUMENT))
def test_documents(decode: Callable[[bytes], object], document: bytes) -> None:
    with suppress(Malformed):
        decode(document)


FIELDS = st.sampled_from(
    [
        "sv",
        "ss",
        "srt",
        "sp",
        "st",
        "se",
        "sip",
        "spr",
        "sr",
        "si",
        "sig",
        "tn",
        "spk",
        "srk",
        "epk",
        "erk",
        "sdd",
        "ses",
        "rscc",
        "rsct",
        "skoid",
        "comp",
    ]
)
VALUES = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    st.sampled_from(
        ["2020-12-06", "2012-02-12", "b", "c", "d", "bs", "r", "rw", "sco", "10.0.0.1", "https", "1"]
    ),
)


@given(st.dictionaries(FIELDS, VALUES, min_size=3), st.sampled_from(uri.SERVICES))
def test_tokens(fields: dict[str, str], service: str) -> None:
    query = uri.decode_query(urlencode({"sig": "c2ln", **fields}))
    with suppress(Malformed):
        found = sas.decode(query, service)
        if isinstance(found, sas.ServiceSas):
            assert found.string_to_sign("acc", "cont", "a/b", "moment")
