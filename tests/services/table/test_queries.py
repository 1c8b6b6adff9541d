"""Queries through the service: filters, selection, pages, and what is refused with the place."""

import json

import pytest

from tests.services.harness import Harness
from tests.services.table.requests import create, data, insert, message, query, rows

ROOT = "http://localhost:10000/acme/"


async def filled(tables: Harness) -> None:
    await create(tables)
    for number in range(1, 6):
        await insert(tables, f"r{number}", n=number, text=f"t{number}", half=number / 2)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("", ["r1", "r2", "r3", "r4", "r5"]),
        ("n gt 3", ["r4", "r5"]),
        ("PartitionKey eq 'p' and RowKey ge 'r2' and RowKey lt 'r4'", ["r2", "r3"]),
        ("not (n gt 3) and half ge 1.0", ["r2", "r3"]),
        ("text eq 't1' or text eq 't5'", ["r1", "r5"]),
        ("PartitionKey eq 'q'", []),
        ("missing ne 5", []),
    ],
)
async def test_filters(tables: Harness, wanted: str, expected: list[str]) -> None:
    await filled(tables)
    assert rows(await query(tables, wanted)) == expected


async def test_a_table_and_its_brackets_are_the_same(tables: Harness) -> None:
    await filled(tables)
    with_brackets = await tables("GET", "/things()")
    without = await tables("GET", "/Things")
    assert with_brackets.body == without.body
    assert data(without)["odata.metadata"] == f"{ROOT}$metadata#things"


async def test_an_empty_filter_is_none_and_a_plus_is_a_space(tables: Harness) -> None:
    await filled(tables)
    assert len(rows(await tables("GET", "/things()?$filter="))) == 5
    assert rows(await tables("GET", "/things()?$filter=n+eq+3")) == ["r3"]


@pytest.mark.parametrize(
    ("level", "select", "expected"),
    [
        ("minimalmetadata", "n,text", ["odata.etag", "n", "text"]),
        ("minimalmetadata", "text, n", ["odata.etag", "text", "n"]),
        (
            "minimalmetadata",
            "PartitionKey,RowKey,Timestamp",
            ["odata.etag", "PartitionKey", "RowKey", "Timestamp"],
        ),
        ("minimalmetadata", "big,n", ["odata.etag", "big@odata.type", "big", "n"]),
        ("minimalmetadata", "missing", ["odata.etag", "missing"]),
        ("minimalmetadata", "n,n", ["odata.etag", "n"]),
        (
            "minimalmetadata",
            "*",
            ["odata.etag", "PartitionKey", "RowKey", "Timestamp", "n", "text", "big@odata.type", "big"],
        ),
        (
            "minimalmetadata",
            "n,*",
            ["odata.etag", "PartitionKey", "RowKey", "Timestamp", "n", "text", "big@odata.type", "big"],
        ),
        (
            "minimalmetadata",
            "",
            ["odata.etag", "PartitionKey", "RowKey", "Timestamp", "n", "text", "big@odata.type", "big"],
        ),
        ("nometadata", "big,n,missing", ["big", "n", "missing"]),
        ("nometadata", "missing", ["missing"]),
        ("nometadata", "", ["PartitionKey", "RowKey", "Timestamp", "n", "text", "big"]),
        ("fullmetadata", "n", ["odata.type", "odata.id", "odata.etag", "odata.editLink", "n"]),
        ("fullmetadata", "missing", ["odata.type", "odata.id", "odata.etag", "odata.editLink", "missing"]),
        (
            "fullmetadata",
            "Timestamp,big",
            [
                "odata.type",
                "odata.id",
                "odata.etag",
                "odata.editLink",
                "Timestamp@odata.type",
                "Timestamp",
                "big@odata.type",
                "big",
            ],
        ),
    ],
)
async def test_selection(tables: Harness, level: str, select: str, expected: list[str]) -> None:
    await create(tables)
    await insert(tables, "r", n=1, text="x", **{"big@odata.type": "Edm.Int64", "big": "5"})
    found = await query(
        tables, "n eq 1", f"$select={select.replace(' ', '%20')}", Accept=f"application/json;odata={level}"
    )
    (one,) = data(found)["value"]
    assert list(one) == expected
    assert [name for name, value in one.items() if value is None] == ["missing"] * ("missing" in expected)
    formatted = await tables(
        "GET",
        f"/things(PartitionKey='p',RowKey='r')?$select={select.replace(' ', '%20')}",
        {"Accept": f"application/json;odata={level}"},
    )
    assert [name for name in data(formatted) if name != "odata.metadata"] == expected
    if level != "nometadata":
        assert data(found)["odata.metadata"] == f"{ROOT}$metadata#things&$select={select}"


async def test_pages_go_on_where_they_ended(tables: Harness) -> None:
    await filled(tables)
    found: list[str] = []
    token = ""
    for _ in range(5):
        page = await query(tables, "n ne 3", f"$top=2{token}")
        found += rows(page)
        if "x-ms-continuation-nextpartitionkey" not in page.headers:
            break
        partition, row = (page.headers[f"x-ms-continuation-next{name}key"] for name in ("partition", "row"))
        assert (partition[:2], row[:2]) == ("1!", "1!")
        token = f"&NextPartitionKey={partition}&NextRowKey={row}"
    assert found == ["r1", "r2", "r4", "r5"]


async def test_a_token_without_a_row_key_begins_the_partition(tables: Harness) -> None:
    await filled(tables)
    await insert(tables, "x", "q")
    page = await query(tables, "", "NextPartitionKey=1!4!cQ--")
    assert rows(page) == ["x"]


async def test_a_full_page_has_a_thousand(tables: Harness) -> None:
    await create(tables)
    for number in range(1001):
        await insert(tables, f"{number:04}")
    page = await query(tables)
    assert len(rows(page)) == 1000
    assert page.headers["x-ms-continuation-nextrowkey"].startswith("1!")
    for text in (
        page.headers["x-ms-continuation-nextpartitionkey"],
        page.headers["x-ms-continuation-nextrowkey"],
    ):
        assert set(text) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!_*-")


@pytest.mark.parametrize(
    ("options", "status", "code", "said"),
    [
        ("$filter=aaa%20bbb%20ccc", 400, "InvalidInput", "Syntax error at position 7 in 'aaa bbb ccc'."),
        ("$filter=n%20eq%205454161346626", 400, "InvalidInput", "Unrecognized 'Edm.Int32' literal"),
        ("$filter=n%20eq%20%27x", 400, "InvalidInput", "Syntax error at position 5"),
        ("$filter=" + "(" * 500, 400, "InvalidInput", "nested more than"),
        ("$top=1001", 400, "OutOfRangeQueryParameterValue", "MinimumAllowed:0\nMaximumAllowed:1000"),
        ("$top=-1", 400, "OutOfRangeQueryParameterValue", "QueryParameterName:$top"),
        ("$top=99999999999999999999", 400, "OutOfRangeQueryParameterValue", "MaximumAllowed:1000"),
        ("$top=two", 400, "InvalidQueryParameterValue", "QueryParameterName:$top"),
        ("$filter=startswith(text,%27x%27)", 501, "NotImplemented", "'startswith'"),
        ("$orderby=n", 501, "NotImplemented", "$orderby is not supported"),
        ("$skip=1", 501, "NotImplemented", "$skip"),
        ("$count=true", 501, "NotImplemented", "$count"),
        (
            "$select=" + ",".join(f"p{n}" for n in range(256)),
            400,
            "InvalidQueryParameterValue",
            "At most 255",
        ),
        ("$select=n,n%40odata.type", 400, "InvalidInput", "'n@odata.type'"),
        ("$select=odata.etag", 400, "InvalidInput", "'odata.etag'"),
        ("$select=a%22b", 400, "InvalidInput", "'a\"b'"),
        ("$select=a%5Cb", 400, "InvalidInput", "'a\\b'"),
        ("$select=a%01", 400, "InvalidInput", "No property"),
        ("$select=a%20b", 400, "InvalidInput", "'a b'"),
        ("NextPartitionKey=oops", 400, "InvalidQueryParameterValue", "continuation token"),
        ("NextPartitionKey=1!5!cQ--", 400, "InvalidQueryParameterValue", "continuation token"),
        (
            "NextPartitionKey=1!4!cQ--&NextRowKey=1!4!%2Fw--",
            400,
            "InvalidQueryParameterValue",
            "nextrowkey",
        ),
    ],
)
async def test_options_that_cannot_be(
    tables: Harness, options: str, status: int, code: str, said: str
) -> None:
    await filled(tables)
    answer = await tables("GET", f"/things()?{options}")
    assert (answer.status, answer.code) == (status, code)
    assert said in message(answer)


async def test_texts_come_back_as_they_were_sent(tables: Harness) -> None:
    await create(tables)
    text = '"quoted" \\ / \n\t\u0001 é 😀 \u2028 </script>'
    await insert(tables, "r", text=text)
    for level in ("nometadata", "minimalmetadata", "fullmetadata"):
        found = await query(tables, Accept=f"application/json;odata={level}")
        assert json.loads(found.body)["value"][0]["text"] == text
