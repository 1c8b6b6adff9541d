"""Queues through the official client: made, described, changed, listed and deleted."""

from datetime import UTC, datetime, timedelta

import pytest
from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError
from azure.storage.queue import (
    AccessPolicy,
    CorsRule,
    Metrics,
    QueueAnalyticsLogging,
    QueueSasPermissions,
    RetentionPolicy,
    generate_account_sas,
    generate_queue_sas,
)

from tests.sdk.accounts import OTHER_ACCOUNT, OTHER_KEY
from tests.sdk.clients import Sdk, done, fresh_name, items, names, pages, refused
from tests.sdk.raw_http import fetch

HOUR = timedelta(hours=1)


async def test_a_queue_exists_from_its_creation_to_its_deletion(sdk: Sdk) -> None:
    queue = sdk.queue(fresh_name())
    with refused(404, "QueueNotFound", ResourceNotFoundError):
        await done(queue.get_queue_properties())
    await done(queue.create_queue(metadata={"Mood": "calm"}))
    # The service answers 204, which this client takes for an error of its own making.
    with refused(204, "QueueAlreadyExists", ResourceExistsError):
        await done(queue.create_queue(metadata={"Mood": "calm"}))
    with refused(409, "QueueAlreadyExists", ResourceExistsError):
        await done(queue.create_queue(metadata={"Mood": "wild"}))
    found = await done(queue.get_queue_properties())
    assert (found.name, found.metadata, found.approximate_message_count) == (
        queue.queue_name,
        {"Mood": "calm"},
        0,
    )
    await done(queue.delete_queue())
    with refused(404, "QueueNotFound", ResourceNotFoundError):
        await done(queue.delete_queue())


async def test_a_name_can_be_used_again_at_once_and_shows_nothing_of_before(sdk: Sdk) -> None:
    queue = await sdk.new_queue(metadata={"first": "yes"})
    sent = await done(queue.send_message("old"))
    await done(queue.delete_queue())
    await done(queue.create_queue())
    found = await done(queue.get_queue_properties())
    assert (found.metadata, found.approximate_message_count) == ({}, 0)
    assert await done(queue.peek_messages(32)) == []
    with refused(404, "MessageNotFound", ResourceNotFoundError):
        await done(queue.delete_message(sent))


async def test_metadata_is_replaced_whole(sdk: Sdk) -> None:
    queue = await sdk.new_queue(metadata={"Hello": "World", "UPPER_9": "1 + 1 = 2"})
    await done(queue.set_queue_metadata({"other": "x"}))
    assert (await done(queue.get_queue_properties())).metadata == {"other": "x"}
    await done(queue.set_queue_metadata())
    assert (await done(queue.get_queue_properties())).metadata == {}


async def test_policies_come_back_as_they_were_set(sdk: Sdk) -> None:
    queue = await sdk.new_queue()
    assert await done(queue.get_queue_access_policy()) == {}
    start = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
    full = AccessPolicy(QueueSasPermissions(read=True, process=True), start + HOUR, start)
    await done(queue.set_queue_access_policy({"full": full, "empty": AccessPolicy()}))
    found = await done(queue.get_queue_access_policy())
    assert set(found) == {"full", "empty"}
    assert found["full"].permission == "rp"
    assert found["full"].start.startswith("2030-01-02T03:04:05")
    await done(queue.set_queue_access_policy({}))
    assert await done(queue.get_queue_access_policy()) == {}


async def test_queues_are_listed_by_name_in_pages(sdk: Sdk) -> None:
    prefix = fresh_name()
    wanted = [f"{prefix}-{number}" for number in range(5)]
    service = sdk.queue_service()
    for name in reversed(wanted):
        await done(service.create_queue(name, metadata={"of": name}))
    assert await names(service.list_queues(name_starts_with=prefix)) == wanted
    listed = await items(service.list_queues(name_starts_with=prefix, include_metadata=True))
    assert [queue.metadata for queue in listed] == [{"of": name} for name in wanted]
    found = await pages(service.list_queues(name_starts_with=prefix, results_per_page=2))
    assert [[queue.name for queue in page] for page in found] == [wanted[:2], wanted[2:4], wanted[4:]]
    for name in wanted:
        await done(service.delete_queue(name))
    assert await names(service.list_queues(name_starts_with=prefix)) == []


async def test_service_properties_come_back_as_they_were_set(sdk: Sdk) -> None:
    url = sdk.server.endpoints["queue"].replace("devstoreaccount1", OTHER_ACCOUNT)
    service = sdk.queue_service(url=url, credential=OTHER_KEY)
    kept = RetentionPolicy(enabled=True, days=5)
    logging = QueueAnalyticsLogging(read=True, write=True, delete=True, retention_policy=kept)
    metrics = Metrics(enabled=True, include_apis=True, retention_policy=kept)
    rule = CorsRule(["http://a.example"], ["GET", "PUT"], allowed_headers=["x-ms-*"], max_age_in_seconds=60)
    await done(
        service.set_service_properties(
            analytics_logging=logging, hour_metrics=metrics, minute_metrics=Metrics(), cors=[rule]
        )
    )
    found = await done(service.get_service_properties())
    assert (found["analytics_logging"].read, found["analytics_logging"].retention_policy.days) == (True, 5)
    assert (found["hour_metrics"].enabled, found["minute_metrics"].enabled) == (True, False)
    assert [one.allowed_origins for one in found["cors"]] == ["http://a.example"]
    await done(service.set_service_properties(cors=[]))
    found = await done(service.get_service_properties())
    assert (found["cors"], found["hour_metrics"].enabled) == ([], True)


async def test_stats_are_returned_by_the_secondary(sdk: Sdk) -> None:
    owner = {"account_name": "devstoreaccount1", "account_key": sdk.key}
    url = sdk.server.endpoints["queue"]
    service = sdk.queue_service(
        url=f"{url}-secondary", credential=owner, secondary_hostname=url.split("/")[2]
    )
    stats = await done(service.get_service_stats())
    assert stats["geo_replication"]["status"] == "live"


async def test_the_host_may_name_the_account(sdk: Sdk) -> None:
    port = sdk.server.endpoints["queue"].split("/")[2].split(":")[1]
    service = sdk.queue_service(url=f"http://devstoreaccount1.queue.core.localhost:{port}")
    queue = service.get_queue_client(fresh_name())
    await done(queue.create_queue())
    await done(queue.send_message("by host"))
    assert (await done(queue.receive_message())).content == "by host"


async def test_tokens_open_what_they_say(sdk: Sdk) -> None:
    queue = await sdk.new_queue()
    expiry = datetime.now(UTC) + HOUR
    permission = QueueSasPermissions(add=True, process=True)
    token = generate_queue_sas(
        "devstoreaccount1", queue.queue_name, sdk.key, permission=permission, expiry=expiry
    )
    shared = sdk.queue(queue.queue_name, credential=token)
    await done(shared.send_message("shared"))
    got = await done(shared.receive_message())
    with refused(403, "AuthorizationPermissionMismatch"):
        await done(shared.update_message(got, visibility_timeout=0))
    with refused(403, "AuthorizationPermissionMismatch"):
        await done(shared.peek_messages())
    await done(shared.delete_message(got))
    for_all = generate_account_sas("devstoreaccount1", sdk.key, "co", "rup", expiry, services="q")
    wide = sdk.queue(queue.queue_name, credential=for_all)
    assert (await done(wide.get_queue_properties())).approximate_message_count == 0
    with refused(403, "AuthorizationPermissionMismatch"):
        await done(wide.clear_messages())
    anonymous = fetch(f"{queue.url}/messages?peekonly=true", headers={"x-ms-version": "2025-05-05"})
    assert (anonymous.status, anonymous.code) == (401, "NoAuthenticationInformation")


async def test_removing_a_policy_revokes_its_tokens(sdk: Sdk) -> None:
    queue = await sdk.new_queue()
    policy = AccessPolicy(QueueSasPermissions(read=True), datetime.now(UTC) + HOUR)
    await done(queue.set_queue_access_policy({"readers": policy}))
    token = generate_queue_sas("devstoreaccount1", queue.queue_name, sdk.key, policy_id="readers")
    reader = sdk.queue(queue.queue_name, credential=token)
    assert await done(reader.peek_messages()) == []
    await done(queue.set_queue_access_policy({}))
    with refused(403, "AuthenticationFailed"):
        await done(reader.peek_messages())


@pytest.mark.parametrize("name", ["ab", "Upper", "double--dash", "last-"])
async def test_names_that_are_none_are_refused(sdk: Sdk, name: str) -> None:
    code = "OutOfRangeInput" if len(name) < 3 else "InvalidResourceName"
    with refused(400, code):
        await done(sdk.queue(name).create_queue())
