"""Rename Container: everything moves to the new name, and only who may take the old name away can do it."""

import pytest
from azure.storage.blob import generate_account_sas

from tests.services.harness import OTHER, Answer, Harness
from tests.services.tokens import KEY, in_an_hour

BOX = "/box?restype=container"
BLOCK = {"x-ms-blob-type": "BlockBlob"}
ID = "11111111-1111-1111-1111-111111111111"
OTHER_ID = "22222222-2222-2222-2222-222222222222"
ACQUIRE = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1", "x-ms-proposed-lease-id": ID}


async def rename(blobs: Harness, source: str, target: str, lease_id: str = "", token: str = "") -> Answer:
    headers = {"x-ms-source-container-name": source}
    if lease_id:
        headers["x-ms-source-lease-id"] = lease_id
    query = f"restype=container&comp=rename{'&' if token else ''}{token}"
    return await blobs("PUT", f"/{target}?{query}", headers, sign=not token)


async def make(blobs: Harness) -> None:
    meta = {"x-ms-meta-Color": "blue", "x-ms-blob-public-access": "blob"}
    assert (await blobs("PUT", BOX, meta)).status == 201
    assert (await blobs("PUT", "/box/dir/b", BLOCK, b"hello")).status == 201


async def test_everything_moves_to_the_new_name(blobs: Harness) -> None:
    await make(blobs)
    before = await blobs("HEAD", BOX)
    assert (await rename(blobs, "box", "crate")).status == 200
    gone = await blobs("GET", "/box/dir/b")
    assert (gone.status, gone.code) == (404, "ContainerNotFound")
    assert (await blobs("GET", "/crate/dir/b", sign=False)).body == b"hello"
    after = await blobs("HEAD", "/crate?restype=container")
    assert after.headers["x-ms-meta-color"] == "blue"
    assert after.headers["etag"] != before.headers["etag"]
    listed = (await blobs("GET", "/?comp=list")).xml.iter("Container")
    assert [each.findtext("Name") for each in listed] == ["crate"]
    assert (await blobs("PUT", BOX)).status == 201
    assert (await blobs("GET", "/box/dir/b")).code == "BlobNotFound"


async def test_a_leased_container_needs_its_lease_which_moves_along(blobs: Harness) -> None:
    await make(blobs)
    await blobs("PUT", f"{BOX}&comp=lease", ACQUIRE)
    missing = await rename(blobs, "box", "crate")
    assert (missing.status, missing.code) == (412, "LeaseIdMissing")
    wrong = await rename(blobs, "box", "crate", OTHER_ID)
    assert (wrong.status, wrong.code) == (412, "LeaseIdMismatchWithContainerOperation")
    assert (await rename(blobs, "box", "crate", ID)).status == 200
    assert (await blobs("HEAD", "/crate?restype=container")).headers["x-ms-lease-state"] == "leased"
    unleased = await blobs("PUT", BOX)
    assert unleased.status == 201
    lost = await rename(blobs, "box", "chest", ID)
    assert (lost.status, lost.code) == (412, "LeaseNotPresentWithContainerOperation")


@pytest.mark.parametrize(
    ("source", "target", "status", "code"),
    [
        ("none", "crate", 404, "ContainerNotFound"),
        ("box", "taken", 409, "ContainerAlreadyExists"),
        ("box", "box", 409, "ContainerAlreadyExists"),
        ("Bad", "crate", 400, "InvalidResourceName"),
        ("x", "crate", 400, "OutOfRangeInput"),
        ("box", "Crate", 400, "InvalidResourceName"),
        ("box/dir", "crate", 400, "InvalidResourceName"),
    ],
)
async def test_renames_that_cannot_be(
    blobs: Harness, source: str, target: str, status: int, code: str
) -> None:
    await make(blobs)
    await blobs("PUT", "/taken?restype=container")
    answer = await rename(blobs, source, target)
    assert (answer.status, answer.code) == (status, code)
    assert (await blobs("GET", "/box/dir/b")).status == 200


async def test_the_source_and_its_lease_are_headers(blobs: Harness) -> None:
    await make(blobs)
    assert (await blobs("PUT", "/crate?restype=container&comp=rename")).code == "MissingRequiredHeader"
    assert (await rename(blobs, "box", "crate", "no guid")).code == "InvalidHeaderValue"


@pytest.mark.parametrize(
    ("kinds", "letters", "status"),
    [
        ("c", "wd", 200),
        ("sco", "rwdlacup", 200),
        ("c", "w", 403),
        ("c", "d", 403),
        ("c", "rcl", 403),
        ("o", "wd", 403),
    ],
)
async def test_a_token_must_allow_to_write_and_to_delete(
    blobs: Harness, kinds: str, letters: str, status: int
) -> None:
    await make(blobs)
    token = generate_account_sas("acme", KEY, kinds, letters, in_an_hour(blobs))
    assert (await rename(blobs, "box", "crate", token=token)).status == status
    assert (await blobs("HEAD", BOX)).status == (404 if status == 200 else 200)


async def test_never_from_another_account_or_without_credentials(blobs: Harness) -> None:
    await make(blobs)
    headers = {"x-ms-source-container-name": "box"}
    target = "/crate?restype=container&comp=rename"
    assert (await blobs("PUT", target, headers, account=OTHER)).code == "ContainerNotFound"
    assert (await blobs("PUT", target, headers, sign=False)).status == 401
