"""Containers through the service: life cycle, metadata, policies, conditions, and what is refused."""

import pytest

from tests.services.harness import VERSION, Harness

POLICIES = (
    b"<SignedIdentifiers><SignedIdentifier><Id>readers</Id><AccessPolicy><Start>2026-01-01</Start>"
    b"<Expiry>2027-01-01T00:00:00Z</Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier>"
    b"</SignedIdentifiers>"
)


async def create(blobs: Harness, name: str = "box", **headers: str) -> None:
    answer = await blobs("PUT", f"/{name}?restype=container", headers)
    assert answer.status == 201, answer


async def test_a_container_lives_and_dies(blobs: Harness) -> None:
    created = await blobs("PUT", "/box?restype=container", {"x-ms-meta-Mood": "calm"})
    assert created.status == 201
    assert created.headers["etag"].startswith('"0x8D')
    found = await blobs("HEAD", "/box?restype=container")
    assert (found.status, found.headers["etag"]) == (200, created.headers["etag"])
    assert ("x-ms-meta-Mood", "calm") in found.raw_headers
    assert (found.headers["x-ms-lease-state"], found.headers["x-ms-lease-status"]) == (
        "available",
        "unlocked",
    )
    assert (await blobs("DELETE", "/box?restype=container")).status == 202
    assert (await blobs("GET", "/box?restype=container")).code == "ContainerNotFound"
    await create(blobs)


async def test_create_twice_is_a_conflict(blobs: Harness) -> None:
    await create(blobs)
    again = await blobs("PUT", "/box?restype=container")
    assert (again.status, again.code) == (409, "ContainerAlreadyExists")


async def test_what_was_in_a_deleted_container_stays_gone(blobs: Harness) -> None:
    await create(blobs)
    await blobs("PUT", "/box/b", {"x-ms-blob-type": "BlockBlob"}, b"x")
    await blobs("DELETE", "/box?restype=container")
    await create(blobs)
    assert (await blobs("GET", "/box/b")).code == "BlobNotFound"


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("ab", "OutOfRangeInput"),
        ("a" * 64, "OutOfRangeInput"),
        ("Box", "InvalidResourceName"),
        ("-box", "InvalidResourceName"),
        ("box-", "InvalidResourceName"),
        ("b--x", "InvalidResourceName"),
        ("b_x", "InvalidResourceName"),
    ],
)
async def test_names_that_no_container_can_have(blobs: Harness, name: str, code: str) -> None:
    answer = await blobs("PUT", f"/{name}?restype=container")
    assert (answer.status, answer.code) == (400, code)


async def test_metadata_is_replaced_whole_and_moves_the_etag(blobs: Harness) -> None:
    await create(blobs, **{"x-ms-meta-a": "1"})
    before = await blobs("GET", "/box?restype=container&comp=metadata")
    changed = await blobs("PUT", "/box?restype=container&comp=metadata", {"x-ms-meta-B": "2"})
    after = await blobs("GET", "/box?restype=container&comp=metadata")
    assert changed.headers["etag"] == after.headers["etag"] != before.headers["etag"]
    assert "x-ms-meta-a" not in after.headers
    assert ("x-ms-meta-B", "2") in after.raw_headers


async def test_writing_a_blob_leaves_the_container_alone(blobs: Harness) -> None:
    await create(blobs)
    before = await blobs("GET", "/box?restype=container")
    await blobs("PUT", "/box/b", {"x-ms-blob-type": "BlockBlob"}, b"x")
    assert (await blobs("GET", "/box?restype=container")).headers["etag"] == before.headers["etag"]


async def test_policies_come_back_with_seven_decimals(blobs: Harness) -> None:
    await create(blobs)
    put = await blobs("PUT", "/box?restype=container&comp=acl", {"x-ms-blob-public-access": "blob"}, POLICIES)
    assert put.status == 200
    got = await blobs("GET", "/box?restype=container&comp=acl")
    assert got.headers["x-ms-blob-public-access"] == "blob"
    assert got.xml.findtext(".//Id") == "readers"
    assert got.xml.findtext(".//Start") == "2026-01-01T00:00:00.0000000Z"
    await blobs("PUT", "/box?restype=container&comp=acl")
    cleared = await blobs("GET", "/box?restype=container&comp=acl")
    assert "x-ms-blob-public-access" not in cleared.headers
    assert len(cleared.xml) == 0


@pytest.mark.parametrize(
    ("method", "target", "headers", "body", "status", "code"),
    [
        ("PUT", "?restype=container&comp=acl", {}, b"<oops", 400, "InvalidXmlDocument"),
        ("PUT", "?restype=container&comp=acl", {}, b"x" * 70_000, 413, "RequestBodyTooLarge"),
        (
            "PUT",
            "?restype=container&comp=acl",
            {"x-ms-blob-public-access": "yes"},
            b"",
            400,
            "InvalidHeaderValue",
        ),
        ("PUT", "?restype=container&comp=metadata", {"x-ms-meta-": "v"}, b"", 400, "EmptyMetadataKey"),
        ("PUT", "?restype=container&comp=metadata", {"x-ms-meta-a-b": "v"}, b"", 400, "InvalidMetadata"),
        (
            "PUT",
            "?restype=container&comp=metadata",
            {"x-ms-meta-a": "v" * 9000},
            b"",
            400,
            "MetadataTooLarge",
        ),
        ("GET", "?restype=container&comp=nonsense", {}, b"", 400, "InvalidQueryParameterValue"),
        ("GET", "?restype=nonsense", {}, b"", 400, "InvalidQueryParameterValue"),
        ("POST", "?restype=container", {}, b"", 405, "UnsupportedHttpVerb"),
        ("GET", "?restype=container&comp=list&maxresults=0", {}, b"", 400, "OutOfRangeQueryParameterValue"),
        ("GET", "?restype=container&comp=list&maxresults=x", {}, b"", 400, "InvalidQueryParameterValue"),
        ("GET", "?restype=container&comp=list&marker=x", {}, b"", 400, "InvalidQueryParameterValue"),
        ("GET", "?restype=container&comp=list&include=x", {}, b"", 400, "InvalidQueryParameterValue"),
        ("GET", "?restype=container", {"x-ms-lease-id": "no guid"}, b"", 400, "InvalidHeaderValue"),
        ("GET", "?restype=container", {"x-ms-version": "latest"}, b"", 400, "InvalidHeaderValue"),
    ],
)
async def test_what_cannot_be_read_is_refused(
    blobs: Harness, method: str, target: str, headers: dict[str, str], body: bytes, status: int, code: str
) -> None:
    await create(blobs)
    before = await blobs("GET", "/box?restype=container")
    answer = await blobs(method, "/box" + target, headers, body)
    assert (answer.status, answer.code) == (status, code)
    assert answer.xml.findtext("Code") == code
    assert (await blobs("GET", "/box?restype=container")).headers["etag"] == before.headers["etag"]


async def test_time_conditions_of_deletion(blobs: Harness) -> None:
    await create(blobs)
    modified = (await blobs("GET", "/box?restype=container")).headers["last-modified"]
    refused = await blobs("DELETE", "/box?restype=container", {"If-Modified-Since": modified})
    assert (refused.status, refused.code) == (412, "ConditionNotMet")
    assert (await blobs("DELETE", "/box?restype=container", {"If-Unmodified-Since": modified})).status == 202


async def test_a_lease_id_is_a_condition_where_nothing_is_leased(blobs: Harness) -> None:
    await create(blobs)
    some_id = {"x-ms-lease-id": "11111111-1111-1111-1111-111111111111"}
    answer = await blobs("GET", "/box?restype=container", some_id)
    assert (answer.status, answer.code) == (412, "LeaseNotPresentWithContainerOperation")


async def test_every_answer_carries_the_common_headers(blobs: Harness) -> None:
    good = await blobs("PUT", "/box?restype=container", {"x-ms-client-request-id": "me-1"})
    bad = await blobs("PUT", "/box?restype=container", {"x-ms-client-request-id": "me-2"})
    for answer, client_id in ((good, "me-1"), (bad, "me-2")):
        assert answer.headers["x-ms-version"] == VERSION
        assert answer.headers["x-ms-client-request-id"] == client_id
        assert answer.headers["x-ms-request-id"]
        assert answer.headers["server"].startswith("Windows-Azure-Blob/1.0")
    assert good.headers["x-ms-request-id"] != bad.headers["x-ms-request-id"]


async def test_containers_are_listed_by_page_and_prefix(blobs: Harness) -> None:
    for name in ("abc", "box1", "box2", "box3", "zoo"):
        await create(blobs, name, **{"x-ms-meta-n": name})
    page = await blobs("GET", "/?comp=list&prefix=box&maxresults=2&include=metadata")
    assert [item.text for item in page.xml.iter("Name")] == ["box1", "box2"]
    assert [item.text for item in page.xml.iter("n")] == ["box1", "box2"]
    marker = page.xml.findtext("NextMarker")
    rest = await blobs("GET", f"/?comp=list&prefix=box&marker={marker}")
    assert [item.text for item in rest.xml.iter("Name")] == ["box3"]
    assert rest.xml.findtext("NextMarker") == ""
