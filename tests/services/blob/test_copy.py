"""Copies between blobs of this server: by reference, with conditions on both sides, and who may read the source."""

import base64
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import pytest
from azure.storage.blob import BlobSasPermissions, generate_blob_sas

from tests.services.harness import ACCOUNT, OTHER, Harness

BLOCK = {"x-ms-blob-type": "BlockBlob"}
HERE = "http://localhost:10000"


def source_url(name: str = "src", query: str = "", account: str = "acme") -> str:
    return f"{HERE}/{account}/box/{name}{query}"


async def make(blobs: Harness, data: bytes = b"source") -> str:
    await blobs("PUT", "/box?restype=container")
    headers = BLOCK | {"x-ms-meta-a": "1", "x-ms-blob-content-type": "text/plain"}
    return (await blobs("PUT", "/box/src", headers, data)).headers["etag"]


def signature(blobs: Harness, name: str, permission: str = "r") -> str:
    now = datetime(1, 1, 1, tzinfo=UTC) + timedelta(microseconds=blobs.clock.now // 10)
    return str(
        generate_blob_sas(
            "acme",
            "box",
            name,
            account_key=base64.b64encode(ACCOUNT.keys[0]).decode(),
            permission=BlobSasPermissions.from_string(permission),
            expiry=now + timedelta(hours=1),
        )
    )


@pytest.mark.parametrize("data", [b"", b"source", b"x" * 200_000])
async def test_a_copy_has_everything_of_its_source(blobs: Harness, data: bytes) -> None:
    etag = await make(blobs, data)
    answer = await blobs("PUT", "/box/dst", {"x-ms-copy-source": source_url()})
    assert (answer.status, answer.headers["x-ms-copy-status"]) == (202, "success")
    got = await blobs("GET", "/box/dst")
    assert (got.body, got.headers["content-type"], got.headers["x-ms-meta-a"]) == (data, "text/plain", "1")
    assert got.headers["etag"] == answer.headers["etag"] != etag
    assert got.headers["x-ms-copy-id"] == answer.headers["x-ms-copy-id"]
    assert got.headers["x-ms-copy-source"] == source_url()
    assert got.headers["x-ms-copy-progress"] == f"{len(data)}/{len(data)}"
    await blobs("DELETE", "/box/src")
    assert (await blobs("GET", "/box/dst")).body == data


async def test_metadata_on_the_request_replaces_the_sources(blobs: Harness) -> None:
    await make(blobs)
    await blobs("PUT", "/box/dst", {"x-ms-copy-source": source_url(), "x-ms-meta-b": "2"})
    got = await blobs("HEAD", "/box/dst")
    assert ("x-ms-meta-a" in got.headers, got.headers["x-ms-meta-b"]) == (False, "2")


async def test_a_snapshot_can_be_copied_over_its_own_blob(blobs: Harness) -> None:
    await make(blobs)
    at = (await blobs("PUT", "/box/src?comp=snapshot")).headers["x-ms-snapshot"]
    await blobs("PUT", "/box/src", BLOCK, b"later")
    restored = await blobs(
        "PUT", "/box/src", {"x-ms-copy-source": source_url(query=f"?snapshot={quote(at)}")}
    )
    assert restored.status == 202
    assert (await blobs("GET", "/box/src")).body == b"source"


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"x-ms-source-if-match": '"0x1"'}, 412, "SourceConditionNotMet"),
        ({"x-ms-source-if-none-match": "ETAG"}, 412, "SourceConditionNotMet"),
        ({"x-ms-source-if-match": "ETAG"}, 202, ""),
        ({"If-None-Match": "*"}, 409, "BlobAlreadyExists"),
        ({"If-Match": '"0x1"'}, 412, "ConditionNotMet"),
        ({"x-ms-copy-source": source_url("none")}, 404, "CannotVerifyCopySource"),
        ({"x-ms-copy-source": "http://elsewhere.example/box/src"}, 404, "CannotVerifyCopySource"),
        ({"x-ms-copy-source": source_url(account="other")}, 401, "CannotVerifyCopySource"),
        ({"x-ms-copy-source": "not a url"}, 400, "InvalidHeaderValue"),
        ({"x-ms-requires-sync": "true"}, 401, "CannotVerifyCopySource"),
    ],
)
async def test_what_is_demanded_of_both_sides(
    blobs: Harness, headers: dict[str, str], status: int, code: str
) -> None:
    etag = await make(blobs)
    await blobs("PUT", "/box/dst", BLOCK, b"old")
    await blobs("PUT", "/box?restype=container", account=OTHER)
    sent = {"x-ms-copy-source": source_url()} | headers
    answer = await blobs("PUT", "/box/dst", {k: etag if v == "ETAG" else v for k, v in sent.items()})
    assert (answer.status, answer.code) == (status, code)


async def test_the_source_may_have_to_be_leased(blobs: Harness) -> None:
    await make(blobs)
    lease, other = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"

    async def copied(lease_id: str) -> tuple[int, str]:
        headers = {"x-ms-copy-source": source_url(), "x-ms-source-lease-id": lease_id}
        answer = await blobs("PUT", "/box/dst", headers)
        return answer.status, answer.code

    assert await copied(lease) == (412, "LeaseNotPresentWithBlobOperation")
    acquire = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1", "x-ms-proposed-lease-id": lease}
    await blobs("PUT", "/box/src?comp=lease", acquire)
    assert await copied(other) == (412, "LeaseIdMismatchWithBlobOperation")
    assert await copied("nonsense") == (400, "InvalidHeaderValue")
    assert (await blobs("HEAD", "/box/dst")).status == 404
    assert await copied(lease) == (202, "")


async def test_an_archived_source_is_copied_within_its_account_only(blobs: Harness) -> None:
    await make(blobs)
    await blobs("PUT", "/box?restype=container", account=OTHER)
    assert (await blobs("PUT", "/box/src?comp=tier", {"x-ms-access-tier": "Archive"})).status == 200
    signed = {"x-ms-copy-source": source_url(query="?" + signature(blobs, "src"))}
    for tier in ({}, {"x-ms-access-tier": "Hot"}):
        refused = await blobs("PUT", "/box/dst", signed | tier, account=OTHER)
        assert (refused.status, refused.code) == (409, "CannotVerifyCopySource")
    assert (await blobs("PUT", "/box/dst", signed | {"x-ms-access-tier": "Hot"})).status == 202


async def test_a_signature_opens_the_source_for_another_account(blobs: Harness) -> None:
    await make(blobs)
    await blobs("PUT", "/box?restype=container", account=OTHER)
    signed = {"x-ms-copy-source": source_url(query="?" + signature(blobs, "src"))}
    for sync in ({}, {"x-ms-requires-sync": "true"}):
        answer = await blobs("PUT", "/box/dst", signed | sync, account=OTHER)
        assert answer.status == 202, answer
    returned = (await blobs("HEAD", "/box/dst", account=OTHER)).headers["x-ms-copy-source"]
    assert returned == source_url()
    weak = {"x-ms-copy-source": source_url(query="?" + signature(blobs, "src", "w"))}
    refused = await blobs("PUT", "/box/dst", weak, account=OTHER)
    assert (refused.status, refused.code) == (403, "CannotVerifyCopySource")
    assert refused.xml.findtext("CopySourceErrorCode") == "AuthorizationPermissionMismatch"


async def test_a_public_source_needs_no_signature(blobs: Harness) -> None:
    await make(blobs)
    await blobs("PUT", "/box?restype=container&comp=acl", {"x-ms-blob-public-access": "blob"})
    await blobs("PUT", "/box?restype=container", account=OTHER)
    answer = await blobs("PUT", "/box/dst", {"x-ms-copy-source": source_url()}, account=OTHER)
    assert answer.status == 202


async def test_a_leased_destination_needs_its_id_and_an_infinite_lease(blobs: Harness) -> None:
    await make(blobs)
    await blobs("PUT", "/box/dst", BLOCK, b"old")
    for seconds, status, code in (("15", 412, "InfiniteLeaseDurationRequired"), ("-1", 202, "")):
        lease = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": seconds}
        lease_id = (await blobs("PUT", "/box/dst?comp=lease", lease)).headers["x-ms-lease-id"]
        sent = {"x-ms-copy-source": source_url()}
        assert (await blobs("PUT", "/box/dst", sent)).code == "LeaseIdMissing"
        answer = await blobs("PUT", "/box/dst", sent | {"x-ms-lease-id": lease_id})
        assert (answer.status, answer.code) == (status, code)
        release = {"x-ms-lease-action": "release", "x-ms-lease-id": lease_id}
        assert (await blobs("PUT", "/box/dst?comp=lease", release)).status == 200


async def test_a_copy_is_done_when_it_is_answered_so_none_can_be_aborted(blobs: Harness) -> None:
    await make(blobs)
    copied = await blobs("PUT", "/box/dst", {"x-ms-copy-source": source_url()})
    abort = {"x-ms-copy-action": "abort"}
    late = await blobs("PUT", f"/box/dst?comp=copy&copyid={copied.headers['x-ms-copy-id']}", abort)
    assert (late.status, late.code) == (409, "NoPendingCopyOperation")
    other = await blobs("PUT", f"/box/dst?comp=copy&copyid={'1' * 8}", abort)
    assert (other.status, other.code) == (409, "CopyIdMismatch")


async def test_copies_are_listed_on_request(blobs: Harness) -> None:
    await make(blobs)
    await blobs("PUT", "/box/dst", {"x-ms-copy-source": source_url()})
    plain = await blobs("GET", "/box?restype=container&comp=list")
    listed = await blobs("GET", "/box?restype=container&comp=list&include=copy")
    assert plain.xml.find(".//CopyId") is None
    assert [element.text for element in listed.xml.iter("CopyStatus")] == ["success"]
