"""Who may do what with tables: keys, tokens for accounts, and tokens for some entities of a table."""

import base64
from datetime import UTC, datetime
from typing import Any

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import (
    AccountSasPermissions,
    ResourceTypes,
    TableSasPermissions,
    generate_account_sas,
    generate_table_sas,
)

from tests.services.harness import ACCOUNT, OTHER, Answer, Harness
from tests.services.table.requests import (
    JSON,
    NO_CONTENT,
    answers,
    create,
    entity,
    insert,
    inserting,
    part,
    query,
    rows,
    send,
)

KEY = AzureNamedKeyCredential(ACCOUNT.name, base64.b64encode(ACCOUNT.keys[0]).decode())
EXPIRY = datetime(2027, 1, 1, tzinfo=UTC)


def table_token(permission: str, table: str = "things", **ends: str) -> str:
    return generate_table_sas(
        KEY, table, permission=TableSasPermissions.from_string(permission), expiry=EXPIRY, **ends
    )


def account_token(permission: str, types: str) -> str:
    return generate_account_sas(
        KEY, ResourceTypes.from_string(types), AccountSasPermissions.from_string(permission), EXPIRY
    )


async def with_token(
    tables: Harness, token: str, method: str, target: str, body: bytes = b"", **headers: str
) -> Answer:
    mark = "&" if "?" in target else "?"
    return await tables(method, f"{target}{mark}{token}", {**JSON, **headers}, body, sign=False)


ENTITY = b'{"PartitionKey":"p","RowKey":"new"}'
REQUESTS: dict[str, tuple[str, str, bytes, dict[str, str]]] = {
    "query": ("GET", "/things()", b"", {}),
    "get": ("GET", entity(), b"", {}),
    "insert": ("POST", "/things", ENTITY, NO_CONTENT),
    "update": ("PUT", entity(), b"{}", {"If-Match": "*"}),
    "merge": ("PATCH", entity(), b"{}", {"If-Match": "*"}),
    "upsert": ("PUT", entity(), b"{}", {}),
    "upsert by merging": ("MERGE", entity(), b"{}", {}),
    "delete": ("DELETE", entity(), b"", {"If-Match": "*"}),
    "query tables": ("GET", "/Tables", b"", {}),
    "get table": ("GET", "/Tables('things')", b"", {}),
    "create table": ("POST", "/Tables", b'{"TableName":"more"}', {}),
    "delete table": ("DELETE", "/Tables('things')", b"", {}),
    "get properties": ("GET", "/?restype=service&comp=properties", b"", {}),
    "get acl": ("GET", "/things?comp=acl", b"", {}),
}


async def outcome(tables: Harness, token: str, what: str) -> str:
    method, target, body, headers = REQUESTS[what]
    answer = await with_token(tables, token, method, target, body, **headers)
    return "" if answer.status < 300 else answer.code


OF_TABLES = {"query tables", "get table", "create table", "delete table", "get properties", "get acl"}


@pytest.mark.parametrize(
    ("permission", "allowed"),
    [
        ("r", {"query", "get"}),
        ("a", {"insert"}),
        ("u", {"update", "merge"}),
        ("d", {"delete"}),
        ("au", {"insert", "update", "merge", "upsert", "upsert by merging"}),
        ("raud", set(REQUESTS) - OF_TABLES),
    ],
)
async def test_what_a_table_token_allows(tables: Harness, permission: str, allowed: set[str]) -> None:
    for what in REQUESTS:
        await reset(tables)
        code = await outcome(tables, table_token(permission), what)
        if what in allowed:
            assert code == "", what
        elif what in OF_TABLES:
            assert code in {"AuthenticationFailed", "AuthorizationFailure"}, what
        else:
            assert code == "AuthorizationPermissionMismatch", what


async def reset(tables: Harness) -> None:
    await tables("DELETE", "/Tables('things')")
    await tables("DELETE", "/Tables('more')")
    await create(tables)
    await insert(tables)


@pytest.mark.parametrize(
    ("permission", "types", "allowed"),
    [
        ("r", "o", {"query", "get"}),
        ("a", "o", {"insert"}),
        ("u", "o", {"update", "merge"}),
        ("au", "o", {"insert", "update", "merge", "upsert", "upsert by merging"}),
        ("d", "o", {"delete"}),
        ("d", "c", {"delete table"}),
        ("l", "c", {"query tables", "get table"}),
        ("c", "c", {"create table"}),
        ("w", "c", {"create table"}),
        ("r", "s", {"get properties"}),
    ],
)
async def test_what_an_account_token_allows(
    tables: Harness, permission: str, types: str, allowed: set[str]
) -> None:
    for what in REQUESTS:
        await reset(tables)
        code = await outcome(tables, account_token(permission, types), what)
        assert (code == "") is (what in allowed), (what, code)


async def test_a_token_is_for_its_own_table(tables: Harness) -> None:
    await create(tables, "others")
    await create(tables)
    foreign = await with_token(tables, table_token("r", "others"), "GET", "/things()")
    assert (foreign.status, foreign.code) == (403, "AuthenticationFailed")
    upper = await with_token(tables, table_token("r", "THINGS"), "GET", "/Things()")
    assert upper.status == 200


# Ranges of keys

NAMES = ("a1", "a2", "b1", "b2", "c1")

# The ends, and which of the names are inside.
RANGES: list[tuple[dict[str, str], list[str]]] = [
    ({"start_pk": "b"}, ["b1", "b2", "c1"]),
    ({"start_pk": "b", "start_rk": "2"}, ["b2", "c1"]),
    ({"end_pk": "b"}, ["a1", "a2", "b1", "b2"]),
    ({"end_pk": "b", "end_rk": "1"}, ["a1", "a2", "b1"]),
    ({"start_pk": "b", "start_rk": "1", "end_pk": "b", "end_rk": "1"}, ["b1"]),
]


def keys(name: str) -> dict[str, str]:
    return {"row_key": name[1], "partition_key": name[0]}


async def five_entities(tables: Harness, inside: list[str]) -> list[str]:
    """Insert an entity for each name. Returns the names that are not inside."""
    await create(tables)
    for name in NAMES:
        await insert(tables, **keys(name), n=1)
    return [name for name in NAMES if name not in inside]


@pytest.mark.parametrize(("ends", "inside"), RANGES)
async def test_queries_show_what_is_inside_only(
    tables: Harness, ends: dict[str, str], inside: list[str]
) -> None:
    outside = await five_entities(tables, inside)
    token = table_token("r", **ends)
    answer = await with_token(tables, token, "GET", "/things()")
    assert rows(answer) == [name[1] for name in inside]
    answer = await with_token(tables, token, "GET", "/things()?$filter=n%20eq%201&$top=1000")
    assert rows(answer) == [name[1] for name in inside]
    for name in inside:
        assert (await with_token(tables, token, "GET", entity(**keys(name)))).status == 200
    for name in outside:
        assert (await with_token(tables, token, "GET", entity(**keys(name)))).code == "ResourceNotFound"


@pytest.mark.parametrize(("ends", "inside"), RANGES)
async def test_changes_outside_are_refused(tables: Harness, ends: dict[str, str], inside: list[str]) -> None:
    outside = await five_entities(tables, inside)
    token = table_token("raud", **ends)
    for name in inside:
        assert await change(tables, token, name) == (204, "")
    for name in outside:
        assert await change(tables, token, name) == (403, "AuthorizationFailure")
    assert len(rows(await query(tables, "n eq 1"))) == len(outside)


async def change(tables: Harness, token: str, name: str) -> tuple[int, str]:
    answer = await with_token(tables, token, "PUT", entity(**keys(name)), b'{"n":2}')
    return answer.status, answer.code


async def test_an_insertion_outside_is_refused(tables: Harness) -> None:
    await create(tables)
    token = table_token("a", start_pk="test", start_rk="test1", end_pk="test", end_rk="test1")
    refused = await with_token(tables, token, "POST", "/things", ENTITY)
    # As the service was seen to answer.
    assert (refused.status, refused.code) == (403, "AuthorizationFailure")
    assert rows(await query(tables)) == []


# Batches


async def sent(tables: Harness, token: str, *parts: str) -> Any:
    return await send(tables, *parts, query=f"?{token}", sign=False)


async def test_a_batch_needs_what_its_changes_need(tables: Harness) -> None:
    await create(tables)
    await insert(tables)
    mixed = (inserting("a"), part("DELETE", entity(), None, {"If-Match": "*"}))
    for token in (table_token("a"), account_token("a", "o"), account_token("ad", "c")):
        answer = await sent(tables, token, *mixed)
        assert answer.status == 403
        assert answer.code in {"AuthorizationPermissionMismatch", "AuthorizationResourceTypeMismatch"}
    assert rows(await query(tables)) == ["r"]
    assert len(answers(await sent(tables, table_token("ad"), *mixed))) == 2
    await insert(tables, "r")
    again = (inserting("b"), part("DELETE", entity(), None, {"If-Match": "*"}))
    assert len(answers(await sent(tables, account_token("ad", "o"), *again))) == 2


async def test_a_batch_stays_in_its_table_and_range(tables: Harness) -> None:
    await create(tables)
    await create(tables, "others")
    elsewhere = await sent(tables, table_token("raud", "others"), inserting("a"))
    assert (elsewhere.status, elsewhere.code) == (403, "AuthorizationFailure")
    shared = table_token("a", start_pk="p", start_rk="b", end_pk="p", end_rk="c")
    outside = await sent(tables, shared, inserting("b"), inserting("d"))
    assert (outside.status, outside.code) == (403, "AuthorizationFailure")
    assert rows(await query(tables)) == []
    assert len(answers(await sent(tables, shared, inserting("b"), inserting("c")))) == 2


# Keys and no credentials


async def test_the_other_account_sees_nothing(tables: Harness) -> None:
    await create(tables)
    answer = await tables("GET", "/things()", JSON, account=OTHER)
    assert answer.code == "TableNotFound"


@pytest.mark.parametrize(
    ("version", "status", "code"),
    [("2020-12-06", 401, "NoAuthenticationInformation"), ("2019-02-02", 404, "ResourceNotFound")],
)
async def test_no_access_without_credentials(tables: Harness, version: str, status: int, code: str) -> None:
    await create(tables)
    answer = await tables("GET", "/things()", {"x-ms-version": version}, sign=False)
    assert (answer.status, answer.code) == (status, code)
    assert answer.headers["content-type"].startswith("application/json")


async def test_a_wrong_signature_returns_the_string_to_sign(tables: Harness) -> None:
    authorization = {
        "Authorization": f"SharedKey {ACCOUNT.name}:d3Jvbmc=",
        "x-ms-date": "Mon, 21 Sep 2026 14:13:20 GMT",
    }
    answer = await tables("GET", "/Tables", authorization, sign=False)
    assert (answer.status, answer.code) == (403, "AuthenticationFailed")
    assert (
        b"Server used following string to sign: 'GET\\n\\n\\nMon, 21 Sep 2026 14:13:20 GMT\\n/acme/acme/Tables'"
        in answer.body
    )
