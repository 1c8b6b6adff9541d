"""Many clients at a time on the same entities, through two workers: no update is lost, no group is visible by half."""

import asyncio
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from azure.core import MatchConditions
from azure.core.exceptions import ResourceExistsError, ResourceModifiedError, ResourceNotFoundError
from azure.data.tables import (
    TableAccessPolicy,
    TableMetrics,
    TableRetentionPolicy,
    TableTransactionError,
    UpdateMode,
)

from tests.sdk.clients import SYNC, Sdk, at_once, called, done, items

WRITERS = 32
ROUNDS = 4


def clients(sdk: Sdk, table: Any, count: int) -> list[Any]:
    """Each with connections of its own, so that both workers get requests."""
    return [sdk.table_service().get_table_client(table.table_name) for _ in range(count)]


async def test_no_update_by_etag_is_lost(sdk: Sdk) -> None:
    table = await sdk.new_table()
    await done(table.create_entity({"PartitionKey": "p", "RowKey": "counter", "n": 0}))

    async def count_up(client: Any) -> tuple[int, int]:
        """Try to add one, so many times; how often that was done and how often refused."""
        written = refused = 0
        for _ in range(ROUNDS):
            read = await called(sdk, partial(client.get_entity, "p", "counter"))
            read["n"] += 1
            condition = {"etag": read.metadata["etag"], "match_condition": MatchConditions.IfNotModified}
            try:
                await called(sdk, partial(client.update_entity, read, UpdateMode.REPLACE, **condition))
                written += 1
            except ResourceModifiedError:
                refused += 1
        return written, refused

    outcomes = await asyncio.gather(*(count_up(client) for client in clients(sdk, table, WRITERS)))
    written = sum(done_ for done_, _ in outcomes)
    assert written + sum(refused for _, refused in outcomes) == WRITERS * ROUNDS
    assert (await done(table.get_entity("p", "counter")))["n"] == written
    assert 0 < written < WRITERS * ROUNDS


async def test_of_racing_insertions_one_wins(sdk: Sdk) -> None:
    table = await sdk.new_table()
    writers = clients(sdk, table, 16)
    for row in "abc":
        calls = [
            partial(client.create_entity, {"PartitionKey": "p", "RowKey": row, "by": number})
            for number, client in enumerate(writers)
        ]
        outcomes = await at_once(sdk, *calls)
        winners = [
            number for number, outcome in enumerate(outcomes) if not isinstance(outcome, BaseException)
        ]
        assert len(winners) == 1
        assert all(
            isinstance(each, ResourceExistsError) for each in outcomes if isinstance(each, BaseException)
        )
        assert (await done(table.get_entity("p", row)))["by"] == winners[0]


async def test_racing_merges_all_stay(sdk: Sdk) -> None:
    table = await sdk.new_table()
    calls = [
        partial(client.upsert_entity, {"PartitionKey": "p", "RowKey": "r", f"by{number}": number})
        for number, client in enumerate(clients(sdk, table, 16))
    ]
    outcomes = await at_once(sdk, *calls)
    assert not [each for each in outcomes if isinstance(each, BaseException)]
    found = await done(table.get_entity("p", "r"))
    assert {name: value for name, value in found.items() if name.startswith("by")} == {
        f"by{number}": number for number in range(16)
    }


GROUP = [f"{number:02}" for number in range(20)]


async def test_a_reader_never_sees_half_a_group(sdk: Sdk) -> None:
    """Writers replace twenty entities in one group; all have the same mark in every query."""
    table = await sdk.new_table()
    write, readers, writers = mark, clients(sdk, table, 3), clients(sdk, table, 3)
    await done(table.submit_transaction(write(0)))
    finished = asyncio.Event()

    async def keep_writing(client: Any, first: int) -> None:
        for number in range(first, first + 12):
            await called(sdk, partial(client.submit_transaction, write(number)))

    async def keep_reading(client: Any) -> int:
        queries = 0
        while not finished.is_set() or queries == 0:
            found = await called(
                sdk, partial(collect, client) if sdk.form == SYNC else partial(gather, client)
            )
            assert [each["RowKey"] for each in found] == GROUP
            assert len({each["mark"] for each in found}) == 1
            assert len({each.metadata["etag"] for each in found}) == 1
            queries += 1
        return queries

    reading = [asyncio.create_task(keep_reading(client)) for client in readers]
    await asyncio.gather(*(keep_writing(client, 100 * number) for number, client in enumerate(writers)))
    finished.set()
    assert sum(await asyncio.gather(*reading)) >= 3


def mark(number: int) -> list[tuple[str, dict[str, Any]]]:
    return [("upsert", {"PartitionKey": "p", "RowKey": row, "mark": number}) for row in GROUP]


def collect(client: Any) -> list[Any]:
    return list(client.query_entities("PartitionKey eq 'p'"))


async def gather(client: Any) -> list[Any]:
    return await items(client.query_entities("PartitionKey eq 'p'"))


async def test_groups_that_want_the_same_entities_exclude_each_other(sdk: Sdk) -> None:
    table = await sdk.new_table()
    taking = [
        partial(
            client.submit_transaction,
            [("create", {"PartitionKey": "p", "RowKey": row, "by": number}) for row in order],
        )
        for number, client in enumerate(clients(sdk, table, 8))
        for order in (GROUP if number % 2 else GROUP[::-1],)
    ]
    outcomes = await at_once(sdk, *taking)
    assert sum(isinstance(each, TableTransactionError) for each in outcomes) == 7
    assert len({each["by"] for each in await items(table.list_entities())}) == 1


async def test_deleting_a_table_and_writing_to_it(sdk: Sdk) -> None:
    """Whatever was in the table before is gone, and a write is either gone with it or refused."""
    table = await sdk.new_table()
    name, service = table.table_name, sdk.table_service()
    await done(table.create_entity({"PartitionKey": "old", "RowKey": "r"}))
    writes = [
        partial(client.upsert_entity, {"PartitionKey": "p", "RowKey": str(number)})
        for number, client in enumerate(clients(sdk, table, 8))
    ]
    outcomes = await at_once(sdk, *writes, partial(service.delete_table, name))
    assert all(
        isinstance(each, ResourceNotFoundError) for each in outcomes if isinstance(each, BaseException)
    )
    await done(service.create_table(name))
    assert await items(table.list_entities()) == []


async def test_the_last_writer_of_policies_and_properties_wins_whole(sdk: Sdk) -> None:
    table = await sdk.new_table()
    start = datetime(2030, 1, 1, tzinfo=UTC)
    written = [
        {
            f"policy{number}": TableAccessPolicy(
                start=start, expiry=start + timedelta(days=number + 1), permission="r"
            ),
            f"other{number}": TableAccessPolicy(
                start=start, expiry=start + timedelta(days=number + 1), permission="a"
            ),
        }
        for number in range(8)
    ]
    outcomes = await at_once(
        sdk,
        *(
            partial(client.set_table_access_policy, policies)
            for client, policies in zip(clients(sdk, table, 8), written, strict=True)
        ),
    )
    assert not [each for each in outcomes if isinstance(each, BaseException)]
    found = await done(table.get_table_access_policy())
    (same,) = [policies for policies in written if set(policies) == set(found)]
    assert {name: policy.expiry for name, policy in found.items()} == {
        name: policy.expiry for name, policy in same.items()
    }

    days = range(1, 7)
    service = sdk.table_service()
    metrics = [
        TableMetrics(
            enabled=True,
            include_apis=bool(day % 2),
            retention_policy=TableRetentionPolicy(enabled=True, days=day),
        )
        for day in days
    ]
    outcomes = await at_once(
        sdk, *(partial(service.set_service_properties, minute_metrics=each) for each in metrics)
    )
    assert not [each for each in outcomes if isinstance(each, BaseException)]
    found_metrics = (await done(service.get_service_properties()))["minute_metrics"]
    assert (found_metrics.include_apis, found_metrics.retention_policy.days) in {
        (bool(day % 2), day) for day in days
    }
