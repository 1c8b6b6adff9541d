"""Versions and soft delete over HTTP: what each request takes, what it answers, and what lists show."""

import re
from urllib.parse import quote

import pytest

from kyanite.model import settings
from kyanite.service_properties import DeleteRetention, Retention, ServiceProperties
from kyanite.values import Instant
from tests.services.harness import Answer, Harness
from tests.services.tokens import account_token, blob_token

BLOCK = {"x-ms-blob-type": "BlockBlob"}
PAGE = {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "512"}
DAY = 86_400 * 10_000_000
PROPERTIES = "/?restype=service&comp=properties"


async def keep(
    blobs: Harness, *, versioning: bool = False, days: int | None = None, permanent_delete: bool = False
) -> None:
    retention = DeleteRetention(Retention(days), permanent_delete)
    properties = ServiceProperties(versioning=versioning, delete_retention=retention)
    await settings.update(blobs.engine, "acme", "blob", properties)


async def make(blobs: Harness, **kept: bool | int) -> None:
    await blobs("PUT", "/box?restype=container")
    await keep(blobs, **kept)  # type: ignore[arg-type]


async def put(blobs: Harness, data: bytes = b"data", name: str = "b", **headers: str) -> str:
    """Returns the version id, if there is one."""
    answer = await blobs("PUT", f"/box/{name}", BLOCK | headers, data)
    assert answer.status == 201
    return answer.headers.get("x-ms-version-id", "")


def at(version: str) -> str:
    return f"/box/b?versionid={quote(version)}"


async def items(blobs: Harness, include: str = "", more: str = "") -> list[str]:
    """The items of a listing, by pages of one, without what the server makes up."""
    found: list[str] = []
    marker = ""
    while True:
        target = f"/box?restype=container&comp=list&include={include}&maxresults=1&marker={marker}{more}"
        answer = await blobs("GET", target)
        assert answer.status == 200
        text = answer.body.decode()
        found += re.findall(r"<Blob(?:Prefix)?>.*?</Blob(?:Prefix)?>", text)
        marker = quote(answer.xml.findtext("NextMarker") or "")
        if not marker:
            return found


def history_of(item: str) -> str:
    """Which of the elements about the history an item has, in their order, before its properties."""
    before = item.partition("<Properties>")[0]
    return " ".join(re.findall(r"<(Snapshot|VersionId|IsCurrentVersion|Deleted|HasVersionsOnly)>", before))


# Versions


async def test_every_write_that_makes_a_version_returns_its_id(blobs: Harness) -> None:
    await make(blobs, versioning=True)
    await put(blobs, name="s")
    source = {"x-ms-copy-source": f"http://localhost:10000/acme/box/s?{account_token(blobs, 'r')}"}
    await blobs("PUT", "/box/b?comp=block&blockid=QQ==", body=b"1")
    document = b"<BlockList><Latest>QQ==</Latest></BlockList>"
    ids = [
        (await blobs("PUT", "/box/b", BLOCK, b"1")).headers["x-ms-version-id"],
        (await blobs("PUT", "/box/b", source)).headers["x-ms-version-id"],
        (await blobs("PUT", "/box/b", source | {"x-ms-requires-sync": "true"})).headers["x-ms-version-id"],
        (await blobs("PUT", "/box/b", source | BLOCK)).headers["x-ms-version-id"],
        (await blobs("PUT", "/box/b?comp=metadata", {"x-ms-meta-a": "1"})).headers["x-ms-version-id"],
        (await blobs("PUT", "/box/b?comp=snapshot")).headers["x-ms-version-id"],
    ]
    await blobs("PUT", "/box/b?comp=block&blockid=QQ==", body=b"1")
    ids.append((await blobs("PUT", "/box/b?comp=blocklist", body=document)).headers["x-ms-version-id"])
    ids.append((await blobs("PUT", "/box/p", PAGE)).headers["x-ms-version-id"])
    ids.append((await blobs("PUT", "/box/a", {"x-ms-blob-type": "AppendBlob"})).headers["x-ms-version-id"])
    assert ids == sorted(set(ids))
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z", each) for each in ids)


async def test_other_writes_return_no_id(blobs: Harness) -> None:
    await make(blobs, versioning=True)
    version = await put(blobs)
    await blobs("PUT", "/box/p", PAGE)
    await blobs("PUT", "/box/a", {"x-ms-blob-type": "AppendBlob"})
    pages = {"x-ms-page-write": "update", "x-ms-range": "bytes=0-511"}
    for method, target, headers, body in (
        ("PUT", "/box/b?comp=properties", {}, b""),
        ("PUT", "/box/b?comp=tier", {"x-ms-access-tier": "Cool"}, b""),
        ("PUT", "/box/b?comp=lease", {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1"}, b""),
        ("PUT", "/box/b?comp=undelete", {}, b""),
        ("PUT", "/box/p?comp=page", pages, bytes(512)),
        ("PUT", "/box/p?comp=properties", {"x-ms-blob-content-length": "1024"}, b""),
        ("PUT", "/box/a?comp=appendblock", {}, b"1"),
        ("PUT", "/box/a?comp=seal", {}, b""),
    ):
        answer = await blobs(method, target, headers, body)
        assert answer.status < 300
        assert "x-ms-version-id" not in answer.headers
    assert (await blobs("HEAD", "/box/b")).headers["x-ms-version-id"] == version


async def test_headers_of_the_current_version_of_others_and_of_none(blobs: Harness) -> None:
    await make(blobs)
    await put(blobs, b"unversioned", name="u")
    await keep(blobs, versioning=True)
    first, second = await put(blobs, b"first"), await put(blobs, b"second")
    for method in ("GET", "HEAD"):
        for target in ("/box/b", at(second)):
            current = (await blobs(method, target)).headers
            assert (current["x-ms-version-id"], current["x-ms-is-current-version"]) == (second, "true")
            assert current["x-ms-lease-state"] == "available"
        previous = (await blobs(method, at(first))).headers
        assert previous["x-ms-version-id"] == first
        assert not {"x-ms-is-current-version", "x-ms-lease-state", "x-ms-lease-status"} & previous.keys()
        neither = (await blobs(method, "/box/u")).headers
        assert not {"x-ms-is-current-version", "x-ms-version-id"} & neither.keys()
    assert (await blobs("GET", at(first))).body == b"first"
    assert (await blobs("GET", at(first) + "&comp=metadata")).status == 200
    assert (await blobs("GET", at(first) + "&comp=blocklist")).status == 200


async def test_requests_that_take_no_version(blobs: Harness) -> None:
    await make(blobs, versioning=True)
    version = await put(blobs)
    source = {"x-ms-copy-source": f"http://localhost:10000/acme/box/b?{account_token(blobs, 'r')}"}
    for method, rest, headers, body in (
        ("PUT", "", BLOCK, b"1"),
        ("PUT", "", source, b""),
        ("PUT", "&comp=metadata", {}, b""),
        ("PUT", "&comp=properties", {}, b""),
        ("PUT", "&comp=lease", {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1"}, b""),
        ("PUT", "&comp=snapshot", {}, b""),
        ("PUT", "&comp=undelete", {}, b""),
        ("PUT", "&comp=block&blockid=QQ==", {}, b"1"),
        ("PUT", "&comp=blocklist", {}, b"<BlockList />"),
        ("PUT", "&comp=appendblock", {}, b"1"),
        ("GET", "&snapshot=2026-01-01T00:00:00.0000000Z", {}, b""),
    ):
        answer = await blobs(method, at(version) + rest, headers, body)
        assert (answer.status, answer.code) == (400, "InvalidQueryParameterValue")
    assert (await blobs("GET", "/box/b?versionid=yesterday")).code == "InvalidQueryParameterValue"
    assert (await blobs("GET", at("2026-01-01T00:00:00.0000000Z"))).code == "BlobNotFound"


async def test_deleting_versions(blobs: Harness) -> None:
    await make(blobs, versioning=True)
    first, second = await put(blobs), await put(blobs)
    current = await blobs("DELETE", at(second))
    assert (current.status, current.code) == (403, "OperationNotAllowedOnRootBlob")
    include = await blobs("DELETE", at(first), {"x-ms-delete-snapshots": "include"})
    assert include.status == 400
    gone = await blobs("DELETE", at(first))
    assert (gone.status, gone.headers["x-ms-delete-type-permanent"]) == (202, "true")
    assert (await blobs("DELETE", at(first))).code == "BlobNotFound"
    base = await blobs("DELETE", "/box/b")
    assert (base.status, base.headers["x-ms-delete-type-permanent"]) == (202, "false")
    assert "x-ms-version-id" not in base.headers
    assert (await blobs("GET", "/box/b")).code == "BlobNotFound"
    assert (await blobs("DELETE", at(second))).status == 202


async def test_a_version_is_promoted_by_a_copy(blobs: Harness) -> None:
    await make(blobs, versioning=True)
    first = await put(blobs, b"first")
    await put(blobs, b"second")
    await blobs("DELETE", "/box/b")
    source = f"http://localhost:10000/acme/box/b?versionid={first}"
    for _ in range(2):
        promoted = await blobs("PUT", "/box/b", {"x-ms-copy-source": source})
        assert (promoted.status, promoted.headers["x-ms-copy-status"]) == (202, "success")
    properties = await blobs("GET", "/box/b")
    assert properties.body == b"first"
    assert properties.headers["x-ms-version-id"] == promoted.headers["x-ms-version-id"]
    assert properties.headers["x-ms-copy-source"].endswith(f"versionid={first}")
    missing = source.replace("20", "19", 1)
    answer = await blobs("PUT", "/box/b", {"x-ms-copy-source": missing})
    assert (answer.status, answer.code) == (404, "CannotVerifyCopySource")


async def test_another_type_beside_versions(blobs: Harness) -> None:
    await make(blobs, versioning=True)
    await put(blobs)
    assert (await blobs("PUT", "/box/b", PAGE)).code == "InvalidBlobType"
    await blobs("DELETE", "/box/b")
    assert (await blobs("PUT", "/box/b", PAGE)).code == "InvalidBlobType"


async def test_the_tier_of_a_version(blobs: Harness) -> None:
    await make(blobs, versioning=True)
    first = await put(blobs)
    await put(blobs)
    assert (await blobs("PUT", at(first) + "&comp=tier", {"x-ms-access-tier": "Cool"})).status == 200
    assert (await blobs("HEAD", at(first))).headers["x-ms-access-tier"] == "Cool"
    assert (await blobs("HEAD", "/box/b")).headers["x-ms-access-tier"] == "Hot"


# Tokens


async def token_answer(blobs: Harness, method: str, target: str, token: str) -> Answer:
    return await blobs(method, f"{target}{'&' if '?' in target else '?'}{token}", sign=False)


async def test_what_tokens_need(blobs: Harness) -> None:
    await make(blobs, versioning=True, days=7, permanent_delete=True)
    first, _ = await put(blobs), await put(blobs)
    for letters in ("rwdlacutfi", "rwdylacutfi"):
        refused = await token_answer(blobs, "DELETE", at(first), account_token(blobs, letters))
        assert (refused.status, refused.code) == (403, "AuthorizationPermissionMismatch")
    assert (await token_answer(blobs, "GET", at(first), account_token(blobs, "r"))).status == 200
    assert (await token_answer(blobs, "DELETE", at(first), account_token(blobs, "x"))).status == 202
    end = at(first) + "&deletetype=permanent"
    refused = await token_answer(blobs, "DELETE", end, account_token(blobs, "rwdxlacutfi"))
    assert (refused.status, refused.code) == (403, "AuthorizationPermissionMismatch")
    assert (await token_answer(blobs, "DELETE", end, account_token(blobs, "y"))).status == 202


async def test_a_token_for_one_version(blobs: Harness) -> None:
    await make(blobs, versioning=True)
    first, second = await put(blobs, b"1"), await put(blobs, b"2")
    token = blob_token(blobs, "b", permission="rx", version=first)
    assert (await token_answer(blobs, "GET", at(first), token)).body == b"1"
    for target in (at(second), "/box/b"):
        assert (await token_answer(blobs, "GET", target, token)).code == "AuthenticationFailed"
    assert (await token_answer(blobs, "DELETE", at(first), token)).status == 202
    made = (await blobs("PUT", "/box/b?comp=snapshot")).headers
    assert made["x-ms-snapshot"] == made["x-ms-version-id"]
    current = blob_token(blobs, "b", permission="r", version=made["x-ms-version-id"])
    assert (await token_answer(blobs, "GET", at(made["x-ms-version-id"]), current)).status == 200
    snapshot = f"/box/b?snapshot={quote(made['x-ms-snapshot'])}"
    assert (await token_answer(blobs, "GET", snapshot, current)).code == "AuthenticationFailed"
    whole = blob_token(blobs, "b", permission="rd")
    assert (await token_answer(blobs, "GET", at(second), whole)).status == 200
    assert (await token_answer(blobs, "DELETE", at(second), whole)).code == "AuthorizationPermissionMismatch"


# Soft delete


async def test_the_policy_is_set_with_the_properties_of_the_service(blobs: Harness) -> None:
    await blobs("PUT", "/box?restype=container")
    policy = "<DeleteRetentionPolicy><Enabled>true</Enabled><Days>7</Days></DeleteRetentionPolicy>"
    document = f"<StorageServiceProperties>{policy}</StorageServiceProperties>"
    assert (await blobs("PUT", PROPERTIES, body=document.encode())).status == 202
    found = (await blobs("GET", PROPERTIES)).xml
    assert found.findtext("DeleteRetentionPolicy/Days") == "7"
    await put(blobs)
    deleted = await blobs("DELETE", "/box/b")
    assert deleted.headers["x-ms-delete-type-permanent"] == "false"
    for days in ("0", "366"):
        bad = document.replace(">7<", f">{days}<")
        answer = await blobs("PUT", PROPERTIES, body=bad.encode())
        assert (answer.status, answer.code) == (400, "InvalidXmlNodeValue")


async def test_a_deleted_blob_is_invisible_until_it_is_restored(blobs: Harness) -> None:
    await make(blobs, days=7)
    acquire = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1"}
    await put(blobs, b"kept", **{"x-ms-meta-a": "1"})
    etag = (await blobs("HEAD", "/box/b")).headers["etag"]
    lease = (await blobs("PUT", "/box/b?comp=lease", acquire)).headers["x-ms-lease-id"]
    assert (await blobs("DELETE", "/box/b")).code == "LeaseIdMissing"
    deleted = await blobs("DELETE", "/box/b", {"x-ms-lease-id": lease})
    assert (deleted.status, deleted.headers["x-ms-delete-type-permanent"]) == (202, "false")
    source = {"x-ms-copy-source": "http://localhost:10000/acme/box/b"}
    for method, target, headers in (
        ("GET", "/box/b", {}),
        ("HEAD", "/box/b", {}),
        ("DELETE", "/box/b", {}),
        ("PUT", "/box/b?comp=metadata", {}),
        ("PUT", "/box/b?comp=tier", {"x-ms-access-tier": "Cool"}),
        ("PUT", "/box/b?comp=lease", acquire),
        ("PUT", "/box/b?comp=snapshot", {}),
    ):
        answer = await blobs(method, target, headers)
        assert (answer.status, answer.headers["x-ms-error-code"]) == (404, "BlobNotFound")
    assert (await blobs("PUT", "/box/c", source)).code == "CannotVerifyCopySource"
    assert await items(blobs) == []
    assert (await blobs("PUT", "/box/b?comp=undelete")).status == 200
    restored = await blobs("GET", "/box/b")
    assert (restored.body, restored.headers["etag"], restored.headers["x-ms-meta-a"]) == (b"kept", etag, "1")
    assert restored.headers["x-ms-lease-state"] == "available"
    assert (await blobs("PUT", "/box/b?comp=undelete")).status == 200
    assert (await blobs("PUT", "/box/none?comp=undelete")).code == "BlobNotFound"


async def test_a_new_blob_with_the_name_of_a_deleted_one(blobs: Harness) -> None:
    await make(blobs, days=7)
    await put(blobs, b"1")
    await blobs("DELETE", "/box/b")
    assert (await blobs("PUT", "/box/b", BLOCK | {"If-None-Match": "*"}, b"2")).status == 201
    await put(blobs, b"3")
    await blobs("PUT", "/box/b?comp=undelete")
    assert [history_of(item) for item in await items(blobs, "snapshots")] == ["Snapshot", "Snapshot", ""]
    await blobs("DELETE", "/box/b", {"x-ms-delete-snapshots": "include"})
    assert (await blobs("PUT", "/box/b", PAGE)).status == 201
    assert len(await items(blobs, "snapshots,deleted")) == 1, "another type ends what was deleted"


async def test_staged_blocks_with_the_name_of_a_deleted_blob(blobs: Harness) -> None:
    await make(blobs, days=7)
    await put(blobs, b"1")
    await blobs("DELETE", "/box/b")
    assert (await blobs("PUT", "/box/b?comp=block&blockid=QQ==", body=b"1")).status == 201
    found = [history_of(item) for item in await items(blobs, "snapshots,deleted,uncommittedblobs")]
    assert found == ["Snapshot Deleted", ""]


async def test_nothing_is_restored_after_its_time(blobs: Harness) -> None:
    await make(blobs, days=2)
    await put(blobs, b"1")
    await blobs("DELETE", "/box/b")
    await keep(blobs, days=1)
    blobs.clock.now = Instant(blobs.clock.now + 2 * DAY - 10_000_000)
    (item,) = await items(blobs, "deleted")
    assert "<RemainingRetentionDays>0</RemainingRetentionDays>" in item
    blobs.clock.now = Instant(blobs.clock.now + 20_000_000)
    assert await items(blobs, "deleted") == []
    assert (await blobs("PUT", "/box/b?comp=undelete")).code == "BlobNotFound"
    await put(blobs, b"2")
    assert len(await items(blobs, "deleted,snapshots")) == 1


async def test_deleted_snapshots_and_the_switch(blobs: Harness) -> None:
    await make(blobs, days=7)
    await put(blobs)
    snapshot = quote((await blobs("PUT", "/box/b?comp=snapshot")).headers["x-ms-snapshot"])
    deleted = await blobs("DELETE", f"/box/b?snapshot={snapshot}")
    assert deleted.headers["x-ms-delete-type-permanent"] == "false"
    assert (await blobs("GET", f"/box/b?snapshot={snapshot}")).code == "BlobNotFound"
    await keep(blobs)
    assert (await blobs("DELETE", "/box/b")).code == "SnapshotsPresent"
    await keep(blobs, days=7)
    assert (await blobs("DELETE", "/box/b")).status == 202
    await blobs("PUT", "/box/b?comp=undelete")
    assert (await blobs("GET", f"/box/b?snapshot={snapshot}")).status == 200


async def test_undelete_while_versions_are_kept(blobs: Harness) -> None:
    await make(blobs, versioning=True, days=7)
    first = await put(blobs, b"1")
    await put(blobs, b"2")
    deleted = await blobs("DELETE", at(first))
    assert deleted.headers["x-ms-delete-type-permanent"] == "false"
    assert (await blobs("GET", at(first))).code == "BlobNotFound"
    await blobs("DELETE", "/box/b")
    assert (await blobs("PUT", "/box/b?comp=undelete")).status == 200
    assert (await blobs("GET", at(first))).body == b"1"
    assert (await blobs("GET", "/box/b")).code == "BlobNotFound"


# Permanent delete


async def test_permanent_delete(blobs: Harness) -> None:
    await make(blobs, versioning=True, days=7)
    first, second = await put(blobs), await put(blobs)
    await blobs("DELETE", at(first))
    for allowed, target in (
        (False, at(first)),
        (True, at(second)),
        (True, "/box/b?a=1"),
    ):
        await keep(blobs, versioning=True, days=7, permanent_delete=allowed)
        answer = await blobs("DELETE", target + "&deletetype=permanent")
        assert (answer.status, answer.code) == (400, "InvalidQueryParameterValue")
    assert (await blobs("DELETE", at(first) + "&deletetype=soft")).status == 400
    gone = await blobs("DELETE", at(first) + "&deletetype=Permanent")
    assert (gone.status, gone.headers["x-ms-delete-type-permanent"]) == (202, "true")
    assert (await blobs("DELETE", at(first) + "&deletetype=permanent")).code == "BlobNotFound"
    await blobs("PUT", "/box/b?comp=undelete")
    assert (await blobs("GET", at(first))).code == "BlobNotFound"


# Lists


async def make_all(blobs: Harness) -> None:
    """In ``b``: a deleted and an active version, a snapshot, the current version. In ``a/p``: versions only."""
    await make(blobs, versioning=True, days=7)
    await put(blobs, name="a/p")
    await blobs("DELETE", "/box/a/p")
    first = await put(blobs, b"1")
    await put(blobs, b"2")
    await blobs("PUT", "/box/b?comp=snapshot")
    await blobs("DELETE", at(first))
    await keep(blobs, days=7)
    await put(blobs, name="d")
    await blobs("DELETE", "/box/d")
    blobs.clock.now = Instant(blobs.clock.now + 10_000_000)


LISTS = {
    "": [""],
    "metadata,copy": [""],
    "versions": ["VersionId", "VersionId", "VersionId IsCurrentVersion"],
    "snapshots": ["Snapshot", ""],
    "deleted": ["", "Deleted"],
    "deletedwithversions": ["HasVersionsOnly", ""],
    "snapshots,versions": ["VersionId", "VersionId", "Snapshot", "VersionId IsCurrentVersion"],
    "versions,deleted": [
        "VersionId",
        "VersionId Deleted",
        "VersionId",
        "VersionId IsCurrentVersion",
        "Deleted",
    ],
    "snapshots,deleted": ["Snapshot", "", "Deleted"],
    "deleted,deletedwithversions": ["HasVersionsOnly", "", "Deleted"],
    "snapshots,versions,deleted,deletedwithversions,metadata,copy,uncommittedblobs": [
        "VersionId",
        "HasVersionsOnly",
        "VersionId Deleted",
        "VersionId",
        "Snapshot",
        "VersionId IsCurrentVersion",
        "Deleted",
    ],
}


@pytest.mark.parametrize("include", LISTS)
async def test_what_lists_include(blobs: Harness, include: str) -> None:
    await make_all(blobs)
    assert [history_of(item) for item in await items(blobs, include)] == LISTS[include]


async def test_lists_by_a_delimiter(blobs: Harness) -> None:
    await make_all(blobs)
    for include, folders in (("versions", 1), ("deletedwithversions", 1), ("deleted", 0)):
        found = await items(blobs, include, "&delimiter=/")
        assert [item for item in found if "<BlobPrefix>" in item] == [
            "<BlobPrefix><Name>a/</Name></BlobPrefix>"
        ] * folders
    refused = await blobs("GET", "/box?restype=container&comp=list&include=snapshots&delimiter=/")
    assert refused.status == 400


async def test_elements_of_items(blobs: Harness) -> None:
    await make_all(blobs)
    _, deleted, previous, current, base = await items(blobs, "versions,deleted")
    for item in (deleted, base):
        assert "<LeaseStatus /><ServerEncrypted>true</ServerEncrypted><DeletedTime>" in item
        assert "<RemainingRetentionDays>6</RemainingRetentionDays></Properties>" in item
        assert "LeaseState" not in item
    assert "Lease" not in previous
    assert "<LeaseStatus>unlocked</LeaseStatus><LeaseState>available</LeaseState>" in current
    only, *_ = await items(blobs, "deletedwithversions")
    assert only.startswith("<Blob><Name>a/p</Name><HasVersionsOnly>true</HasVersionsOnly><Properties>")
    assert "<LeaseStatus>unlocked</LeaseStatus><LeaseState>available</LeaseState>" in only
    assert "VersionId" not in only
