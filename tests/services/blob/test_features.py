"""What is not there yet is refused and not left out in silence."""

import pytest

from tests.services.harness import Harness

BLOCK = {"x-ms-blob-type": "BlockBlob"}


@pytest.mark.parametrize(
    ("method", "target", "headers"),
    [
        ("PUT", "/box/b", BLOCK | {"x-ms-encryption-key": "a2V5", "x-ms-encryption-algorithm": "AES256"}),
        ("PUT", "/box/b", BLOCK | {"x-ms-encryption-scope": "mine"}),
        ("PUT", "/box/b", BLOCK | {"x-ms-expiry-option": "NeverExpire"}),
        ("PUT", "/box/b?comp=block&blockid=YQ==", {"x-ms-encryption-key": "a2V5"}),
        ("PUT", "/none?restype=container", {"x-ms-default-encryption-scope": "mine"}),
        ("GET", "/box/b", {"x-ms-encryption-key": "a2V5"}),
        ("PUT", "/box/b?ses=scope", BLOCK),
    ],
)  # fmt: skip
async def test_it_is_refused_and_nothing_is_done(
    blobs: Harness, method: str, target: str, headers: dict[str, str]
) -> None:
    await blobs("PUT", "/box?restype=container")
    kept = await blobs("PUT", "/box/b", BLOCK, b"kept")
    has_body = "x-ms-blob-type" in headers or "comp=block&" in target
    answer = await blobs(method, target, headers, b"body" if has_body else b"")
    assert (answer.status, answer.code) == (501, "NotImplemented")
    assert (await blobs("HEAD", "/box/b")).headers["etag"] == kept.headers["etag"]
    assert (await blobs("HEAD", "/box/c")).status == 404
    assert (await blobs("HEAD", "/none?restype=container")).status == 404


@pytest.mark.parametrize(
    "part",
    ["permissions"],
)
@pytest.mark.parametrize("include", ["{}", "metadata,{}", "Snapshots,{}"])
async def test_a_listing_does_not_leave_out_what_it_cannot_include(
    blobs: Harness, include: str, part: str
) -> None:
    await blobs("PUT", "/box?restype=container")
    answer = await blobs("GET", f"/box?restype=container&comp=list&include={include.format(part)}")
    assert (answer.status, answer.code) == (501, "NotImplemented")


async def test_the_scope_that_every_account_has_may_be_named(blobs: Harness) -> None:
    scope = {"x-ms-default-encryption-scope": "$account-encryption-key"}
    assert (await blobs("PUT", "/box?restype=container", scope)).status == 201
