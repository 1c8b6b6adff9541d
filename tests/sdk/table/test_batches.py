"""Entity group transactions with the official client."""

from typing import Any

import pytest
from azure.core import MatchConditions
from azure.data.tables import RequestTooLargeError, TableTransactionError, UpdateMode

from tests.sdk.clients import Sdk, done, items, refused


def entity(row_key: str, **properties: Any) -> dict[str, Any]:
    return {"PartitionKey": "p", "RowKey": row_key, **properties}


async def rows(table: Any) -> list[str]:
    return [each["RowKey"] for each in await items(table.list_entities())]


async def test_all_kinds_of_changes_in_one(sdk: Sdk) -> None:
    table = await sdk.new_table()
    await done(table.submit_transaction([("create", entity(str(number), m=0)) for number in range(4)]))
    etag = (await done(table.get_entity("p", "1"))).metadata["etag"]
    results = await done(
        table.submit_transaction(
            [
                ("create", entity("new", n=1)),
                ("delete", entity("0")),
                (
                    "update",
                    entity("1", n=1),
                    {"etag": etag, "match_condition": MatchConditions.IfNotModified},
                ),
                ("update", entity("2", n=1), {"mode": UpdateMode.REPLACE}),
                ("upsert", entity("3", n=1), {"mode": "merge"}),
                ("upsert", entity("4", n=1), {"mode": UpdateMode.REPLACE}),
            ]
        )
    )
    assert len(results) == 6
    assert len({result["etag"] for result in results if "etag" in result}) == 1
    found = {each["RowKey"]: (each.get("m"), each.get("n")) for each in await items(table.list_entities())}
    assert found == {"new": (None, 1), "1": (0, 1), "2": (None, 1), "3": (0, 1), "4": (None, 1)}
    assert (await done(table.get_entity("p", "new"))).metadata["etag"] == results[0]["etag"]


@pytest.mark.parametrize(
    ("bad", "status", "code"),
    [
        (("create", entity("there")), 409, "EntityAlreadyExists"),
        (("delete", entity("missing")), 404, "ResourceNotFound"),
        (("update", entity("missing")), 404, "ResourceNotFound"),
        (
            (
                "update",
                entity("there", n=2),
                {
                    "etag": "W/\"datetime'2012-06-15T22%3A51%3A44.9662825Z'\"",
                    "match_condition": MatchConditions.IfNotModified,
                },
            ),
            412,
            "UpdateConditionNotSatisfied",
        ),
        (("create", entity("0")), 400, "InvalidDuplicateRow"),
        (("create", entity("new", **{"a-b": 1})), 400, "PropertyNameInvalid"),
        (("create", entity("a/b")), 400, "OutOfRangeInput"),
    ],
)
async def test_one_bad_change_undoes_all(sdk: Sdk, bad: Any, status: int, code: str) -> None:
    table = await sdk.new_table()
    await done(table.create_entity(entity("there", n=1)))
    changes = [("create", entity(str(number))) for number in range(3)]
    with refused(status, code, TableTransactionError) as caught:
        await done(table.submit_transaction([*changes, bad, ("create", entity("last"))]))
    assert isinstance(caught.value, TableTransactionError)
    assert caught.value.index == 3
    assert await rows(table) == ["there"]
    assert (await done(table.get_entity("p", "there")))["n"] == 1


async def test_a_hundred_and_no_more(sdk: Sdk) -> None:
    table = await sdk.new_table()
    await done(table.submit_transaction([("upsert", entity(f"{number:03}")) for number in range(100)]))
    with refused(400, "InvalidInput", TableTransactionError):
        await done(table.submit_transaction([("upsert", entity(f"x{number}")) for number in range(101)]))
    assert len(await rows(table)) == 100


async def test_a_batch_that_is_too_large(sdk: Sdk) -> None:
    table = await sdk.new_table()
    large = [("create", entity(str(number), text="x" * 30_000)) for number in range(99)]
    await done(table.submit_transaction(large))
    too_large = [
        ("upsert", entity(str(number), text="x" * 30_000, more="x" * 30_000)) for number in range(99)
    ]
    with pytest.raises(RequestTooLargeError):
        await done(table.submit_transaction(too_large))
    assert "more" not in await done(table.get_entity("p", "0"))


async def test_a_table_that_is_missing(sdk: Sdk) -> None:
    table = sdk.table_service().get_table_client("missing")
    with refused(404, "TableNotFound", TableTransactionError):
        await done(table.submit_transaction([("create", entity("r"))]))
