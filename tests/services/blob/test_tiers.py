"""Access tiers over REST: chosen at birth or later, returned everywhere, and the archive."""

import re

import pytest

from kyanite.wire import http_date
from tests.services.harness import Answer, Harness

BLOCK = {"x-ms-blob-type": "BlockBlob"}
LEASE = "11111111-1111-4111-8111-111111111111"
SOURCE = {"x-ms-copy-source": "http://localhost:10000/acme/box/b"}


async def make(blobs: Harness, tier: str = "", data: bytes = b"data") -> str:
    await blobs("PUT", "/box?restype=container")
    chosen = {"x-ms-access-tier": tier} if tier else {}
    put = await blobs("PUT", "/box/b", BLOCK | chosen, data)
    assert put.status == 201
    return put.headers["etag"]


async def set_tier(blobs: Harness, tier: str, target: str = "/box/b?comp=tier", **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await blobs("PUT", target, {"x-ms-access-tier": tier} | named)


async def tier_headers(blobs: Harness, name: str = "b") -> dict[str, str]:
    """What Get Blob Properties says, checked against the listing."""
    head = (await blobs("HEAD", f"/box/{name}")).headers
    headers = {
        key.removeprefix("x-ms-"): head[key]
        for key in head
        if "tier" in key or "archiv" in key or "rehy" in key
    }
    listing = (await blobs("GET", f"/box?restype=container&comp=list&prefix={name}")).body.decode()
    names = {
        "access-tier": "AccessTier",
        "access-tier-inferred": "AccessTierInferred",
        "access-tier-change-time": "AccessTierChangeTime",
        "smart-access-tier": "SmartAccessTier",
        "archive-status": "ArchiveStatus",
        "rehydrate-priority": "RehydratePriority",
    }
    listed = {
        key: found[1] for key, name in names.items() if (found := re.search(f"<{name}>([^<]*)", listing))
    }
    assert listed == headers
    return headers


def pass_by(blobs: Harness, seconds: int) -> None:
    blobs.clock.now = type(blobs.clock.now)(blobs.clock.now + seconds * 10_000_000)


async def test_a_tier_that_no_request_chose_is_inferred(blobs: Harness) -> None:
    await make(blobs)
    assert await tier_headers(blobs) == {"access-tier": "Hot", "access-tier-inferred": "true"}


@pytest.mark.parametrize("tier", ["Hot", "Cool", "Cold", "Smart", "Archive"])
async def test_a_tier_is_chosen_with_the_blob_or_later(blobs: Harness, tier: str) -> None:
    await make(blobs, tier)
    at_birth = await tier_headers(blobs)
    etag = await make(blobs) if tier != "Archive" else ""
    if etag:
        assert (await set_tier(blobs, tier.lower())).status == 200
        later = await tier_headers(blobs)
        assert (await blobs("HEAD", "/box/b")).headers["etag"] == etag
        assert later.keys() == at_birth.keys()
    assert at_birth["access-tier"] == tier
    assert "access-tier-inferred" not in at_birth
    assert at_birth.get("smart-access-tier") == ("Hot" if tier == "Smart" else None)


async def test_newer_versions_return_the_tier_with_the_bytes(blobs: Harness) -> None:
    await make(blobs, "Cool")
    assert (await blobs("GET", "/box/b", {"x-ms-version": "2026-10-06"})).headers[
        "x-ms-access-tier"
    ] == "Cool"
    assert "x-ms-access-tier" not in (await blobs("GET", "/box/b", {"x-ms-version": "2025-01-05"})).headers


@pytest.mark.parametrize(("priority", "seconds"), [("High", 10), ("Standard", 60)])
async def test_a_blob_comes_out_of_the_archive_in_time(blobs: Harness, priority: str, seconds: int) -> None:
    await make(blobs)
    assert (await set_tier(blobs, "Archive")).status == 200
    assert (await blobs("GET", "/box/b")).code == "BlobArchived"
    assert (await set_tier(blobs, "Cool", x_ms_rehydrate_priority=priority)).status == 202
    coming = await tier_headers(blobs)
    assert coming["access-tier"] == "Archive"
    assert coming["archive-status"] == "rehydrate-pending-to-cool"
    assert coming["rehydrate-priority"] == priority
    assert (await blobs("GET", "/box/b")).code == "BlobBeingRehydrated"
    assert (await set_tier(blobs, "Hot")).code == "BlobBeingRehydrated"
    pass_by(blobs, seconds + 1)
    there = await tier_headers(blobs)
    assert there["access-tier"] == "Cool"
    assert there.keys() == {"access-tier", "access-tier-change-time"}
    got = await blobs("GET", "/box/b", {"x-ms-version": "2026-10-06"})
    assert (got.body, got.headers["x-ms-access-tier"]) == (b"data", "Cool")
    assert (await set_tier(blobs, "Hot")).status == 200


@pytest.mark.parametrize(
    ("method", "target", "headers", "body"),
    [
        ("GET", "/box/b", {}, b""),
        ("GET", "/box/b", {"x-ms-range": "bytes=0-1"}, b""),
        ("PUT", "/box/b", BLOCK, b"new"),
        ("PUT", "/box/b?comp=metadata", {"x-ms-meta-a": "1"}, b""),
        ("PUT", "/box/b?comp=properties", {"x-ms-blob-content-type": "text/plain"}, b""),
        ("PUT", "/box/b?comp=snapshot", {}, b""),
        ("PUT", "/box/b?comp=blocklist", {}, b"<BlockList />"),
        ("PUT", "/box/b", {"x-ms-copy-source": "http://localhost:10000/acme/box/other"}, b""),
        ("PUT", "/box/copy", SOURCE, b""),
    ],
)
async def test_an_archived_blob_is_neither_read_nor_changed(
    blobs: Harness, method: str, target: str, headers: dict[str, str], body: bytes
) -> None:
    etag = await make(blobs, "Archive")
    await blobs("PUT", "/box/other", BLOCK, b"other")
    answer = await blobs(method, target, headers, body)
    assert (answer.status, answer.code) == (409, "BlobArchived")
    assert (await blobs("HEAD", "/box/b")).headers["etag"] == etag


async def test_an_archived_blob_has_properties_and_can_be_leased_and_deleted(blobs: Harness) -> None:
    await make(blobs, "Archive")
    assert (await blobs("GET", "/box/b?comp=metadata")).status == 200
    acquire = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1", "x-ms-proposed-lease-id": LEASE}
    assert (await blobs("PUT", "/box/b?comp=lease", acquire)).status == 201
    assert (await blobs("DELETE", "/box/b", {"x-ms-lease-id": LEASE})).status == 202


async def test_an_archived_blob_is_copied_to_a_tier(blobs: Harness) -> None:
    await make(blobs, "Archive")
    copy = await blobs(
        "PUT", "/box/copy", SOURCE | {"x-ms-access-tier": "Hot", "x-ms-rehydrate-priority": "High"}
    )
    assert (copy.status, copy.headers["x-ms-copy-status"]) == (202, "success")
    assert (await tier_headers(blobs, "copy"))["archive-status"] == "rehydrate-pending-to-hot"
    pass_by(blobs, 11)
    assert (await blobs("GET", "/box/copy")).body == b"data"
    assert (await blobs("GET", "/box/b")).code == "BlobArchived"
    assert (await blobs("PUT", "/box/kept", SOURCE | {"x-ms-access-tier": "Archive"})).status == 202
    assert (await tier_headers(blobs, "kept"))["access-tier"] == "Archive"


async def test_a_copy_does_not_take_over_the_tier(blobs: Harness) -> None:
    await make(blobs, "Cool")
    await blobs("PUT", "/box/copy", SOURCE)
    assert (await tier_headers(blobs, "copy"))["access-tier-inferred"] == "true"
    await blobs("PUT", "/box/cold", SOURCE | {"x-ms-access-tier": "Cold"})
    assert (await tier_headers(blobs, "cold"))["access-tier"] == "Cold"


async def test_a_snapshot_has_a_tier_of_its_own_and_stays_archived(blobs: Harness) -> None:
    await make(blobs)
    at = (await blobs("PUT", "/box/b?comp=snapshot")).headers["x-ms-snapshot"]
    target = f"/box/b?comp=tier&snapshot={at}"
    assert (await set_tier(blobs, "Archive", target)).status == 200
    assert (await tier_headers(blobs))["access-tier"] == "Hot"
    assert (await blobs("GET", f"/box/b?snapshot={at}")).code == "BlobArchived"
    assert (await set_tier(blobs, "Hot", target)).code == "BlobArchived"


async def test_a_leased_blob_needs_its_lease(blobs: Harness) -> None:
    await make(blobs)
    acquire = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "15", "x-ms-proposed-lease-id": LEASE}
    await blobs("PUT", "/box/b?comp=lease", acquire)
    assert (await set_tier(blobs, "Cool")).code == "LeaseIdMissing"
    assert (await set_tier(blobs, "Cool", x_ms_lease_id=LEASE.replace("1", "2"))).status == 412
    assert (await set_tier(blobs, "Cool", x_ms_lease_id=LEASE)).status == 200
    pass_by(blobs, 16)
    assert (await set_tier(blobs, "Cold")).status == 200
    assert (await blobs("HEAD", "/box/b")).headers["x-ms-lease-state"] == "expired"


@pytest.mark.parametrize("tier", ["", "Cool"])
@pytest.mark.parametrize(
    ("header", "before", "after"),
    [
        ("x-ms-access-tier-if-modified-since", 202, 412),
        ("x-ms-access-tier-if-unmodified-since", 412, 202),
    ],
)
async def test_a_delete_may_depend_on_when_the_tier_was_chosen(
    blobs: Harness, tier: str, header: str, before: int, after: int
) -> None:
    moments = {before: http_date.encode(blobs.clock.now)}
    pass_by(blobs, 100)
    for status in (before, after):
        await make(blobs, tier)
        moments[after] = http_date.encode(blobs.clock.now)
        pass_by(blobs, 100)
        answer = await blobs("DELETE", "/box/b", {header: moments[status]})
        assert answer.status == status
        assert (await blobs("HEAD", "/box/b")).status == (404 if status == 202 else 200)
        await blobs("DELETE", "/box/b")


@pytest.mark.parametrize(
    ("method", "target", "headers", "status", "code"),
    [
        ("PUT", "/box/b?comp=tier", {}, 400, "MissingRequiredHeader"),
        ("PUT", "/box/b?comp=tier", {"x-ms-access-tier": "Lukewarm"}, 400, "InvalidHeaderValue"),
        ("PUT", "/box/b?comp=tier", {"x-ms-access-tier": "P10"}, 400, "InvalidHeaderValue"),
        (
            "PUT",
            "/box/b?comp=tier",
            {"x-ms-access-tier": "Hot", "x-ms-rehydrate-priority": "Now"},
            400,
            "InvalidHeaderValue",
        ),
        ("PUT", "/box/none?comp=tier", {"x-ms-access-tier": "Hot"}, 404, "BlobNotFound"),
        ("PUT", "/none/b?comp=tier", {"x-ms-access-tier": "Hot"}, 404, "ContainerNotFound"),
        ("PUT", "/box/log?comp=tier", {"x-ms-access-tier": "Hot"}, 400, "AccessTierNotSupportedForBlobType"),
        (
            "PUT",
            "/box/new",
            {"x-ms-blob-type": "AppendBlob", "x-ms-access-tier": "Hot"},
            400,
            "AccessTierNotSupportedForBlobType",
        ),
        (
            "PUT",
            "/box/new",
            {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "512", "x-ms-access-tier": "P10"},
            400,
            "AccessTierNotSupportedForBlobType",
        ),
        (
            "PUT",
            "/box/new",
            {"x-ms-copy-source": "http://localhost:10000/acme/box/log", "x-ms-access-tier": "Cool"},
            400,
            "AccessTierNotSupportedForBlobType",
        ),
    ],
)
async def test_what_is_refused(
    blobs: Harness, method: str, target: str, headers: dict[str, str], status: int, code: str
) -> None:
    await make(blobs)
    await blobs("PUT", "/box/log", {"x-ms-blob-type": "AppendBlob"})
    answer = await blobs(method, target, headers)
    assert (answer.status, answer.code) == (status, code)
    assert (await tier_headers(blobs))["access-tier-inferred"] == "true"
    assert (await blobs("HEAD", "/box/new")).status == 404
