"""Entities in JSON: every type in every spelling that clients send, and what is refused."""

import json
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kyanite.wire.edm import datetime_text, decode_entity, decode_properties, decode_table_name, guid_text
from kyanite.wire.malformed import Malformed

GUID = "c9da6455-213d-42c9-9a79-3e9149a57833"


def read(**sent: Any) -> dict[str, Any]:
    names = {name.replace("__type", "@odata.type"): value for name, value in sent.items()}
    return dict(decode_entity(json.dumps(names).encode())[2])


def typed(value: Any, type_: str) -> dict[str, Any]:
    return {"x__type": type_, "x": value}


def annotated(text: str, type_: str) -> dict[str, Any]:
    return {"x@odata.type": type_, "x": text}


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        # Bare values tell their type.
        ({"x": "text"}, {"x": "text"}),
        ({"x": ""}, {"x": ""}),
        ({"x": True}, {"x": True}),
        ({"x": 2**31 - 1}, {"x": 2**31 - 1}),
        ({"x": -(2**31)}, {"x": -(2**31)}),
        ({"x": 1.5}, {"x": 1.5}),
        ({"x": 3.0}, {"x": 3.0}),
        ({"x": 2**31}, {"x": float(2**31)}),
        ({"x": 10**30}, {"x": 1e30}),
        ({"x": None}, {}),
        # Annotations that were not needed
        (typed("text", "Edm.String"), {"x": "text"}),
        (typed(True, "Edm.Boolean"), {"x": True}),
        (typed(5, "Edm.Int32"), {"x": 5}),
        (typed(1.5, "Edm.Double"), {"x": 1.5}),
        # Values as texts
        (typed("true", "Edm.Boolean"), {"x": True}),
        (typed("False", "Edm.Boolean"), {"x": False}),
        (typed("5", "Edm.Int32"), {"x": 5}),
        (typed("1e3", "Edm.Double"), {"x": 1000.0}),
        # Types that JSON has no form for
        (typed(5, "Edm.Double"), {"x": 5.0}),
        (typed("NaN", "Edm.Double"), annotated("NaN", "Edm.Double")),
        (typed("Infinity", "Edm.Double"), annotated("Infinity", "Edm.Double")),
        (typed("-Infinity", "Edm.Double"), annotated("-Infinity", "Edm.Double")),
        (typed("9223372036854775807", "Edm.Int64"), annotated("9223372036854775807", "Edm.Int64")),
        (typed("+007", "Edm.Int64"), annotated("7", "Edm.Int64")),
        (typed(-8, "Edm.Int64"), annotated("-8", "Edm.Int64")),
        (typed("AP8=", "Edm.Binary"), annotated("AP8=", "Edm.Binary")),
        (typed("", "Edm.Binary"), annotated("", "Edm.Binary")),
        (typed(GUID.upper(), "Edm.Guid"), annotated(GUID, "Edm.Guid")),
        (typed("{" + GUID.replace("-", "") + "}", "Edm.Guid"), annotated(GUID, "Edm.Guid")),
        (typed("2024-05-01T00:00:00Z", "Edm.DateTime"), annotated("2024-05-01T00:00:00Z", "Edm.DateTime")),
        (
            typed("2024-05-01T00:00:00.1230000Z", "Edm.DateTime"),
            annotated("2024-05-01T00:00:00.123Z", "Edm.DateTime"),
        ),
        (
            typed("2024-05-01T00:00:00.000Z", "Edm.DateTime"),
            annotated("2024-05-01T00:00:00Z", "Edm.DateTime"),
        ),
        (typed("2024-05-01T00:00:00", "Edm.DateTime"), annotated("2024-05-01T00:00:00Z", "Edm.DateTime")),
        (
            typed("2024-05-01T01:30:00+01:30", "Edm.DateTime"),
            annotated("2024-05-01T00:00:00Z", "Edm.DateTime"),
        ),
        (typed("2024-05-01", "Edm.DateTime"), annotated("2024-05-01T00:00:00Z", "Edm.DateTime")),
        # What the service adds and clients send back
        ({"odata.etag": 'W/"x"', "odata.type": "a.b", "Timestamp": "now", "x": 1}, {"x": 1}),
        ({"x@odata.navigationLinkUrl": "u", "x": 1}, {"x": 1}),
        ({"x__type": "Edm.Int64"}, {}),
        ({"x__type": None, "x": 5}, {"x": 5}),
        ({"x__type": "Edm.Int64", "x": None}, {}),
    ],
)
def test_a_property_is_read_into_one_spelling(sent: dict[str, Any], expected: dict[str, Any]) -> None:
    found = read(**sent)
    assert found == expected
    assert [type(value) for value in found.values()] == [type(value) for value in expected.values()]


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        ({"x": [1]}, "InvalidInput"),
        ({"x": {}}, "InvalidInput"),
        ({"x": 10**400}, "InvalidInput"),
        (typed(5, "Edm.String"), "InvalidInput"),
        (typed("yes", "Edm.Boolean"), "InvalidInput"),
        (typed(1, "Edm.Boolean"), "InvalidInput"),
        (typed(2**31, "Edm.Int32"), "InvalidInput"),
        (typed("five", "Edm.Int32"), "InvalidInput"),
        (typed(5.5, "Edm.Int32"), "InvalidInput"),
        (typed(True, "Edm.Int32"), "InvalidInput"),
        (typed("9223372036854775808", "Edm.Int64"), "InvalidInput"),
        (typed("1_000", "Edm.Int64"), "InvalidInput"),
        (typed("", "Edm.Int64"), "InvalidInput"),
        (typed("INF", "Edm.Double"), "InvalidInput"),
        (typed("1e999", "Edm.Double"), "InvalidInput"),
        (typed(True, "Edm.Double"), "InvalidInput"),
        (typed("not base64!", "Edm.Binary"), "InvalidInput"),
        (typed("QQ=", "Edm.Binary"), "InvalidInput"),
        (typed("1234", "Edm.Guid"), "InvalidInput"),
        (typed("2024-13-01T00:00:00Z", "Edm.DateTime"), "InvalidInput"),
        (typed("2024-05-01T00:00:00.12345678Z", "Edm.DateTime"), "InvalidInput"),
        (typed("yesterday", "Edm.DateTime"), "InvalidInput"),
        (typed("1600-12-31T23:59:59Z", "Edm.DateTime"), "OutOfRangeInput"),
        (typed("5", "Edm.Decimal"), "InvalidValueType"),
        (typed("5", "String"), "InvalidValueType"),
        ({"x__type": 5, "x": "5"}, "InvalidValueType"),
        ({"x__type": "edm.int32", "x": 5}, "InvalidValueType"),
        ({"PartitionKey__type": "Edm.Int32", "PartitionKey": "5"}, "InvalidValueType"),
        ({"PartitionKey": 5}, "InvalidInput"),
        ({"RowKey": True}, "InvalidInput"),
        ({"a.b": 5}, "PropertyNameInvalid"),
        ({"a@b": 5}, "PropertyNameInvalid"),
    ],
)
def test_a_value_that_is_not_of_its_type_is_refused(sent: dict[str, Any], code: str) -> None:
    with pytest.raises(Malformed) as caught:
        read(**sent)
    assert caught.value.code == code
    assert "Reason" in caught.value.detail


def test_keys_are_distinguished_from_properties() -> None:
    found = decode_entity(b'{"PartitionKey":"p","RowKey":"","PartitionKey@odata.type":"Edm.String","x":1}')
    assert found == ("p", "", {"x": 1})
    assert decode_entity(b'{"RowKey":null}') == (None, None, {})


def test_keys_of_any_type_are_passed_over_where_only_properties_are_read() -> None:
    sent = b'{"PartitionKey@odata.type":"Edm.Binary","PartitionKey":"cGs=","RowKey":5,"x":1}'
    assert decode_properties(sent) == {"x": 1}


@pytest.mark.parametrize(
    "body",
    [
        b'{"x":1,"x":2}',
        b'{"x":1, "x" :1}',
        b'{"x":"a","y":"b","x":"a"}',
        b'{"x":"\\"","x":1}',
        b'{"RowKey":"a","RowKey":"b"}',
        b'{"\\u0078":1,"x":1}',
        b'{"x@odata.type":"Edm.Int64","x":"1","x@odata.type":"Edm.String"}',
    ],
)
def test_a_name_that_comes_twice_is_refused(body: bytes) -> None:
    with pytest.raises(Malformed, match="DuplicatePropertiesSpecified"):
        decode_entity(body)


@pytest.mark.parametrize(
    "body", [b'{"x":"say \\"x\\":1","y":1}', b'{"x":"\\\\","y":"\\u0022"}', b'{"x":"a\xc3\xa9"}']
)
def test_quotation_marks_in_texts_are_not_names(body: bytes) -> None:
    assert decode_entity(body)[2] == json.loads(body)


@pytest.mark.parametrize(
    ("body", "where"),
    [
        (b"", "truncated"),
        (b"{", "truncated"),
        (b'{"x":1', "truncated"),
        (b'{"x" 1}', "byte 5"),
        (b'{"x":1,}', "byte 7"),
        (b'{"x":NaN}', "byte 5"),
        (b'{"x":01}', "byte"),
        (b"{'x':1}", "byte 1"),
        (b'{"x":1}{}', "byte 8"),
        (b'{"x":"\xff"}', "utf-8"),
        (b'{"x":"\\ud800"}', "truncated"),
        (b'{"x":1e999}', "out of range"),
        (b"[" * 100_000, "not a JSON object"),
        (b'{"x":' + b"[" * 100_000, "an array"),
        (b"[]", "not a JSON object"),
        (b"null", "not a JSON object"),
        (b'"text"', "not a JSON object"),
    ],
)
def test_what_is_no_json_object_is_refused_with_the_position(body: bytes, where: str) -> None:
    with pytest.raises(Malformed) as caught:
        decode_entity(body)
    assert caught.value.code == "InvalidInput"
    assert where in caught.value.detail["Reason"]


def test_a_table_name_is_read() -> None:
    assert decode_table_name(b'{"TableName":"T","more":1}') == "T"
    for body in (b"{}", b'{"TableName":5}', b"[]", b"x"):
        with pytest.raises(Malformed, match="InvalidInput"):
            decode_table_name(body)


NAMES = st.sampled_from(["a", "b", "é", "Name_1"])
VALUES = (
    st.text(max_size=5)
    | st.integers(-(2**31), 2**31 - 1)
    | st.booleans()
    | st.floats(allow_nan=False, allow_infinity=False)
)


@given(st.dictionaries(NAMES, VALUES))
def test_plain_values_come_through_as_they_are(entity: dict[str, Any]) -> None:
    assert decode_entity(json.dumps(entity).encode())[2] == entity


@given(st.binary())
def test_garbage_is_malformed(body: bytes) -> None:
    try:
        decode_entity(body)
    except Malformed:
        return
    assert isinstance(json.loads(body), dict)


@given(st.datetimes(), st.datetimes() | st.none())
def test_texts_of_times_sort_like_the_times(moment: datetime, other: datetime | None) -> None:
    other = other or moment.replace(microsecond=min(moment.microsecond + 1, 999_999))
    text, other_text = (datetime_text(f"{each.isoformat()}Z") or "" for each in (moment, other))
    assert (text[:-1] < other_text[:-1]) is (moment < other)
    assert datetime_text(text) == text


@pytest.mark.parametrize("text", ["", "x", GUID[:-1], GUID + "0", "g" + GUID[1:]])
def test_what_is_no_guid(text: str) -> None:
    assert guid_text(text) is None
