"""Snapshots: taken, read, listed, and deleted with their blob or without it."""

from urllib.parse import quote

from tests.services.harness import Harness

BLOCK = {"x-ms-blob-type": "BlockBlob"}


async def make(blobs: Harness, data: bytes = b"old") -> str:
    await blobs("PUT", "/box?restype=container")
    return (await blobs("PUT", "/box/b", BLOCK | {"x-ms-meta-a": "1"}, data)).headers["etag"]


async def take(blobs: Harness, headers: dict[str, str] | None = None) -> str:
    answer = await blobs("PUT", "/box/b?comp=snapshot", headers)
    assert answer.status == 201
    return quote(answer.headers["x-ms-snapshot"])


async def test_a_snapshot_keeps_what_was_there(blobs: Harness) -> None:
    for data in (b"old", b"x" * 100_000):
        etag = await make(blobs, data)
        at = await take(blobs)
        await blobs("PUT", "/box/b", BLOCK, b"new")
        kept = await blobs("GET", f"/box/b?snapshot={at}")
        assert (kept.body, kept.headers["etag"], kept.headers["x-ms-meta-a"]) == (data, etag, "1")
        assert "x-ms-lease-state" not in kept.headers
        assert (await blobs("GET", "/box/b")).body == b"new"


async def test_a_snapshot_with_metadata_is_a_version_of_its_own(blobs: Harness) -> None:
    etag = await make(blobs)
    at = await take(blobs, {"x-ms-meta-b": "2"})
    kept = await blobs("HEAD", f"/box/b?snapshot={at}")
    assert kept.headers["etag"] != etag
    assert (kept.headers["x-ms-meta-b"], "x-ms-meta-a" in kept.headers) == ("2", False)
    assert (await blobs("HEAD", "/box/b")).headers["etag"] == etag


async def test_a_blob_with_snapshots_is_not_deleted_without_a_word(blobs: Harness) -> None:
    await make(blobs)
    at = await take(blobs)
    refused = await blobs("DELETE", "/box/b")
    assert (refused.status, refused.code) == (409, "SnapshotsPresent")
    assert (await blobs("DELETE", "/box/b", {"x-ms-delete-snapshots": "only"})).status == 202
    assert (await blobs("GET", f"/box/b?snapshot={at}")).code == "BlobNotFound"
    assert (await blobs("GET", "/box/b")).status == 200
    await take(blobs)
    assert (await blobs("DELETE", "/box/b", {"x-ms-delete-snapshots": "include"})).status == 202
    assert (await blobs("GET", "/box/b")).code == "BlobNotFound"


async def test_one_snapshot_can_be_deleted(blobs: Harness) -> None:
    await make(blobs)
    first, second = await take(blobs), await take(blobs)
    both = await blobs("DELETE", f"/box/b?snapshot={first}", {"x-ms-delete-snapshots": "include"})
    assert both.status == 400
    assert (await blobs("DELETE", f"/box/b?snapshot={first}")).status == 202
    assert (await blobs("GET", f"/box/b?snapshot={first}")).code == "BlobNotFound"
    assert (await blobs("GET", f"/box/b?snapshot={second}")).status == 200


async def test_snapshots_are_never_written(blobs: Harness) -> None:
    await make(blobs)
    at = await take(blobs)
    for target in (
        f"/box/b?snapshot={at}",
        f"/box/b?snapshot={at}&comp=metadata",
        f"/box/b?snapshot={at}&comp=lease",
    ):
        answer = await blobs("PUT", target, BLOCK | {"x-ms-lease-action": "break"}, b"x")
        assert (answer.status, answer.code) == (400, "InvalidQueryParameterValue")
    assert (await blobs("GET", "/box/b?snapshot=yesterday")).code == "InvalidQueryParameterValue"


async def test_conditions_and_leases_on_snapshot_blob(blobs: Harness) -> None:
    etag = await make(blobs)
    assert (await blobs("PUT", "/box/b?comp=snapshot", {"If-Match": '"0x1"'})).status == 412
    assert (await blobs("PUT", "/box/b?comp=snapshot", {"If-None-Match": etag})).status == 412
    leased = await blobs(
        "PUT", "/box/b?comp=lease", {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1"}
    )
    await take(blobs)
    await take(blobs, {"x-ms-lease-id": leased.headers["x-ms-lease-id"]})
    wrong = await blobs("PUT", "/box/b?comp=snapshot", {"x-ms-lease-id": "1" * 32})
    assert (wrong.status, wrong.code) == (412, "LeaseIdMismatchWithBlobOperation")
