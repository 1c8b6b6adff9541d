"""Entities with the official client: types, update modes, conditions, queries."""

import math
from base64 import b64encode
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum
from typing import Any
from uuid import UUID

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import (
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.data.tables import EdmType, EntityProperty, TableEntity, UpdateMode

from tests.sdk.clients import Sdk, done, items, pages, refused


class Colour(Enum):
    BLUE = "blue"


GUID = UUID("c9da6455-213d-42c9-9a79-3e9149a57833")
SENT: dict[str, Any] = {
    "PartitionKey": "p",
    "RowKey": "r",
    "text": 'é😀 "quoted"',
    "empty": "",
    "int32": -(2**31),
    "int64": EntityProperty(2**62, EdmType.INT64),
    "small64": EntityProperty(5, EdmType.INT64),
    "double": 3.1,
    "even": 3.0,
    "big": 1e300,
    "nan": math.nan,
    "inf": math.inf,
    "minus_inf": -math.inf,
    "yes": True,
    "no": False,
    "moment": datetime(1973, 10, 4, 1, 2, 3, 456789, UTC),
    "midnight": datetime(1973, 10, 4, tzinfo=UTC),
    "guid": GUID,
    "bytes": b"\x00\xff" * 10,
    "no_bytes": b"",
    "nothing": None,
    "größe": 1,
}


async def test_every_type_comes_back(sdk: Sdk) -> None:
    table = await sdk.new_table()
    created = await done(table.create_entity(SENT))
    found = await done(table.get_entity("p", "r"))
    assert math.isnan(found.pop("nan"))
    expected = {name: value for name, value in SENT.items() if name not in ("nan", "nothing")}
    assert dict(found) == expected
    assert {name: type(found[name]) for name in ("int32", "even", "yes")} == {
        "int32": int,
        "even": float,
        "yes": bool,
    }
    assert found.metadata["etag"] == created["etag"]
    assert abs(found.metadata["timestamp"] - datetime.now(UTC)) < timedelta(minutes=5)
    again = await items(table.list_entities())
    assert dict(again[0], nan=0) == dict(expected, nan=0)


async def test_a_time_is_kept_to_its_last_decimal(sdk: Sdk) -> None:
    table = await sdk.new_table()
    await done(
        table.create_entity(
            {
                "PartitionKey": "p",
                "RowKey": "r",
                "t": EntityProperty("2020-01-01T01:02:03.1234567Z", EdmType.DATETIME),
            }
        )
    )
    found = await done(table.get_entity("p", "r"))
    assert found["t"].tables_service_value == "2020-01-01T01:02:03.1234567Z"
    await done(table.upsert_entity(found))
    assert (await done(table.get_entity("p", "r")))[
        "t"
    ].tables_service_value == "2020-01-01T01:02:03.1234567Z"


async def test_times_in_other_zones_and_enumerations(sdk: Sdk) -> None:
    table = await sdk.new_table()
    local = datetime(2003, 9, 27, 9, 52, 43, tzinfo=timezone(timedelta(hours=-2)))
    await done(
        table.create_entity({"PartitionKey": "p", "RowKey": "r", "date": local, "colour": Colour.BLUE})
    )
    found = await done(table.get_entity("p", "r"))
    assert (found["date"], found["colour"]) == (local.astimezone(UTC), "Colour.BLUE")


async def test_levels_of_metadata(sdk: Sdk) -> None:
    table = await sdk.new_table()
    await done(table.create_entity(SENT))
    full = await done(table.get_entity("p", "r", headers={"accept": "application/json;odata=fullmetadata"}))
    assert full["guid"] == GUID
    assert full.metadata["type"] == f"{sdk.server.account}.{table.table_name}"
    assert full.metadata["editLink"] == f"{table.table_name}(PartitionKey='p',RowKey='r')"
    bare = await done(table.get_entity("p", "r", headers={"accept": "application/json;odata=nometadata"}))
    assert (bare["guid"], bare["int64"], bare["bytes"]) == (
        str(GUID),
        str(2**62),
        b64encode(b"\x00\xff" * 10).decode(),
    )
    assert bare["moment"] == "1973-10-04T01:02:03.456789Z"


async def test_insert_of_what_is_there(sdk: Sdk) -> None:
    table = await sdk.new_table()
    await done(table.create_entity({"PartitionKey": "p", "RowKey": "r"}))
    with refused(409, "EntityAlreadyExists", ResourceExistsError):
        await done(table.create_entity({"PartitionKey": "p", "RowKey": "r"}))


@pytest.mark.parametrize("mode", [UpdateMode.MERGE, UpdateMode.REPLACE])
async def test_updates_by_etag_and_by_force(sdk: Sdk, mode: UpdateMode) -> None:
    table = await sdk.new_table()
    first = await done(table.create_entity({"PartitionKey": "p", "RowKey": "r", "a": 1, "b": 1}))
    conditional = {"etag": first["etag"], "match_condition": MatchConditions.IfNotModified}
    second = await done(
        table.update_entity({"PartitionKey": "p", "RowKey": "r", "b": 2}, mode, **conditional)
    )
    assert second["etag"] > first["etag"]
    with refused(412, "UpdateConditionNotSatisfied", ResourceModifiedError):
        await done(table.update_entity({"PartitionKey": "p", "RowKey": "r", "b": 3}, mode, **conditional))
    found = await done(table.get_entity("p", "r"))
    assert (found.get("a"), found["b"]) == (1 if mode is UpdateMode.MERGE else None, 2)
    third = await done(table.update_entity({"PartitionKey": "p", "RowKey": "r", "b": 4}, mode))
    assert third["etag"] > second["etag"]
    assert (await done(table.get_entity("p", "r")))["b"] == 4
    with refused(404, "ResourceNotFound", ResourceNotFoundError):
        await done(table.update_entity({"PartitionKey": "p", "RowKey": "absent"}, mode))


@pytest.mark.parametrize("mode", [UpdateMode.MERGE, UpdateMode.REPLACE])
async def test_upserts(sdk: Sdk, mode: UpdateMode) -> None:
    table = await sdk.new_table()
    created = await done(table.upsert_entity({"PartitionKey": "p", "RowKey": "r", "a": 1}, mode))
    changed = await done(table.upsert_entity({"PartitionKey": "p", "RowKey": "r", "b": "text"}, mode))
    assert changed["etag"] > created["etag"]
    found = await done(table.get_entity("p", "r"))
    assert (found.get("a"), found["b"]) == (1 if mode is UpdateMode.MERGE else None, "text")


async def test_deletes(sdk: Sdk) -> None:
    table = await sdk.new_table()
    made = await done(table.create_entity({"PartitionKey": "p", "RowKey": "r"}))
    old = {
        "etag": "W/\"datetime'2012-06-15T22%3A51%3A44.9662825Z'\"",
        "match_condition": MatchConditions.IfNotModified,
    }
    with refused(412, "UpdateConditionNotSatisfied", ResourceModifiedError):
        await done(table.delete_entity("p", "r", **old))
    await done(
        table.delete_entity("p", "r", etag=made["etag"], match_condition=MatchConditions.IfNotModified)
    )
    with refused(404, "ResourceNotFound", ResourceNotFoundError):
        await done(table.get_entity("p", "r"))
    await done(table.delete_entity("p", "r"))
    entity = TableEntity(PartitionKey="p", RowKey="s")
    await done(table.create_entity(entity))
    await done(table.delete_entity(entity))
    assert await items(table.list_entities()) == []


@pytest.mark.parametrize("key", ["", "it's", "''''", "%25 +&=", "é😀", '"x"', "a'b'c", "(key)", "@:,;!~*"])
async def test_unusual_keys(sdk: Sdk, key: str) -> None:
    table = await sdk.new_table()
    await done(table.create_entity({"PartitionKey": key, "RowKey": key, "n": 1}))
    assert (await done(table.get_entity(key, key)))["RowKey"] == key
    await done(table.update_entity({"PartitionKey": key, "RowKey": key, "n": 2}))
    await done(table.submit_transaction([("update", {"PartitionKey": key, "RowKey": key, "m": 3})]))
    found = await items(
        table.query_entities("PartitionKey eq @key and RowKey eq @key", parameters={"key": key})
    )
    assert [(each["n"], each["m"]) for each in found] == [(2, 3)]
    await done(table.delete_entity(key, key))
    assert await items(table.list_entities()) == []


async def with_three(sdk: Sdk) -> Any:
    table = await sdk.new_table()
    for number in range(3):
        entity = dict(
            SENT,
            RowKey=str(number),
            int32=number,
            text=f"text {number}",
            moment=datetime(2020, 1, 1 + number, tzinfo=UTC),
        )
        entity["int64"] = EntityProperty(2**40 + number, EdmType.INT64)
        entity["bytes"], entity["guid"] = bytes([number]), UUID(int=number)
        await done(table.create_entity(entity))
    return table


@pytest.mark.parametrize(
    ("wanted", "parameters", "expected"),
    [
        ("int32 lt @n", {"n": 2}, ["0", "1"]),
        ("int64 eq @n", {"n": 2**40 + 1}, ["1"]),
        ("text eq @t", {"t": "text 2"}, ["2"]),
        ("double eq @f", {"f": 3.1}, ["0", "1", "2"]),
        ("moment gt @m", {"m": datetime(2020, 1, 1, 12, tzinfo=UTC)}, ["1", "2"]),
        ("guid eq @g", {"g": UUID(int=1)}, ["1"]),
        ("bytes ge @b", {"b": b"\x01"}, ["1", "2"]),
        ("yes eq @y and int32 ne @n", {"y": True, "n": 0}, ["1", "2"]),
        ("RowKey ge @low and RowKey lt @high", {"low": "1", "high": "2"}, ["1"]),
        ("PartitionKey eq 'p' and (int32 eq 0 or not (RowKey lt '2'))", None, ["0", "2"]),
    ],
)
async def test_filters_with_parameters(
    sdk: Sdk, wanted: str, parameters: dict[str, Any] | None, expected: list[str]
) -> None:
    table = await with_three(sdk)
    found = await items(table.query_entities(wanted, parameters=parameters))
    assert [each["RowKey"] for each in found] == expected


async def test_selection_and_pages(sdk: Sdk) -> None:
    table = await with_three(sdk)
    found = await items(table.list_entities(select=["int32", "guid", "missing"]))
    assert [dict(each) for each in found] == [
        {"int32": number, "guid": UUID(int=number), "missing": None} for number in range(3)
    ]
    found = await items(table.query_entities("int32 eq 1", select="int32"))
    assert [dict(each) for each in found] == [{"int32": 1}]
    split = await pages(table.list_entities(results_per_page=2))
    assert [[each["RowKey"] for each in page] for page in split] == [["0", "1"], ["2"]]
    by_page = table.query_entities("int32 ge 0", results_per_page=1).by_page()
    first = await anext(by_page) if sdk.form == "async" else next(by_page)
    assert [each["RowKey"] for each in await items(first)] == ["0"]
    rest = await pages(table.query_entities("int32 ge 0", results_per_page=1), by_page.continuation_token)
    assert [[each["RowKey"] for each in page] for page in rest] == [["1"], ["2"]]


async def test_a_bad_filter_is_refused_with_the_position(sdk: Sdk) -> None:
    table = await sdk.new_table()
    with refused(400, "InvalidInput", HttpResponseError) as caught:
        await items(table.query_entities("aaa bbb ccc"))
    assert "Syntax error at position 7 in 'aaa bbb ccc'." in str(caught.value)


@pytest.mark.parametrize(
    ("properties", "code"),
    [
        ({"a-b": 1}, "PropertyNameInvalid"),
        ({"n" * 256: 1}, "PropertyNameTooLong"),
        ({"x": "v" * 32769}, "PropertyValueTooLarge"),
        ({"x": bytes(65537)}, "PropertyValueTooLarge"),
        ({f"k{n}": n for n in range(253)}, "TooManyProperties"),
        ({f"k{n}": bytes(65000) for n in range(17)}, "EntityTooLarge"),
        ({"RowKey": "a/b"}, "OutOfRangeInput"),
        ({"x": EntityProperty("1600-01-01T00:00:00Z", EdmType.DATETIME)}, "OutOfRangeInput"),
    ],
)
async def test_entities_that_cannot_be(sdk: Sdk, properties: dict[str, Any], code: str) -> None:
    table = await sdk.new_table()
    with refused(400, code):
        await done(table.create_entity({"PartitionKey": "p", "RowKey": "r", **properties}))
    assert await items(table.list_entities()) == []


async def test_the_largest_entities(sdk: Sdk) -> None:
    table = await sdk.new_table()
    largest = {"PartitionKey": "p", "RowKey": "r", **{f"t{n:02}": chr(0x4E00 + n) * 32700 for n in range(16)}}
    await done(table.create_entity(largest))
    assert dict(await done(table.get_entity("p", "r"))) == largest
    most = {"PartitionKey": "p", "RowKey": "s", **{f"p{n}": n for n in range(252)}}
    await done(table.create_entity(most))
    assert [len(each) for each in await items(table.list_entities())] == [18, 254]


async def test_a_missing_key_is_an_error_of_the_caller(sdk: Sdk) -> None:
    table = await sdk.new_table()
    for entity in ({"PartitionKey": "p"}, {"RowKey": "r"}):
        with pytest.raises(ValueError, match="must be present in an entity"):
            await done(table.create_entity(entity))
