"""The service itself: its properties, its statistics, what kind of account it is, and the list of its containers."""

from datetime import UTC, datetime, timedelta

import pytest
from azure.storage.blob import BlobAnalyticsLogging, CorsRule, Metrics, RetentionPolicy, StaticWebsite

from tests.sdk.accounts import OTHER_ACCOUNT, OTHER_KEY
from tests.sdk.clients import Sdk, done, fresh_name, items, names, pages, refused
from tests.sdk.raw_http import fetch

ALL_OFF = {
    "analytics_logging": BlobAnalyticsLogging(),
    "hour_metrics": Metrics(),
    "minute_metrics": Metrics(),
    "cors": [],
    "delete_retention_policy": RetentionPolicy(),
    "static_website": StaticWebsite(),
}


@pytest.fixture
def other_url(sdk: Sdk) -> str:
    """An account whose properties no other test relies on."""
    return f"http://{sdk.host}/{OTHER_ACCOUNT}"


async def test_properties_come_back_as_they_were_set(sdk: Sdk, other_url: str) -> None:
    service = sdk.service(other_url, credential=OTHER_KEY)
    rule = CorsRule(
        ["https://www.example.com", "https://example.org"],
        ["GET", "PUT"],
        allowed_headers=["x-ms-meta-data*", "x-ms-meta-abc"],
        exposed_headers=["x-ms-meta-*"],
        max_age_in_seconds=500,
    )
    await done(
        service.set_service_properties(
            analytics_logging=BlobAnalyticsLogging(
                read=True, write=True, delete=True, retention_policy=RetentionPolicy(enabled=True, days=5)
            ),
            hour_metrics=Metrics(
                enabled=True, include_apis=True, retention_policy=RetentionPolicy(enabled=True, days=7)
            ),
            minute_metrics=Metrics(enabled=True, include_apis=False),
            cors=[rule, CorsRule(["*"], ["GET"])],
            target_version="2021-08-06",
        )
    )
    found = await done(service.get_service_properties())
    logging, hourly, minutely = (
        found[name] for name in ("analytics_logging", "hour_metrics", "minute_metrics")
    )
    assert (logging.read, logging.write, logging.delete, logging.retention_policy.days) == (
        True,
        True,
        True,
        5,
    )
    assert (hourly.enabled, hourly.include_apis, hourly.retention_policy.days) == (True, True, 7)
    assert (minutely.enabled, minutely.include_apis, minutely.retention_policy.enabled) == (
        True,
        False,
        False,
    )
    first, second = found["cors"]
    assert first.allowed_origins == "https://www.example.com,https://example.org"
    assert first.allowed_methods == "GET,PUT"
    assert first.allowed_headers == "x-ms-meta-data*,x-ms-meta-abc"
    assert first.exposed_headers == "x-ms-meta-*"
    assert first.max_age_in_seconds == 500
    assert (second.allowed_origins, second.allowed_headers, second.max_age_in_seconds) == ("*", "", 0)
    assert found["target_version"] == "2021-08-06"


async def test_what_is_not_there_yet_cannot_be_turned_on(sdk: Sdk, other_url: str) -> None:
    service = sdk.service(other_url, credential=OTHER_KEY)
    await done(service.set_service_properties(**ALL_OFF))
    website = StaticWebsite(enabled=True, index_document="index.html")
    with refused(501, "NotImplemented"):
        await done(service.set_service_properties(static_website=website))
    found = await done(service.get_service_properties())
    assert found["static_website"].enabled is False


async def test_what_is_left_out_keeps_its_setting(sdk: Sdk, other_url: str) -> None:
    service = sdk.service(other_url, credential=OTHER_KEY)
    await done(service.set_service_properties(**ALL_OFF))
    await done(service.set_service_properties(hour_metrics=Metrics(enabled=True, include_apis=True)))
    await done(service.set_service_properties(cors=[CorsRule(["*"], ["GET"], max_age_in_seconds=1)]))
    found = await done(service.get_service_properties())
    assert found["hour_metrics"].enabled is True
    assert [rule.max_age_in_seconds for rule in found["cors"]] == [1]
    await done(service.set_service_properties(cors=[]))
    found = await done(service.get_service_properties())
    assert found["hour_metrics"].enabled is True
    assert found["cors"] == []


async def test_bad_properties_are_refused_and_change_nothing(sdk: Sdk, other_url: str) -> None:
    service = sdk.service(other_url, credential=OTHER_KEY)
    await done(service.set_service_properties(**ALL_OFF))
    six_rules = [CorsRule([f"https://{number}.example.com"], ["GET"]) for number in range(6)]
    with refused(400, "InvalidXmlDocument"):
        await done(service.set_service_properties(cors=six_rules))
    with refused(400, "InvalidXmlNodeValue"):
        await done(
            service.set_service_properties(
                hour_metrics=Metrics(
                    enabled=True, include_apis=True, retention_policy=RetentionPolicy(enabled=True, days=366)
                )
            )
        )
    found = await done(service.get_service_properties())
    assert found["cors"] == []
    assert found["hour_metrics"].enabled is False


async def test_cors_rules_speak_to_browsers(sdk: Sdk, other_url: str) -> None:
    service = sdk.service(other_url, credential=OTHER_KEY)
    container = await done(service.create_container(fresh_name(), public_access="blob"))
    await done(container.upload_blob("page", b"text"))
    rule = CorsRule(
        ["https://app.example"],
        ["GET"],
        allowed_headers=["x-ms-*"],
        exposed_headers=["x-ms-meta-*"],
        max_age_in_seconds=60,
    )
    await done(service.set_service_properties(cors=[rule]))
    url = f"{container.url}/page"
    headers = {"Origin": "https://app.example", "Access-Control-Request-Method": "GET"}
    preflight = fetch(url, "OPTIONS", {**headers, "Access-Control-Request-Headers": "x-ms-version"})
    assert preflight.status == 200
    assert preflight.headers["Access-Control-Allow-Origin"] == "https://app.example"
    assert preflight.headers["Access-Control-Max-Age"] == "60"
    for changed in (
        {"Origin": "https://evil.example"},
        {"Access-Control-Request-Method": "PUT"},
        {"Access-Control-Request-Headers": "authorization"},
    ):
        denied = fetch(url, "OPTIONS", {**headers, **changed})
        assert (denied.status, denied.code) == (403, "CorsPreflightFailure")
    answer = fetch(url, headers={"Origin": "https://app.example"})
    assert (answer.status, answer.body) == (200, b"text")
    assert answer.headers["Access-Control-Allow-Origin"] == "https://app.example"
    assert "x-ms-meta-*" in answer.headers["Access-Control-Expose-Headers"]
    assert answer.headers["Vary"] == "Origin"
    stranger = fetch(url, headers={"Origin": "https://evil.example"})
    assert (stranger.status, stranger.headers["Access-Control-Allow-Origin"]) == (200, None)


async def test_the_secondary_returns_how_far_replication_is(sdk: Sdk) -> None:
    owner = {"account_name": "devstoreaccount1", "account_key": sdk.key}
    url = f"{sdk.url}-secondary"
    service = sdk.service(url, credential=owner, secondary_hostname=sdk.host)
    stats = await done(service.get_service_stats())
    assert stats["geo_replication"]["status"] == "live"
    last = stats["geo_replication"]["last_sync_time"]
    assert abs(datetime.now(UTC) - last) < timedelta(minutes=1)


async def test_account_information_is_returned_at_every_level(sdk: Sdk) -> None:
    container = await sdk.new_container()
    for client in (sdk.service(), container, container.get_blob_client("any")):
        returned = await done(client.get_account_information())
        assert (returned["sku_name"], returned["account_kind"]) == ("Standard_RAGRS", "StorageV2")


async def test_containers_are_listed_by_prefix_in_order_with_metadata(sdk: Sdk) -> None:
    service = sdk.service()
    prefix = fresh_name()[:20]
    made = [f"{prefix}-{letter}" for letter in "dbac"]
    for name in made:
        await done(service.create_container(name, metadata={"Which": name}))
    await done(service.create_container(fresh_name()))
    plain = await items(service.list_containers(name_starts_with=prefix))
    assert [found.name for found in plain] == sorted(made)
    assert all(not found.metadata for found in plain)
    full = await items(service.list_containers(name_starts_with=prefix, include_metadata=True))
    assert [found.metadata for found in full] == [{"Which": name} for name in sorted(made)]
    properties = await done(service.get_container_client(made[0]).get_container_properties())
    listed = next(found for found in full if found.name == made[0])
    assert (listed.etag, listed.last_modified) == (
        f'"{properties.etag}"'.replace('""', '"'),
        properties.last_modified,
    )
    assert (listed.lease.status, listed.lease.state) == ("unlocked", "available")
    assert listed.public_access is None
    assert await names(service.list_containers(name_starts_with=f"{prefix}-nothing")) == []


async def test_containers_come_in_pages_that_can_be_continued(sdk: Sdk) -> None:
    service = sdk.service()
    prefix = fresh_name()[:20]
    made = [f"{prefix}-{number:02}" for number in range(7)]
    for name in made:
        await done(service.create_container(name))
    listing = service.list_containers(name_starts_with=prefix, results_per_page=3)
    found = [[item.name for item in page] for page in await pages(listing)]
    assert found == [made[:3], made[3:6], made[6:]]

    by_page = service.list_containers(name_starts_with=prefix, results_per_page=3).by_page()
    first = await (anext(by_page) if hasattr(by_page, "__anext__") else done(next(by_page)))
    assert [item.name for item in await items(first)] == made[:3]
    token = by_page.continuation_token
    rest = await pages(service.list_containers(name_starts_with=prefix, results_per_page=5), token)
    assert [[item.name for item in page] for page in rest] == [made[3:]]
