"""Single entities through the service: acts and conditions as published, answers as recorded, and bad input."""

import json
from typing import Any

import pytest

from tests.services.harness import Answer, Harness
from tests.services.table.requests import (
    JSON,
    NO_CONTENT,
    create,
    data,
    entity,
    get,
    insert,
    message,
    query,
    rows,
)

ROOT = "http://localhost:10000/acme/"
OLD = "W/\"datetime'2012-06-15T22%3A51%3A44.9662825Z'\""

# An exchange with the live service, from the recordings of its Python client.
SENT = {
    "PartitionKey": "pk4fed15dc",
    "RowKey": "rk4fed15dc",
    "age": "39",
    "age@odata.type": "Edm.Int64",
    "sex": "male",
    "married": True,
    "deceased": False,
    "ratio": 3.1,
    "evenratio": 3.0,
    "large": "933311100",
    "large@odata.type": "Edm.Int64",
    "Birthday": "1973-10-04T00:00:00.000000Z",
    "Birthday@odata.type": "Edm.DateTime",
    "birthday": "1970-10-04T00:00:00Z",
    "birthday@odata.type": "Edm.DateTime",
    "binary": "YmluYXJ5",
    "binary@odata.type": "Edm.Binary",
    "other": 20,
    "clsid": "c9da6455-213d-42c9-9a79-3e9149a57833",
    "clsid@odata.type": "Edm.Guid",
}
PROPERTIES = (
    '"age@odata.type":"Edm.Int64","age":"39","sex":"male","married":true,"deceased":false,"ratio":3.1,"evenratio":3.0,'
    '"large@odata.type":"Edm.Int64","large":"933311100","Birthday@odata.type":"Edm.DateTime",'
    '"Birthday":"1973-10-04T00:00:00Z","birthday@odata.type":"Edm.DateTime","birthday":"1970-10-04T00:00:00Z",'
    '"binary@odata.type":"Edm.Binary","binary":"YmluYXJ5","other":20,"clsid@odata.type":"Edm.Guid",'
    '"clsid":"c9da6455-213d-42c9-9a79-3e9149a57833"}'
)
KEYS = '"PartitionKey":"pk4fed15dc","RowKey":"rk4fed15dc",'
TIME = "2026-09-21T14:13:20.0000001Z"
ETAG = "W/\\\"datetime'2026-09-21T14%3A13%3A20.0000001Z'\\\""
LINK = "things(PartitionKey='pk4fed15dc',RowKey='rk4fed15dc')"


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        (
            "minimalmetadata",
            f'{{"odata.metadata":"{ROOT}$metadata#things/@Element","odata.etag":"{ETAG}",{KEYS}"Timestamp":"{TIME}",'
            + PROPERTIES,
        ),
        (
            "fullmetadata",
            f'{{"odata.metadata":"{ROOT}$metadata#things/@Element","odata.type":"acme.things",'
            f'"odata.id":"{ROOT}{LINK}","odata.etag":"{ETAG}","odata.editLink":"{LINK}",{KEYS}'
            f'"Timestamp@odata.type":"Edm.DateTime","Timestamp":"{TIME}",' + PROPERTIES,
        ),
        (
            "nometadata",
            f'{{{KEYS}"Timestamp":"{TIME}","age":"39","sex":"male","married":true,"deceased":false,"ratio":3.1,'
            '"evenratio":3.0,"large":"933311100","Birthday":"1973-10-04T00:00:00Z","birthday":"1970-10-04T00:00:00Z",'
            '"binary":"YmluYXJ5","other":20,"clsid":"c9da6455-213d-42c9-9a79-3e9149a57833"}',
        ),
    ],
)
async def test_an_entity_is_answered_as_the_service_answers(
    tables: Harness, level: str, expected: str
) -> None:
    await create(tables)
    headers = {**JSON, "Accept": f"application/json;odata={level}"}
    inserted = await tables("POST", "/things", headers, json.dumps(SENT).encode())
    assert (inserted.status, inserted.body.decode()) == (201, expected)
    assert inserted.headers["etag"] == ETAG.replace("\\", "")
    assert inserted.headers["location"] == ROOT + LINK
    assert inserted.headers["content-type"] == f"application/json;odata={level};streaming=true;charset=utf-8"
    found = await tables("GET", f"/{LINK}", headers)
    assert (found.status, found.body.decode()) == (200, expected)
    assert found.headers["etag"] == inserted.headers["etag"]


async def test_entities_without_annotations_lose_only_the_etag(tables: Harness) -> None:
    await create(tables)
    await insert(tables, a="@odata.type", b=1)
    bare = await tables("GET", entity(), {"Accept": "application/json;odata=nometadata"})
    assert data(bare) == {"PartitionKey": "p", "RowKey": "r", "Timestamp": TIME, "a": "@odata.type", "b": 1}
    await insert(tables, "plain", b=1)
    bare = await tables("GET", entity("plain"), {"Accept": "application/json;odata=nometadata"})
    assert list(data(bare)) == ["PartitionKey", "RowKey", "Timestamp", "b"]


@pytest.mark.parametrize(
    ("accept", "options", "level"),
    [
        ("", "", "minimalmetadata"),
        ("*/*", "", "minimalmetadata"),
        ("application/json", "", "minimalmetadata"),
        ("application/json;odata=nometadata", "", "nometadata"),
        ("application/atom+xml, application/json;odata=fullmetadata", "", "fullmetadata"),
        ("application/atom+xml", "?$format=application/json;odata=nometadata", "nometadata"),
        ("application/json;odata=nometadata", "?$format=json", "minimalmetadata"),
        ("APPLICATION/JSON; ODATA=NoMetadata", "", "nometadata"),
    ],
)
async def test_metadata_levels(tables: Harness, accept: str, options: str, level: str) -> None:
    await create(tables)
    await insert(tables)
    found = await tables("GET", entity() + options, {"Accept": accept or "(absent)"})
    assert f"odata={level};" in found.headers["content-type"]


async def test_insert_prefers(tables: Harness) -> None:
    await create(tables)
    silent = await insert(tables, "a")
    assert silent.headers["preference-applied"] == "return-no-content"
    assert silent.headers["dataserviceid"] == silent.headers["location"] == ROOT + entity("a")[1:]
    body = json.dumps({"PartitionKey": "p", "RowKey": "b"}).encode()
    echoed = await tables("POST", "/things()", {**JSON, "Prefer": "return-content"}, body)
    assert (echoed.status, echoed.headers["preference-applied"]) == (201, "return-content")


# Acts and conditions


async def change(
    tables: Harness, method: str, if_match: str | None, row_key: str = "r", **properties: Any
) -> Answer:
    condition = {} if if_match is None else {"If-Match": if_match}
    body = b"" if method == "DELETE" else json.dumps(properties).encode()
    return await tables(method, entity(row_key), {**JSON, **condition}, body)


@pytest.mark.parametrize(
    ("method", "if_match", "missing", "stale"),
    [
        # The table of the reference: with If-Match an update, without it an upsert.
        ("PUT", "ETag", (404, "ResourceNotFound"), (412, "UpdateConditionNotSatisfied")),
        ("PATCH", "ETag", (404, "ResourceNotFound"), (412, "UpdateConditionNotSatisfied")),
        ("MERGE", "ETag", (404, "ResourceNotFound"), (412, "UpdateConditionNotSatisfied")),
        ("DELETE", "ETag", (404, "ResourceNotFound"), (412, "UpdateConditionNotSatisfied")),
        ("PUT", "*", (404, "ResourceNotFound"), (204, "")),
        ("PATCH", "*", (404, "ResourceNotFound"), (204, "")),
        ("DELETE", "*", (404, "ResourceNotFound"), (204, "")),
        ("PUT", None, (204, ""), (204, "")),
        ("PATCH", None, (204, ""), (204, "")),
        ("MERGE", None, (204, ""), (204, "")),
        ("DELETE", None, (400, "MissingRequiredHeader"), (400, "MissingRequiredHeader")),
    ],
)
async def test_conditions(
    tables: Harness, method: str, if_match: str | None, missing: tuple[int, str], stale: tuple[int, str]
) -> None:
    await create(tables)
    condition = OLD if if_match == "ETag" else if_match
    absent = await change(tables, method, condition, "absent", n=1)
    assert (absent.status, absent.code) == missing
    before = await insert(tables, m=0)
    there = await change(tables, method, condition, n=1)
    assert (there.status, there.code) == stale
    if stale[0] != 204:
        assert (await get(tables))["m"] == 0
    if if_match == "ETag":
        matched = await change(tables, method, before.headers["etag"], n=1)
        assert matched.status == 204


async def test_replace_drops_what_merge_keeps(tables: Harness) -> None:
    await create(tables)
    await insert(tables, a=1, b="x")
    merged = await change(tables, "PATCH", "*", b=None, c=True)
    found = await get(tables)
    assert (found["a"], found["b"], found["c"]) == (1, "x", True)
    assert found["odata.etag"] == merged.headers["etag"]
    replaced = await change(tables, "PUT", merged.headers["etag"], b="y", a=None)
    found = await get(tables)
    assert (found["b"], "a" in found, "c" in found) == ("y", False, False)
    assert found["odata.etag"] == replaced.headers["etag"] > merged.headers["etag"]


async def test_insert_of_what_is_there_is_a_conflict(tables: Harness) -> None:
    await create(tables)
    before = await insert(tables, n=1)
    again = await tables("POST", "/things", JSON, b'{"PartitionKey":"p","RowKey":"r","n":2}')
    assert (again.status, again.code) == (409, "EntityAlreadyExists")
    assert message(again) == "The specified entity already exists."
    assert (await get(tables))["odata.etag"] == before.headers["etag"]


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"If-Match": ""}, "InvalidInput"),
        ({"If-Match": "0x8D"}, "InvalidInput"),
        ({"If-Match": '"0x8D"'}, "InvalidInput"),
        ({"If-Match": 'W/"'}, "InvalidInput"),
        ({"If-Match": 'W/""'}, "InvalidInput"),
        ({"If-None-Match": "*"}, "InvalidInput"),
        ({"If-None-Match": "*", "If-Match": "*"}, "InvalidInput"),
    ],
)
@pytest.mark.parametrize("method", ["PUT", "MERGE", "DELETE"])
async def test_conditions_that_cannot_be_read(
    tables: Harness, method: str, headers: dict[str, str], code: str
) -> None:
    await create(tables)
    before = await insert(tables)
    answer = await tables(method, entity(), {**JSON, **headers}, b"" if method == "DELETE" else b"{}")
    assert (answer.status, answer.code) == (400, code)
    assert (await get(tables))["odata.etag"] == before.headers["etag"]


@pytest.mark.parametrize("weak", ["W/", "w/"])
async def test_a_weak_etag_of_any_text_may_be_compared(tables: Harness, weak: str) -> None:
    await create(tables)
    before = (await insert(tables, n=1)).headers["etag"]
    assert (await change(tables, "PUT", f'{weak}"another"', n=2)).code == "UpdateConditionNotSatisfied"
    assert (await change(tables, "PUT", before.replace("W/", weak), n=2)).status == 204


async def test_an_insertion_takes_no_condition(tables: Harness) -> None:
    await create(tables)
    body = b'{"PartitionKey":"p","RowKey":"r"}'
    refused = await tables("POST", "/things", {**JSON, "If-Match": "*"}, body)
    assert (refused.status, refused.code) == (400, "InvalidInput")


@pytest.mark.parametrize("verb", ["PUT", "MERGE", "PATCH", "DELETE", "merge"])
async def test_a_verb_may_travel_in_a_post(tables: Harness, verb: str) -> None:
    await create(tables)
    await insert(tables, a=1)
    body = b"" if verb == "DELETE" else b'{"b":2}'
    answer = await tables("POST", entity(), {**JSON, "X-HTTP-Method": verb, "If-Match": "*"}, body)
    assert answer.status == 204
    if verb == "DELETE":
        assert (await tables("GET", entity(), JSON)).status == 404
    else:
        found = await get(tables)
        assert (found["b"], "a" in found) == (2, verb != "PUT")
    upserted = await tables("POST", entity("new"), {**JSON, "X-HTTP-Method": "MERGE"}, b'{"n":1}')
    assert upserted.status == 204


@pytest.mark.parametrize(
    ("method", "meant", "code"),
    [
        ("PUT", "MERGE", "XMethodNotUsingPost"),
        ("GET", "MERGE", "XMethodNotUsingPost"),
        ("POST", "GET", "XMethodIncorrectValue"),
        ("POST", "", "XMethodIncorrectValue"),
        ("POST", "MERGE,PUT", "XMethodIncorrectCount"),
    ],
)
async def test_a_verb_that_may_not_travel(tables: Harness, method: str, meant: str, code: str) -> None:
    await create(tables)
    answer = await tables(method, entity(), {**JSON, "X-HTTP-Method": meant}, b"{}")
    assert (answer.status, answer.code) == (400, code)


# Keys


@pytest.mark.parametrize(
    "key", ["", "it's", "''", "a b+c%41", "é😀", "(x)", ",RowKey='", '"', "k" * 512, "\xa0"]
)
async def test_unusual_keys(tables: Harness, key: str) -> None:
    await create(tables)
    await insert(tables, key, key, n=1)
    found = await get(tables, key, key)
    assert (found["PartitionKey"], found["RowKey"]) == (key, key)
    quoted = key.replace("'", "''")
    assert rows(await query(tables, f"PartitionKey eq '{quoted}' and RowKey eq '{quoted}'")) == [key]
    location = (await tables("GET", entity(key, key), {"Accept": "application/json;odata=fullmetadata"})).body
    again = await tables("GET", json.loads(location)["odata.id"].removeprefix(ROOT[:-1]), JSON)
    assert data(again)["RowKey"] == key
    assert (await tables("DELETE", entity(key, key), {"If-Match": "*"})).status == 204


async def test_keys_of_the_path_count_in_either_order(tables: Harness) -> None:
    await create(tables)
    await insert(tables, "r", "p", n=1)
    found = await tables("GET", "/things(RowKey='r', PartitionKey='p')", JSON)
    assert data(found)["n"] == 1
    put = await tables("PUT", entity(), {**JSON, "If-Match": "*"}, b'{"PartitionKey":"x","RowKey":"y","n":2}')
    assert put.status == 204
    found_again = await get(tables)
    assert (found_again["PartitionKey"], found_again["RowKey"], found_again["n"]) == ("p", "r", 2)


@pytest.mark.parametrize(
    "path",
    [
        "/things('r')",
        "/things(PartitionKey='p')",
        "/things(PartitionKey='p',RowKey='r)",
        "/things(PartitionKey='p',RowKey='r',More='x')",
        "/things(PartitionKey=p,RowKey=r)",
        "/things(partitionkey='p',rowkey='r')",
    ],
)
async def test_paths_that_name_no_entity(tables: Harness, path: str) -> None:
    await create(tables)
    answer = await tables("GET", path, JSON)
    assert (answer.status, answer.code) == (400, "InvalidInput")


async def test_a_missing_table_differs_from_a_missing_entity(tables: Harness) -> None:
    assert (await tables("GET", entity(), JSON)).code == "TableNotFound"
    assert (
        await tables("POST", "/things", JSON, b'{"PartitionKey":"p","RowKey":"r"}')
    ).code == "TableNotFound"
    await create(tables)
    assert (await tables("GET", entity(), JSON)).code == "ResourceNotFound"


# Bad input

BODIES: list[tuple[bytes | dict[str, Any], int, str, str]] = [
    (b"", 400, "InvalidInput", "truncated"),
    (b"{", 400, "InvalidInput", "truncated"),
    (b'{"PartitionKey":"p","RowKey":"r",}', 400, "InvalidInput", "byte 33"),
    (b"[]", 400, "InvalidInput", "not a JSON object"),
    (b"\xff", 400, "InvalidInput", "JSON"),
    ({"RowKey": "r"}, 400, "PropertiesNeedValue", "values are not specified"),
    ({"PartitionKey": "p"}, 400, "PropertiesNeedValue", "values are not specified"),
    ({"PartitionKey": None, "RowKey": "r"}, 400, "PropertiesNeedValue", "values are not specified"),
    ({"PartitionKey": 5, "RowKey": "r"}, 400, "InvalidInput", "PartitionKey must be a text"),
    (
        {"PartitionKey": "a/b", "RowKey": "r"},
        400,
        "OutOfRangeInput",
        "'PartitionKey' parameter of value 'a/b'",
    ),
    ({"PartitionKey": "p", "RowKey": "a\tb"}, 400, "OutOfRangeInput", "'RowKey' parameter"),
    ({"PartitionKey": "p", "RowKey": "k" * 513}, 400, "KeyValueTooLarge", "'RowKey' property"),
    ({"PartitionKey": "p", "RowKey": "r", "a-b": 1}, 400, "PropertyNameInvalid", "'a-b'"),
    ({"PartitionKey": "p", "RowKey": "r", "a.b": 1}, 400, "PropertyNameInvalid", "'a.b'"),
    ({"PartitionKey": "p", "RowKey": "r", "n" * 256: 1}, 400, "PropertyNameTooLong", "255"),
    ({"PartitionKey": "p", "RowKey": "r", "x": "v" * 32769}, 400, "PropertyValueTooLarge", "64KB"),
    (
        {"PartitionKey": "p", "RowKey": "r", **{f"k{n}": n for n in range(253)}},
        400,
        "TooManyProperties",
        "252 properties",
    ),
    (
        {"PartitionKey": "p", "RowKey": "r", **{f"k{n}": "v" * 32000 for n in range(17)}},
        400,
        "EntityTooLarge",
        "1MB",
    ),
    (b'{"PartitionKey":"p","RowKey":"r","x":1,"x":2}', 400, "DuplicatePropertiesSpecified", "more than once"),
    ({"PartitionKey": "p", "RowKey": "r", "x": [1]}, 400, "InvalidInput", "an array"),
    (
        {"PartitionKey": "p", "RowKey": "r", "x@odata.type": "Edm.Int32", "x": "y"},
        400,
        "InvalidInput",
        "The value of x is no Edm.Int32",
    ),
    (
        {"PartitionKey": "p", "RowKey": "r", "x@odata.type": "Edm.Float", "x": "y"},
        400,
        "InvalidValueType",
        "x@odata.type names no type",
    ),
    (
        {"PartitionKey": "p", "RowKey": "r", "x@odata.type": "Edm.DateTime", "x": "0001-01-01T00:00:00Z"},
        400,
        "OutOfRangeInput",
        "The 'x' parameter of value '0001-01-01T00:00:00Z' is out of range.",
    ),
    (b'{"x":"' + b"v" * (4 * 1024 * 1024) + b'"}', 413, "RequestBodyTooLarge", "4194304"),
]


@pytest.mark.parametrize(("body", "status", "code", "said"), BODIES)
async def test_bodies_that_are_no_entity(
    tables: Harness, body: bytes | dict[str, Any], status: int, code: str, said: str
) -> None:
    await create(tables)
    octets = body if isinstance(body, bytes) else json.dumps(body).encode()
    inserted = await tables("POST", "/things", {**JSON, **NO_CONTENT}, octets)
    assert (inserted.status, inserted.code) == (status, code)
    assert said in message(inserted)
    assert inserted.headers["content-type"].startswith("application/json;odata=minimalmetadata")
    assert rows(await query(tables)) == []


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
@pytest.mark.parametrize(
    ("properties", "code"),
    [
        ({f"k{n}": n for n in range(253)}, "TooManyProperties"),
        ({"a-b": 1}, "PropertyNameInvalid"),
        ({"x": {}}, "InvalidInput"),
    ],
)
async def test_changes_that_make_no_entity(
    tables: Harness, method: str, properties: dict[str, Any], code: str
) -> None:
    await create(tables)
    before = await insert(tables, n=1)
    answer = await change(tables, method, "*", **properties)
    assert (answer.status, answer.code) == (400, code)
    assert (await get(tables))["odata.etag"] == before.headers["etag"]


async def test_merging_cannot_make_an_entity_too_large(tables: Harness) -> None:
    await create(tables)
    many: dict[str, Any] = {f"b{n}": n for n in range(52)}
    await insert(tables, "r", "p", **{f"a{n}": n for n in range(200)})
    assert (await change(tables, "PATCH", "*", "r", **many, one_more=1)).code == "TooManyProperties"
    assert (await change(tables, "PATCH", "*", "r", **many)).status == 204
    await insert(tables, "large", "p", **{f"a{n}": "v" * 32000 for n in range(15)})
    assert (await change(tables, "PATCH", "*", "large", b="v" * 32000)).status == 204
    assert (await change(tables, "PATCH", "*", "large", c="v" * 32000)).code == "EntityTooLarge"
    assert "c" not in await get(tables, "large")


async def test_a_path_with_a_key_that_cannot_be(tables: Harness) -> None:
    await create(tables)
    put = await tables("PUT", "/things(PartitionKey='p',RowKey='a%2Fb')", JSON, b"{}")
    assert (put.status, put.code) == (400, "OutOfRangeInput")
    got = await tables("GET", "/things(PartitionKey='p%00',RowKey='r')", JSON)
    assert (got.status, got.code) == (404, "ResourceNotFound")
