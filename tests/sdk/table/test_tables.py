"""Tables, policies and the service's properties with the official client."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError
from azure.data.tables import (
    TableAccessPolicy,
    TableAnalyticsLogging,
    TableCorsRule,
    TableMetrics,
    TableRetentionPolicy,
)

from tests.sdk.clients import Sdk, done, fresh_name, items, pages, refused


async def names(listing: Any) -> list[str]:
    return [item.name for item in await items(listing)]


async def test_a_table_lives_and_dies(sdk: Sdk) -> None:
    service, name = sdk.table_service(), fresh_name()
    table = await done(service.create_table(name))
    assert table.table_name == name
    with refused(409, "TableAlreadyExists", ResourceExistsError):
        await done(service.create_table(name.upper()))
    same = await done(service.create_table_if_not_exists(name))
    assert same.table_name == name
    assert await names(service.query_tables(f"TableName eq '{name}'")) == [name]
    await done(service.delete_table(name))
    assert await names(service.query_tables(f"TableName eq '{name}'")) == []
    await done(service.delete_table(name))
    with refused(404, "TableNotFound", ResourceNotFoundError):
        await done(table.create_entity({"PartitionKey": "p", "RowKey": "r"}))
    await done(table.create_table())
    await done(table.delete_table())


async def test_tables_are_listed_page_by_page(sdk: Sdk) -> None:
    service, stem = sdk.table_service(), fresh_name()[:40]
    made = [f"{stem}{letter}" for letter in "DaBc"]
    for name in made:
        await done(service.create_table(name))
    wanted = f"TableName ge '{stem}' and TableName lt '{stem}zz'"
    assert await names(service.query_tables(wanted)) == [f"{stem}{letter}" for letter in "aBcD"]
    found = await pages(
        service.query_tables(
            "TableName ge @low and TableName lt @high",
            parameters={"low": stem, "high": f"{stem}zz"},
            results_per_page=3,
        )
    )
    assert [[table.name for table in page] for page in found] == [
        [f"{stem}{letter}" for letter in "aBc"],
        [f"{stem}D"],
    ]
    assert set(made) <= set(await names(service.list_tables()))
    listing = service.list_tables(results_per_page=1).by_page()
    first = await anext(listing) if sdk.form == "async" else next(listing)
    assert len(await items(first)) == 1
    assert listing.continuation_token


async def test_names_that_no_table_can_have(sdk: Sdk) -> None:
    service = sdk.table_service()
    for name in ("a", "x" * 64, "my_table", "1table", "-"):
        with pytest.raises(ValueError, match="Storage table names must be alphanumeric"):
            await done(service.create_table(name))
        with pytest.raises(ValueError, match="Storage table names must be alphanumeric"):
            await done(service.get_table_client(name).create_entity({"PartitionKey": "p", "RowKey": "r"}))


async def test_policies_come_back(sdk: Sdk) -> None:
    table = await sdk.new_table()
    assert await done(table.get_table_access_policy()) == {}
    start = datetime(2030, 1, 1, tzinfo=UTC)
    policy = TableAccessPolicy(start=start, expiry=start + timedelta(days=1), permission="raud")
    await done(table.set_table_access_policy({"one": policy, "empty": None}))
    found = await done(table.get_table_access_policy())
    assert (found["one"].permission, found["one"].start, found["one"].expiry) == (
        "raud",
        start,
        start + timedelta(days=1),
    )
    assert set(found) == {"one", "empty"}
    with pytest.raises(ValueError, match="Too many access policies"):
        await done(table.set_table_access_policy({str(number): None for number in range(6)}))
    await done(table.set_table_access_policy({}))
    assert await done(table.get_table_access_policy()) == {}


async def test_the_service_keeps_its_properties(sdk: Sdk) -> None:
    service = sdk.table_service()
    retention = TableRetentionPolicy(enabled=True, days=5)
    rule = TableCorsRule(
        ["https://www.example.com"], ["GET", "MERGE"], max_age_in_seconds=7, allowed_headers=["x-ms-*"]
    )
    await done(
        service.set_service_properties(
            analytics_logging=TableAnalyticsLogging(
                read=True, write=True, delete=True, retention_policy=retention
            ),
            hour_metrics=TableMetrics(enabled=True, include_apis=True, retention_policy=retention),
            cors=[rule],
        )
    )
    found = await done(service.get_service_properties())
    assert found["analytics_logging"].retention_policy.days == 5
    assert found["hour_metrics"].include_apis is True
    assert [(each.allowed_methods, each.max_age_in_seconds) for each in found["cors"]] == [
        (["GET", "MERGE"], 7)
    ]
    await done(service.set_service_properties(cors=[]))
    found = await done(service.get_service_properties())
    assert (found["cors"], found["hour_metrics"].enabled) == ([], True)


def host_style(sdk: Sdk) -> str:
    port = sdk.server.endpoints["table"].split("/")[2].split(":")[1]
    return f"http://{sdk.server.account}.table.core.localhost:{port}"


async def test_stats_come_from_the_secondary(sdk: Sdk) -> None:
    """The client finds the secondary by itself when the host names the account."""
    stats = await done(sdk.table_service(url=host_style(sdk)).get_service_stats())
    assert stats["geo_replication"]["status"] == "live"


async def test_the_secondary_says_that_it_takes_no_writes(sdk: Sdk) -> None:
    """Of an insertion that fails the client tells nothing but the status line."""
    url = host_style(sdk)
    table = await done(sdk.table_service(url=url).create_table(fresh_name()))
    service = sdk.table_service(url=url, location_mode="secondary")
    shadow = service.get_table_client(table.table_name)
    entity = {"PartitionKey": "p", "RowKey": "r"}
    for write, said in (
        ("upsert_entity", "Write operations are not allowed."),
        ("create_entity", "'Forbidden'"),
    ):
        with refused(403, "InsufficientAccountPermissions") as caught:
            await done(getattr(shadow, write)(entity))
        assert said in str(caught.value)
    assert await items(shadow.list_entities()) == []


async def test_host_style_addresses_work(sdk: Sdk) -> None:
    service = sdk.table_service(url=host_style(sdk))
    table = await done(service.create_table(fresh_name()))
    await done(table.upsert_entity({"PartitionKey": "p", "RowKey": "it's", "n": 1}))
    assert (await done(table.get_entity("p", "it's")))["n"] == 1
    await done(table.submit_transaction([("create", {"PartitionKey": "p", "RowKey": "2"})]))
    assert [each["RowKey"] for each in await items(table.list_entities())] == ["2", "it's"]
