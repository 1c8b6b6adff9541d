"""Entity group transactions through the service: one answer for each change, or one for the change that failed."""

import json
from typing import Any
from urllib.parse import quote

import pytest

from kyanite.wire import http_date, shared_key
from kyanite.wire.http import Request
from kyanite.wire.shared_key import SharedKey, Signable
from kyanite.wire.uri import decode_query, decode_target
from tests.services.harness import ACCOUNT, BytesBody, Harness
from tests.services.table.requests import (
    BATCH_TYPE,
    JSON,
    answers,
    batch_of,
    change_set,
    create,
    data,
    entity,
    get,
    insert,
    inserting,
    message,
    part,
    query,
    rows,
    send,
)

ROOT = "http://localhost:10000/acme/"
OLD = "W/\"datetime'2012-06-15T22%3A51%3A44.9662825Z'\""
FORCED = {"If-Match": "*"}


def failure(answer: Any) -> tuple[int, str, str]:
    """Status, code and message of the one part of a failed batch."""
    ((status, headers, body),) = answers(answer)
    assert headers["content-type"] == "application/json;odata=minimalmetadata;streaming=true;charset=utf-8"
    error = json.loads(body)["odata.error"]
    text, _, rest = error["message"]["value"].partition("\nRequestId:")
    assert f"{answer.headers['x-ms-request-id']}\nTime:" in rest
    return status, error["code"], text


async def test_all_kinds_of_changes_in_one(tables: Harness) -> None:
    await create(tables)
    for row in ("updated", "merged", "deleted", "replaced", "joined"):
        await insert(tables, row, m=0)
    answer = await send(
        tables,
        inserting("new", n=1),
        part("PUT", entity("updated"), {"n": 1}, FORCED, 1),
        part("PATCH", entity("merged"), {"n": 1}, FORCED, 2),
        part("DELETE", entity("deleted"), None, FORCED, 3),
        part("PUT", entity("replaced"), {"n": 1}, None, 4),
        part("MERGE", entity("joined"), {"n": 1}, None, 5),
        part("POST", entity("tunnelled"), {"n": 1}, {"X-HTTP-Method": "MERGE"}, 6),
        part(
            "POST",
            "/things",
            {"PartitionKey": "p", "RowKey": "echoed"},
            {"Accept": "application/json;odata=nometadata"},
            7,
        ),
    )
    parts = answers(answer)
    assert [status for status, _, _ in parts] == [204, 204, 204, 204, 204, 204, 204, 201]
    assert [headers["content-id"] for _, headers, _ in parts] == ["0", "1", "2", "3", "4", "5", "6", "7"]
    etags = [headers.get("etag") for _, headers, _ in parts]
    assert etags[3] is None
    assert len({etag for etag in etags if etag}) == 1
    new = parts[0][1]
    assert new["location"] == new["dataserviceid"] == f"{ROOT}things(PartitionKey='p',RowKey='new')"
    assert new["preference-applied"] == "return-no-content"
    assert list(json.loads(parts[7][2])) == ["PartitionKey", "RowKey", "Timestamp"]
    found = {each["RowKey"]: (each.get("m"), each.get("n")) for each in data(await query(tables))["value"]}
    assert found == {
        "new": (None, 1),
        "updated": (None, 1),
        "merged": (0, 1),
        "replaced": (None, 1),
        "joined": (0, 1),
        "tunnelled": (None, 1),
        "echoed": (None, None),
    }
    assert (await get(tables, "merged"))["odata.etag"] == etags[2]


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        (inserting("there"), (409, "EntityAlreadyExists", "The specified entity already exists.")),
        (
            part("PUT", entity("missing"), {}, FORCED),
            (404, "ResourceNotFound", "The specified resource does not exist."),
        ),
        (
            part("DELETE", entity("missing"), None, FORCED),
            (404, "ResourceNotFound", "The specified resource does not exist."),
        ),
        (
            part("PATCH", entity("there"), {"n": 9}, {"If-Match": OLD}),
            (
                412,
                "UpdateConditionNotSatisfied",
                "The update condition specified in the request was not satisfied.",
            ),
        ),
        (
            inserting("b", "q"),
            (
                400,
                "CommandsInBatchActOnDifferentPartitions",
                "All commands in a batch must operate on same entity group.",
            ),
        ),
        (
            inserting("b", table="others"),
            (
                400,
                "CommandsInBatchActOnDifferentPartitions",
                "All commands in a batch must operate on same entity group.",
            ),
        ),
        (
            part("MERGE", entity("a"), {}, FORCED),
            (
                400,
                "InvalidDuplicateRow",
                "The batch request contains multiple changes with same row key. An entity can appear only once in a "
                "batch request.",
            ),
        ),
        (
            part("POST", "/things", "{"),
            (400, "InvalidInput", "The body is not valid JSON: Input data was truncated."),
        ),
        (
            part("POST", "/things", {"PartitionKey": "p"}),
            (
                400,
                "PropertiesNeedValue",
                "The values are not specified for all properties in the entity.",
            ),
        ),
        (
            part("PUT", entity("b"), {"a-b": 1}),
            (400, "PropertyNameInvalid", "The property name is invalid: 'a-b'."),
        ),
        (
            part("PUT", entity("b"), {}, {"If-Match": "nonsense"}),
            (400, "InvalidInput", "The If-Match value is no ETag of an entity: 'nonsense'."),
        ),
        (
            part("DELETE", entity("there")),
            (400, "MissingRequiredHeader", "A required HTTP header was not specified.\nHeaderName:If-Match"),
        ),
        (
            part("GET", entity("there")),
            (405, "MethodNotAllowed", "The requested method is not allowed on the specified resource."),
        ),
        (
            part("POST", "/Tables", {"TableName": "more"}),
            (405, "MethodNotAllowed", "The requested method is not allowed on the specified resource."),
        ),
        (
            part("PUT", "/ab(PartitionKey='p',RowKey='r')", {}),
            (
                400,
                "OutOfRangeInput",
                "The specified resource name length is not within the permissible limits.",
            ),
        ),
        (
            part("POST", "/things", "<entry/>", {"Content-Type": "application/atom+xml"}),
            (415, "AtomFormatNotSupported", "Atom format is not supported."),
        ),
    ],
)
@pytest.mark.parametrize("at", [1, 2])
async def test_one_bad_change_undoes_all_and_is_named(
    tables: Harness, bad: str, expected: tuple[int, str, str], at: int
) -> None:
    await create(tables)
    before = await insert(tables, "there", m=0)
    good = [inserting("a"), inserting("c"), inserting("d")]
    answer = await send(tables, *good[:at], bad, *good[at:])
    status, code, text = expected
    assert failure(answer) == (status, code, f"{at}:{text}")
    assert rows(await query(tables)) == ["there"]
    assert (await get(tables, "there"))["odata.etag"] == before.headers["etag"]


async def test_a_table_that_is_missing_fails_the_first_change(tables: Harness) -> None:
    assert failure(await send(tables, inserting("a"))) == (
        404,
        "TableNotFound",
        "0:The table specified does not exist.",
    )


async def test_a_hundred_changes_and_no_more(tables: Harness) -> None:
    await create(tables)
    assert len(answers(await send(tables, *(inserting(str(n)) for n in range(100))))) == 100
    too_many = await send(tables, *(inserting(f"x{n}") for n in range(101)))
    assert failure(too_many) == (
        400,
        "InvalidInput",
        "99:The batch request operation exceeds the maximum 100 changes per change set.",
    )
    assert len(rows(await query(tables))) == 100


@pytest.mark.parametrize(
    ("headers", "body", "status", "code", "said"),
    [
        ({"Content-Type": "application/json"}, b"{}", 400, "InvalidInput", "must be multipart/mixed"),
        (BATCH_TYPE, b"", 400, "InvalidInput", "does not begin with its boundary"),
        (BATCH_TYPE, b"--b\r\n", 400, "InvalidInput", "has no part"),
        (BATCH_TYPE, b"--b--\r\n", 400, "InvalidInput", "has no part"),
        (BATCH_TYPE, batch_of(change_set([])), 400, "InvalidInput", "has no part"),
        (
            BATCH_TYPE,
            batch_of("Content-Type: text/plain\r\n\r\nx\r\n"),
            400,
            "InvalidInput",
            "application/http",
        ),
        (
            BATCH_TYPE,
            batch_of(change_set([inserting("a")]), change_set([inserting("b")])),
            400,
            "InvalidInput",
            "one change set",
        ),
        (
            BATCH_TYPE,
            batch_of(part("GET", entity("a")), change_set([inserting("b")])),
            400,
            "InvalidInput",
            "one change set",
        ),
        (BATCH_TYPE, batch_of(inserting("a")), 400, "InvalidInput", "a query only"),
        (
            BATCH_TYPE,
            batch_of(change_set(["Content-Type: application/http\r\n\r\noops\r\n"])),
            400,
            "InvalidInput",
            "Part 0 does not begin with a request line",
        ),
        (BATCH_TYPE, b"--b\r\n" + b"x" * (4 * 1024 * 1024), 413, "RequestBodyTooLarge", "MaxLimit:4194304"),
    ],
)
async def test_batches_that_cannot_be_read(
    tables: Harness, headers: dict[str, str], body: bytes, status: int, code: str, said: str
) -> None:
    await create(tables)
    answer = await tables("POST", "/$batch", headers, body)
    assert (answer.status, answer.code) == (status, code)
    assert said in message(answer)
    assert rows(await query(tables)) == []


async def test_a_lone_query_stands_in_the_batch_itself(tables: Harness) -> None:
    await create(tables)
    await insert(tables, "r", n=1)
    for target, expected in ((entity(), 1), ("/things()?$filter=n%20eq%201&$select=n", [{"n": 1}])):
        headers = {"Accept": "application/json;odata=nometadata"}
        answer = await tables("POST", "/$batch", BATCH_TYPE, batch_of(part("GET", target, None, headers)))
        ((status, part_headers, body),) = answers(answer)
        assert status == 200
        assert part_headers["content-type"].startswith("application/json;odata=nometadata")
        found = json.loads(body)
        assert found.get("n", found.get("value")) == expected
    missing = await tables("POST", "/$batch", BATCH_TYPE, batch_of(part("GET", entity("no"))))
    assert failure(missing) == (404, "ResourceNotFound", "0:The specified resource does not exist.")


async def test_paths_may_stand_for_urls(tables: Harness) -> None:
    await create(tables)
    by_path = inserting("a").replace("http://localhost:10000", "")
    elsewhere = inserting("b").replace("http://localhost:10000", "https://some.other.name")
    assert [status for status, _, _ in answers(await send(tables, by_path, elsewhere))] == [204, 204]
    foreign = failure(await send(tables, inserting("c").replace("/acme/", "/other/")))
    assert foreign[:2] == (400, "InvalidUri")
    assert rows(await query(tables)) == ["a", "b"]


async def test_large_batches_are_read(tables: Harness) -> None:
    await create(tables)
    answer = await send(tables, *(inserting(str(n), text="x" * 30_000) for n in range(99)))
    assert len(answers(answer)) == 99


async def test_names_of_tables_in_one_batch_compare_without_case(tables: Harness) -> None:
    await create(tables)
    answer = await send(tables, inserting("a", table="Things"), inserting("b", table="THINGS"))
    assert [headers["location"] for _, headers, _ in answers(answer)] == [
        f"{ROOT}things(PartitionKey='p',RowKey='{row}')" for row in "ab"
    ]


async def test_the_secondary_takes_no_changes(tables: Harness) -> None:
    await create(tables)
    await insert(tables, "r", n=1)
    host = {"Host": "acme-secondary.table.example.org"}
    body = batch_of(change_set([inserting("a")])).replace(b"/acme/", b"/")
    refused = await on_secondary(tables, "POST", "/$batch", {**BATCH_TYPE, **host}, body)
    assert refused == (403, "InsufficientAccountPermissions")
    body = batch_of(part("GET", entity())).replace(b"/acme/", b"/")
    assert await on_secondary(tables, "POST", "/$batch", {**BATCH_TYPE, **host}, body) == (202, "")
    assert await on_secondary(tables, "GET", "/things()", {**JSON, **host}) == (200, "")
    put = await on_secondary(tables, "PUT", entity(), {**JSON, **host}, b"{}")
    assert put == (403, "InsufficientAccountPermissions")


async def on_secondary(
    tables: Harness, method: str, target: str, headers: dict[str, str], body: bytes = b""
) -> tuple[int, str]:
    """A request in host style, which the harness does not make by itself."""
    lower = {name.lower(): value for name, value in headers.items()}
    lower |= {"x-ms-date": http_date.encode(tables.clock.now), "x-ms-version": "2020-12-06"}
    signable = Signable(
        method, decode_target(lower["host"], target, "table"), decode_query(""), lower, "2020-12-06"
    )
    text = shared_key.string_to_sign(signable, lite=False)
    signed = SharedKey(False, ACCOUNT.name, shared_key.sign(ACCOUNT.keys[0], text))
    lower["authorization"] = shared_key.encode_authorization(signed)
    request = Request(method, target, "", lower, (), BytesBody(body), "127.0.0.1", False, 10000)
    response = await tables.service(request)
    return response.status, dict(response.headers).get("x-ms-error-code", "")


async def test_the_path_of_a_batch_may_end_in_a_slash(tables: Harness) -> None:
    await create(tables)
    body = batch_of(change_set([inserting("a")]))
    answer = await tables("POST", "/$batch/", BATCH_TYPE, body)
    assert [status for status, _, _ in answers(answer)] == [204]
    assert (await tables("POST", "/$batch/more", BATCH_TYPE, body)).code == "InvalidResourceName"


async def test_a_filter_in_a_batch_may_be_no_longer_than_in_a_url(tables: Harness) -> None:
    await create(tables)
    text = quote(" or ".join(["PartitionKey eq 'p'"] * 4000))
    body = batch_of(part("GET", f"/things()?$filter={text}"))
    ((status, _, content),) = answers(await tables("POST", "/$batch", BATCH_TYPE, body))
    assert status == 400
    assert json.loads(content)["odata.error"]["code"] == "InvalidInput"
