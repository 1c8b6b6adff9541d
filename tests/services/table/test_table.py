"""Tables through the service: life cycle, names, listings, policies, properties, and what is refused."""

import json
import re
from pathlib import Path

import pytest

from kyanite.rules.refusals import Reason
from kyanite.services.rest.context import Resource
from kyanite.services.table import errors
from kyanite.wire import batch, edm, odata
from tests.services.harness import VERSION, Harness
from tests.services.table.requests import (
    BATCH_TYPE,
    JSON,
    NO_CONTENT,
    create,
    data,
    insert,
    message,
    query,
    rows,
)

ROOT = "http://localhost:10000/acme/"


async def test_a_table_lives_and_dies(tables: Harness) -> None:
    created = await tables("POST", "/Tables", JSON, b'{"TableName":"Things"}')
    assert created.status == 201
    assert data(created) == {"odata.metadata": f"{ROOT}$metadata#Tables/@Element", "TableName": "Things"}
    assert created.headers["location"] == f"{ROOT}Tables('Things')"
    assert (
        created.headers["content-type"]
        == "application/json;odata=minimalmetadata;streaming=true;charset=utf-8"
    )
    got = await tables("GET", "/Tables('things')", JSON)
    assert data(got)["TableName"] == "Things"
    assert (await tables("DELETE", "/Tables('THINGS')")).status == 204
    gone = await tables("GET", "/Tables('Things')", JSON)
    assert (gone.status, gone.code) == (404, "TableNotFound")
    assert (await tables("DELETE", "/Tables('Things')")).code == "TableNotFound"
    await create(tables, "things")


async def test_create_twice_is_a_conflict(tables: Harness) -> None:
    await create(tables)
    again = await tables("POST", "/Tables", JSON, b'{"TableName":"THINGS"}')
    assert (again.status, again.code) == (409, "TableAlreadyExists")
    assert message(again) == "The table specified already exists."


async def test_what_was_in_a_deleted_table_stays_gone(tables: Harness) -> None:
    await create(tables)
    await insert(tables, "r")
    await tables("DELETE", "/Tables('things')")
    assert (await query(tables)).code == "TableNotFound"
    await create(tables)
    assert rows(await query(tables)) == []


async def test_create_says_nothing_if_nothing_is_preferred(tables: Harness) -> None:
    created = await tables("POST", "/Tables", {**JSON, **NO_CONTENT}, b'{"TableName":"things"}')
    assert (created.status, created.body) == (204, b"")
    assert created.headers["preference-applied"] == "return-no-content"
    echoed = await tables("POST", "/Tables", {**JSON, "Prefer": "return-content"}, b'{"TableName":"others"}')
    assert (echoed.status, echoed.headers["preference-applied"]) == (201, "return-content")


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("application/json;odata=nometadata", {"TableName": "Things"}),
        (
            "application/json;odata=fullmetadata",
            {
                "odata.metadata": f"{ROOT}$metadata#Tables/@Element",
                "odata.type": "acme.Tables",
                "odata.id": f"{ROOT}Tables('Things')",
                "odata.editLink": "Tables('Things')",
                "TableName": "Things",
            },
        ),
    ],
)
async def test_levels_of_metadata(tables: Harness, accept: str, expected: dict[str, str]) -> None:
    headers = {**JSON, "Accept": accept}
    assert data(await tables("POST", "/Tables", headers, b'{"TableName":"Things"}')) == expected
    assert data(await tables("GET", "/Tables('Things')", headers)) == expected
    listed = data(await tables("GET", "/Tables", headers))
    item = {name: value for name, value in expected.items() if name != "odata.metadata"}
    assert listed["value"] == [item]
    assert ("odata.metadata" in listed) is ("odata.metadata" in expected)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", ["aaa", "Bbb", "bbc", "ccc"]),
        ("$filter=TableName%20eq%20'BBB'", ["Bbb"]),
        ("$filter=TableName%20ge%20'B'%20and%20TableName%20lt%20'C'", ["Bbb", "bbc"]),
        ("$filter=not%20(TableName%20eq%20'aaa')%20and%20TableName%20ne%20'CCC'", ["Bbb", "bbc"]),
        ("$filter=TableName%20eq%20'x'%20or%20TableName%20eq%20'aaa'", ["aaa"]),
        ("$filter=", ["aaa", "Bbb", "bbc", "ccc"]),
        ("$filter=Other%20eq%20'x'", []),
        ("$filter=Timestamp%20ge%20datetime'2020-01-01T00:00:00Z'", []),
        ("$filter=not%20(Timestamp%20eq%20datetime'2020-01-01T00:00:00Z')", ["aaa", "Bbb", "bbc", "ccc"]),
        ("$top=2", ["aaa", "Bbb"]),
    ],
)
async def test_tables_are_queried(tables: Harness, options: str, expected: list[str]) -> None:
    for name in ("ccc", "Bbb", "aaa", "bbc"):
        await create(tables, name)
    found = await tables("GET", f"/Tables?{options}", JSON)
    assert found.status == 200
    assert [each["TableName"] for each in data(found)["value"]] == expected


async def test_a_query_of_tables_goes_on_where_it_ended(tables: Harness) -> None:
    for name in ("ccc", "Bbb", "aaa"):
        await create(tables, name)
    first = await tables("GET", "/Tables()?$top=2", JSON)
    token = first.headers["x-ms-continuation-nexttablename"]
    second = await tables("GET", f"/Tables()?$top=2&NextTableName={token}", JSON)
    assert [each["TableName"] for each in data(second)["value"]] == ["ccc"]
    assert "x-ms-continuation-nexttablename" not in second.headers


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("ab", "OutOfRangeInput"),
        ("a" * 64, "OutOfRangeInput"),
        ("1abc", "InvalidResourceName"),
        ("a-b", "InvalidResourceName"),
        ("tables", "InvalidResourceName"),
    ],
)
async def test_names_that_no_table_can_have(tables: Harness, name: str, code: str) -> None:
    created = await tables("POST", "/Tables", JSON, json.dumps({"TableName": name}).encode())
    assert (created.status, created.code) == (400, code)
    if name != "tables":
        assert (await tables("GET", f"/{name}()", JSON)).code == code
    assert (await tables("GET", f"/Tables('{name}')", JSON)).code == code


@pytest.mark.parametrize(
    ("headers", "body", "status", "code"),
    [
        ({}, b"", 400, "InvalidInput"),
        ({}, b"{", 400, "InvalidInput"),
        ({}, b"[]", 400, "InvalidInput"),
        ({}, b'{"Name":"things"}', 400, "InvalidInput"),
        ({}, b'{"TableName":null}', 400, "InvalidInput"),
        ({}, b'{"TableName":"' + b"x" * 70_000 + b'"}', 413, "RequestBodyTooLarge"),
        ({"Content-Type": "application/atom+xml"}, b"<entry/>", 415, "AtomFormatNotSupported"),
        ({"Content-Type": "text/plain"}, b'{"TableName":"things"}', 415, "MediaTypeNotSupported"),
        ({"Accept": "application/atom+xml"}, b'{"TableName":"things"}', 415, "AtomFormatNotSupported"),
        ({"Accept": "image/png"}, b'{"TableName":"things"}', 415, "MediaTypeNotSupported"),
        (
            {"Accept": "application/json;odata=verbose"},
            b'{"TableName":"things"}',
            415,
            "JsonFormatNotSupported",
        ),
    ],
)
async def test_bodies_that_create_no_table(
    tables: Harness, headers: dict[str, str], body: bytes, status: int, code: str
) -> None:
    answer = await tables("POST", "/Tables", {**JSON, **headers}, body)
    assert (answer.status, answer.code) == (status, code)
    assert data(await tables("GET", "/Tables", JSON))["value"] == []


async def test_a_slash_at_the_end_changes_nothing(tables: Harness) -> None:
    await create(tables)
    await insert(tables, "r")
    assert rows(await tables("GET", "/things/", JSON)) == ["r"]
    assert (await tables("GET", "/Tables/", JSON)).status == 200


@pytest.mark.parametrize(
    ("method", "target", "headers", "missing", "there"),
    [
        ("POST", "/things/Tables", {}, (404, "TableNotFound"), (400, "PropertiesNeedValue")),
        ("DELETE", "/things/Tables('things')", {}, (404, "TableNotFound"), (400, "InvalidInput")),
        ("DELETE", "/things", {}, (404, "TableNotFound"), (400, "InvalidInput")),
        (
            "POST",
            "/things/$batch",
            BATCH_TYPE,
            (415, "MediaTypeNotSupported"),
            (415, "MediaTypeNotSupported"),
        ),
    ],
)
async def test_an_address_of_the_service_that_ends_in_a_table(
    tables: Harness,
    method: str,
    target: str,
    headers: dict[str, str],
    missing: tuple[int, str],
    there: tuple[int, str],
) -> None:
    body = b'{"TableName":"things"}'
    before = await tables(method, target, {**JSON, **headers}, body)
    assert (before.status, before.code) == missing
    await create(tables)
    after = await tables(method, target, {**JSON, **headers}, body)
    assert (after.status, after.code) == there
    assert data(await tables("GET", "/Tables", JSON))["value"] == [{"TableName": "things"}]


@pytest.mark.parametrize("target", ["/Tables?$top=0", "/things()?$select=&$top=0"])
async def test_a_page_of_nothing_is_the_last_one(tables: Harness, target: str) -> None:
    await create(tables)
    await insert(tables, "r")
    answer = await tables("GET", target, JSON)
    assert (answer.status, data(answer)["value"]) == (200, [])
    assert not any(name.startswith("x-ms-continuation") for name in answer.headers)


async def test_an_error_tells_the_range_that_is_allowed(tables: Harness) -> None:
    returned = message(await tables("GET", "/Tables?$top=1001", JSON))
    assert "QueryParameterName:$top" in returned
    assert "MinimumAllowed:0\nMaximumAllowed:1000" in returned


# Policies and properties are documents like those of the other services.

POLICIES = (
    b"<SignedIdentifiers><SignedIdentifier><Id>readers</Id><AccessPolicy><Start>2026-01-01</Start>"
    b"<Expiry>2027-01-01T00:00:00Z</Expiry><Permission>raud</Permission></AccessPolicy></SignedIdentifier>"
    b"</SignedIdentifiers>"
)


async def test_policies_come_back(tables: Harness) -> None:
    await create(tables)
    assert (await tables("PUT", "/things?comp=acl", {}, POLICIES)).status == 204
    got = await tables("GET", "/Things?comp=acl")
    assert got.headers["content-type"] == "application/xml"
    assert (got.xml.findtext(".//Id"), got.xml.findtext(".//Permission")) == ("readers", "raud")
    assert (await tables("HEAD", "/things?comp=acl")).status == 200
    await tables("PUT", "/things?comp=acl")
    assert len((await tables("GET", "/things?comp=acl")).xml) == 0


async def test_errors_about_policies_and_properties_are_xml(tables: Harness) -> None:
    await create(tables)
    for method, target, body, code in (
        ("GET", "/missing?comp=acl", b"", "TableNotFound"),
        ("PUT", "/things?comp=acl", b"<oops", "InvalidXmlDocument"),
        ("PUT", "/things?comp=acl", POLICIES.replace(b"raud", b"raup"), "InvalidXmlNodeValue"),
        ("PUT", "/?restype=service&comp=properties", b"<oops", "InvalidXmlDocument"),
    ):
        answer = await tables(method, target, {}, body)
        assert (answer.headers["content-type"], answer.code) == ("application/xml", code)
        assert answer.xml.findtext("Code") == code


async def test_an_error_is_xml_for_those_who_want_nothing_else(tables: Harness) -> None:
    answer = await tables("GET", "/missing()", {"Accept": "application/atom+xml,application/xml"})
    assert (answer.status, answer.headers["content-type"]) == (415, "application/xml")
    space = "{http://schemas.microsoft.com/ado/2007/08/dataservices/metadata}"
    assert answer.xml.tag == f"{space}error"
    assert answer.xml.findtext(f"{space}code") == "AtomFormatNotSupported"


async def test_properties_and_stats(tables: Harness) -> None:
    document = (
        b"<StorageServiceProperties><HourMetrics><Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy>"
        b"<Enabled>true</Enabled><Days>5</Days></RetentionPolicy></HourMetrics></StorageServiceProperties>"
    )
    assert (await tables("PUT", "/?restype=service&comp=properties", {}, document)).status == 202
    got = await tables("GET", "/?restype=service&comp=properties")
    assert got.xml.findtext("HourMetrics/RetentionPolicy/Days") == "5"
    assert (await tables("GET", "/?restype=service&comp=stats")).code == "InvalidQueryParameterValue"


async def test_a_preflight_is_answered_by_the_rules_of_the_service(tables: Harness) -> None:
    requested = {"Origin": "https://here.example", "Access-Control-Request-Method": "MERGE"}
    refused = await tables("OPTIONS", "/things", requested, sign=False)
    assert (refused.status, refused.code) == (403, "CorsPreflightFailure")
    rules = (
        b"<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>https://here.example</AllowedOrigins>"
        b"<AllowedMethods>MERGE</AllowedMethods><MaxAgeInSeconds>9</MaxAgeInSeconds><ExposedHeaders/>"
        b"<AllowedHeaders/></CorsRule></Cors></StorageServiceProperties>"
    )
    await tables("PUT", "/?restype=service&comp=properties", {}, rules)
    allowed = await tables("OPTIONS", "/things", requested, sign=False)
    assert (allowed.status, allowed.headers["access-control-allow-origin"]) == (200, "https://here.example")


async def test_every_answer_says_who_it_is_from(tables: Harness) -> None:
    answer = await tables("GET", "/Tables", {**JSON, "x-ms-client-request-id": "mine"})
    assert answer.headers["server"].startswith("Windows-Azure-Table/1.0")
    assert answer.headers["x-ms-version"] == VERSION
    assert answer.headers["x-ms-client-request-id"] == "mine"
    assert answer.headers["x-ms-request-id"]


def test_every_refusal_and_code_has_a_row() -> None:
    words = (
        "TABLE",
        "ENTITY",
        "KEY_VALUE",
        "KEY_OUT",
        "PROPERT",
        "TOO_MANY",
        "DIFFERENT",
        "DUPLICATE_ROW",
        "UPDATE",
    )
    own = {reason for reason in Reason if reason.name.startswith(words)}
    assert len(own) == 16
    assert own <= set(errors.REASONS[Resource.OBJECT])
    sources = [
        *Path(errors.__file__).parent.glob("*.py"),
        *(Path(str(module.__file__)) for module in (edm, odata, batch)),
    ]
    codes = {code for path in sources for code in re.findall(r'Malformed\(\s*"(\w+)"', path.read_text())}
    assert {"InvalidInput", "InvalidUri", "PropertyNameInvalid"} < codes
    assert codes <= set(errors.CODES)
