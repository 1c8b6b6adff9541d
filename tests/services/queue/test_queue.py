"""Queues through the service: life cycle, metadata, policies, lists, the service's own settings, what is refused."""

import pytest

from kyanite.services.queue.operations import OPERATIONS
from tests.services.harness import OTHER, VERSION, Harness
from tests.services.queue.requests import create

POLICIES = (
    b"<SignedIdentifiers><SignedIdentifier><Id>workers</Id><AccessPolicy><Start>2026-01-01</Start>"
    b"<Expiry>2027-01-01T00:00:00Z</Expiry><Permission>rp</Permission></AccessPolicy></SignedIdentifier>"
    b"</SignedIdentifiers>"
)


def test_every_operation_of_the_reference_has_its_row() -> None:
    names = {op.name for op in OPERATIONS}
    assert len(names) == len(OPERATIONS) == 17


async def test_a_queue_lives_and_dies(queues: Harness) -> None:
    created = await queues("PUT", "/work", {"x-ms-meta-Mood": "calm"})
    assert (created.status, created.body) == (201, b"")
    assert created.headers["server"] == "Windows-Azure-Queue/1.0 Kyanite"
    assert created.headers["x-ms-version"] == VERSION
    for method in ("GET", "HEAD"):
        peeked = await queues(method, "/work?comp=metadata")
        assert (peeked.status, peeked.headers["x-ms-approximate-messages-count"]) == (200, "0")
        assert ("x-ms-meta-Mood", "calm") in peeked.raw_headers
        assert "etag" not in peeked.headers
    assert (await queues("DELETE", "/work")).status == 204
    gone = await queues("GET", "/work?comp=metadata")
    assert (gone.status, gone.code) == (404, "QueueNotFound")
    assert (await queues("DELETE", "/work")).code == "QueueNotFound"
    await create(queues)
    assert "x-ms-meta-mood" not in (await queues("GET", "/work?comp=metadata")).headers


@pytest.mark.parametrize(
    ("metadata", "status"),
    [
        ({"x-ms-meta-Mood": "calm", "x-ms-meta-size": "2"}, 204),
        ({"x-ms-meta-SIZE": "2", "x-ms-meta-mood": "calm"}, 204),
        ({"x-ms-meta-Mood": "Calm", "x-ms-meta-size": "2"}, 409),
        ({"x-ms-meta-Mood": "calm"}, 409),
        ({}, 409),
    ],
)
async def test_create_again_depends_on_the_metadata(
    queues: Harness, metadata: dict[str, str], status: int
) -> None:
    await create(queues, **{"x-ms-meta-Mood": "calm", "x-ms-meta-size": "2"})
    again = await queues("PUT", "/work", metadata)
    assert (again.status, again.code) == (status, "QueueAlreadyExists" if status == 409 else "")
    peeked = await queues("GET", "/work?comp=metadata")
    assert {("x-ms-meta-Mood", "calm"), ("x-ms-meta-size", "2")} <= set(peeked.raw_headers)


async def test_create_again_keeps_the_messages(queues: Harness) -> None:
    await create(queues)
    await queues("POST", "/work/messages", body=b"<QueueMessage><MessageText>a</MessageText></QueueMessage>")
    assert (await queues("PUT", "/work")).status == 204
    assert (await queues("GET", "/work?comp=metadata")).headers["x-ms-approximate-messages-count"] == "1"


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("ab", "OutOfRangeInput"),
        ("a" * 64, "OutOfRangeInput"),
        ("", "InvalidResourceName"),
        ("Work", "InvalidResourceName"),
        ("-work", "InvalidResourceName"),
        ("work-", "InvalidResourceName"),
        ("w--k", "InvalidResourceName"),
        ("w_k", "InvalidResourceName"),
        ("$root", "InvalidResourceName"),
        ("w%20k", "InvalidResourceName"),
        ("w%00k", "InvalidResourceName"),
        ("%C3%BCber", "InvalidResourceName"),
    ],
)
@pytest.mark.parametrize(("method", "rest"), [("PUT", ""), ("GET", "/messages"), ("DELETE", "/messages/1")])
async def test_names_that_no_queue_can_have(
    queues: Harness, name: str, code: str, method: str, rest: str
) -> None:
    answer = await queues(method, f"/{name}{rest}")
    assert (answer.status, answer.code) == (400, code)


async def test_metadata_is_replaced_whole(queues: Harness) -> None:
    await create(queues, **{"x-ms-meta-a": "1"})
    assert (await queues("PUT", "/work?comp=metadata", {"x-ms-meta-B": "2"})).status == 204
    after = await queues("GET", "/work?comp=metadata")
    assert "x-ms-meta-a" not in after.headers
    assert ("x-ms-meta-B", "2") in after.raw_headers


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"x-ms-meta-": "1"}, "EmptyMetadataKey"),
        ({"x-ms-meta-1a": "1"}, "InvalidMetadata"),
        ({"x-ms-meta-a": "x" * 9000}, "MetadataTooLarge"),
    ],
)
async def test_bad_metadata_changes_nothing(queues: Harness, headers: dict[str, str], code: str) -> None:
    await create(queues, **{"x-ms-meta-a": "1"})
    for method, target in (("PUT", "/other"), ("PUT", "/work?comp=metadata")):
        assert (await queues(method, target, headers)).code == code
    assert (await queues("GET", "/other?comp=metadata")).code == "QueueNotFound"
    assert (await queues("GET", "/work?comp=metadata")).headers["x-ms-meta-a"] == "1"


async def test_policies_come_back_with_seven_decimals(queues: Harness) -> None:
    await create(queues)
    empty = await queues("GET", "/work?comp=acl")
    assert (empty.status, list(empty.xml)) == (200, [])
    assert (await queues("PUT", "/work?comp=acl", body=POLICIES)).status == 204
    peeked = await queues("GET", "/work?comp=acl")
    assert peeked.xml.findtext("SignedIdentifier/Id") == "workers"
    assert peeked.xml.findtext("SignedIdentifier/AccessPolicy/Start") == "2026-01-01T00:00:00.0000000Z"
    assert peeked.xml.findtext("SignedIdentifier/AccessPolicy/Permission") == "rp"
    assert (await queues("HEAD", "/work?comp=acl")).status == 200
    assert (await queues("PUT", "/work?comp=acl")).status == 204
    assert list((await queues("GET", "/work?comp=acl")).xml) == []


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"<SignedIdentifiers>", 400, "InvalidXmlDocument"),
        (b"<Other/>", 400, "InvalidXmlDocument"),
        (POLICIES.replace(b"rp", b"r?"), 400, "InvalidXmlNodeValue"),
        (POLICIES.replace(b"rp", b"rd"), 400, "InvalidXmlNodeValue"),
        (b"<SignedIdentifiers>" + b"<SignedIdentifier><Id>a</Id></SignedIdentifier>" * 2 + b"</SignedIdentifiers>",
         400, "InvalidXmlDocument"),
        (b" " * 70_000, 413, "RequestBodyTooLarge"),
    ],
)  # fmt: skip
async def test_bad_policies_change_nothing(queues: Harness, body: bytes, status: int, code: str) -> None:
    await create(queues)
    await queues("PUT", "/work?comp=acl", body=POLICIES)
    answer = await queues("PUT", "/work?comp=acl", body=body)
    assert (answer.status, answer.code) == (status, code)
    assert (await queues("GET", "/work?comp=acl")).xml.findtext("SignedIdentifier/Id") == "workers"


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("DELETE", "/none"),
        ("GET", "/none?comp=metadata"),
        ("PUT", "/none?comp=metadata"),
        ("GET", "/none?comp=acl"),
        ("PUT", "/none?comp=acl"),
        ("GET", "/none/messages"),
        ("GET", "/none/messages?peekonly=true"),
        ("DELETE", "/none/messages"),
        ("PUT", "/none/messages/1?visibilitytimeout=0&popreceipt=" + "A" * 32),
        ("DELETE", "/none/messages/1?popreceipt=" + "A" * 32),
    ],
)
async def test_nothing_works_on_a_queue_that_is_not_there(queues: Harness, method: str, target: str) -> None:
    answer = await queues(method, target)
    assert (answer.status, answer.code) == (404, "QueueNotFound")


async def test_queues_are_listed_in_pages(queues: Harness) -> None:
    for name in ("beta", "alpha-2", "alpha-1", "gamma"):
        await create(queues, name, **{"x-ms-meta-Of": name})
    await queues("PUT", "/theirs", account=OTHER)
    everything = (await queues("GET", "/?comp=list")).xml
    assert [item.findtext("Name") for item in everything.iter("Queue")] == [
        "alpha-1", "alpha-2", "beta", "gamma",
    ]  # fmt: skip
    assert everything.get("ServiceEndpoint") == "http://localhost:10000/acme/"
    assert everything.findtext("NextMarker") == ""
    assert everything.find("Queues/Queue/Metadata") is None
    first = (await queues("GET", "/?comp=list&maxresults=1&prefix=alpha&include=metadata")).xml
    assert first.findtext("Prefix") == "alpha"
    assert first.findtext("MaxResults") == "1"
    assert first.findtext("Queues/Queue/Metadata/Of") == "alpha-1"
    marker = first.findtext("NextMarker")
    second = (await queues("GET", f"/?comp=list&maxresults=1&prefix=alpha&marker={marker}")).xml
    assert [item.findtext("Name") for item in second.iter("Queue")] == ["alpha-2"]
    assert (second.findtext("Marker"), second.findtext("NextMarker")) == (marker, "")


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("maxresults=0", "OutOfRangeQueryParameterValue"),
        ("maxresults=x", "InvalidQueryParameterValue"),
        ("marker=made-up", "InvalidQueryParameterValue"),
        ("include=messages", "InvalidQueryParameterValue"),
    ],
)
async def test_bad_parameters_of_a_list(queues: Harness, query: str, code: str) -> None:
    answer = await queues("GET", f"/?comp=list&{query}")
    assert (answer.status, answer.code) == (400, code)


async def test_service_properties_are_merged(queues: Harness) -> None:
    before = await queues("GET", "/?restype=service&comp=properties")
    assert [element.tag for element in before.xml] == ["Logging", "HourMetrics", "MinuteMetrics", "Cors"]
    body = (
        b"<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>http://a.example</AllowedOrigins>"
        b"<AllowedMethods>GET,PUT</AllowedMethods><AllowedHeaders>*</AllowedHeaders><ExposedHeaders>*</ExposedHeaders>"
        b"<MaxAgeInSeconds>60</MaxAgeInSeconds></CorsRule></Cors></StorageServiceProperties>"
    )
    assert (await queues("PUT", "/?restype=service&comp=properties", body=body)).status == 202
    after = await queues("GET", "/?restype=service&comp=properties")
    assert after.xml.findtext("Cors/CorsRule/MaxAgeInSeconds") == "60"
    assert after.xml.find("Logging") is not None
    request = {"Origin": "http://a.example", "Access-Control-Request-Method": "GET"}
    preflight = await queues("OPTIONS", "/work/messages", request, sign=False)
    assert (preflight.status, preflight.headers["access-control-allow-origin"]) == (200, "http://a.example")
    refused = await queues("OPTIONS", "/work", {**request, "Origin": "http://b.example"}, sign=False)
    assert (refused.status, refused.code) == (403, "CorsPreflightFailure")


async def test_blob_settings_are_none_of_a_queue_service(queues: Harness) -> None:
    body = (
        b"<StorageServiceProperties><StaticWebsite><Enabled>false</Enabled></StaticWebsite>"
        b"</StorageServiceProperties>"
    )
    answer = await queues("PUT", "/?restype=service&comp=properties", body=body)
    assert (answer.status, answer.code) == (400, "UnsupportedXmlNode")


async def test_stats_are_returned_by_the_secondary(queues: Harness) -> None:
    primary = await queues("GET", "/?restype=service&comp=stats")
    assert (primary.status, primary.code) == (400, "InvalidQueryParameterValue")
