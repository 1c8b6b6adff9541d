"""Blocks: staged, committed by lists, listed, replaced, and given up."""

import base64
from datetime import UTC, datetime, timedelta

import pytest
from azure.storage.blob import BlobSasPermissions, generate_blob_sas

from tests.services.harness import ACCOUNT, Answer, Harness, md5_text

BLOCK = {"x-ms-blob-type": "BlockBlob"}
LIST = "/box?restype=container&comp=list"


def ident(number: int) -> str:
    return base64.b64encode(f"{number:04}".encode()).decode()


async def stage(blobs: Harness, number: int, data: bytes, headers: dict[str, str] | None = None) -> Answer:
    await blobs("PUT", "/box?restype=container")
    return await blobs("PUT", f"/box/b?comp=block&blockid={ident(number)}", headers, data)


async def commit(blobs: Harness, *entries: tuple[str, int], headers: dict[str, str] | None = None) -> Answer:
    items = "".join(f"<{source}>{ident(number)}</{source}>" for source, number in entries)
    body = f'<?xml version="1.0" encoding="utf-8"?><BlockList>{items}</BlockList>'.encode()
    return await blobs("PUT", "/box/b?comp=blocklist", headers, body)


async def lists(blobs: Harness, kind: str = "all") -> tuple[list[str], list[str]]:
    answer = await blobs("GET", f"/box/b?comp=blocklist&blocklisttype={kind}")
    assert answer.status == 200
    found = [
        [
            base64.b64decode(name.text or "").decode()
            for name in answer.xml.findall(f"{part}Blocks/Block/Name")
        ]
        for part in ("Committed", "Uncommitted")
    ]
    return found[0], found[1]


async def test_a_list_makes_a_blob_of_its_blocks(blobs: Harness) -> None:
    parts = [b"a" * 10, b"b" * 50_000, b"c" * 3]
    for number, data in enumerate(parts):
        staged = await stage(blobs, number, data)
        assert staged.status == 201
        assert "etag" not in staged.headers
    assert (await blobs("GET", "/box/b")).code == "BlobNotFound"
    assert await lists(blobs) == ([], ["0000", "0001", "0002"])
    headers = {"x-ms-blob-content-type": "text/x", "x-ms-meta-a": "1", "Content-Type": "application/xml"}
    made = await commit(blobs, ("Latest", 2), ("Uncommitted", 0), ("Latest", 1), headers=headers)
    assert made.status == 201
    got = await blobs("GET", "/box/b")
    assert got.body == parts[2] + parts[0] + parts[1]
    assert (got.headers["content-type"], got.headers["x-ms-meta-a"]) == ("text/x", "1")
    assert got.headers["etag"] == made.headers["etag"]
    assert "content-md5" not in got.headers
    assert await lists(blobs) == (["0002", "0000", "0001"], [])
    part = await blobs("GET", "/box/b", {"Range": "bytes=1-20"})
    assert part.body == got.body[1:21]


async def test_committed_blocks_can_be_kept_dropped_repeated_and_mixed_with_new_ones(blobs: Harness) -> None:
    for number in range(3):
        await stage(blobs, number, f"<{number}>".encode())
    await commit(blobs, *(("Latest", n) for n in range(3)))
    await stage(blobs, 1, b"[new 1]")
    await stage(blobs, 3, b"[new 3]")
    order = (("Committed", 2), ("Latest", 1), ("Committed", 1), ("Uncommitted", 3), ("Committed", 2))
    assert (await commit(blobs, *order)).status == 201
    assert (await blobs("GET", "/box/b")).body == b"<2>[new 1]<1>[new 3]<2>"


@pytest.mark.parametrize("entries", [(("Committed", 1),), (("Uncommitted", 0),), (("Latest", 7),)])
async def test_a_block_that_is_not_where_the_list_says_spoils_the_list(
    blobs: Harness, entries: tuple[tuple[str, int], ...]
) -> None:
    await stage(blobs, 0, b"zero")
    await commit(blobs, ("Latest", 0))
    await stage(blobs, 1, b"one")
    answer = await commit(blobs, *entries)
    assert (answer.status, answer.code) == (400, "InvalidBlockList")
    assert (await blobs("GET", "/box/b")).body == b"zero"
    assert await lists(blobs) == (["0000"], ["0001"])


async def test_blocks_that_are_not_in_the_list_are_dropped(blobs: Harness) -> None:
    await stage(blobs, 0, b"zero")
    await stage(blobs, 1, b"one")
    await commit(blobs, ("Latest", 0))
    assert await lists(blobs) == (["0000"], [])
    assert (await commit(blobs, ("Latest", 1))).code == "InvalidBlockList"


async def test_put_blob_copy_and_delete_give_staged_blocks_up(blobs: Harness) -> None:
    for act in ("put", "copy", "delete"):
        await stage(blobs, 0, b"zero")
        await blobs("PUT", "/box/src", BLOCK, b"source")
        if act == "put":
            await blobs("PUT", "/box/b", BLOCK, b"whole")
        elif act == "copy":
            await blobs("PUT", "/box/b", {"x-ms-copy-source": "http://localhost:10000/acme/box/src"})
        else:
            await blobs("DELETE", "/box/b")
        assert (await commit(blobs, ("Latest", 0))).code == "InvalidBlockList"
        await blobs("DELETE", "/box/b")


async def test_an_empty_list_makes_an_empty_blob(blobs: Harness) -> None:
    await stage(blobs, 0, b"zero")
    assert (await commit(blobs)).status == 201
    assert (await blobs("GET", "/box/b")).body == b""


async def test_staging_again_replaces_the_block(blobs: Harness) -> None:
    await stage(blobs, 0, b"first")
    await stage(blobs, 0, b"second")
    await commit(blobs, ("Latest", 0))
    assert (await blobs("GET", "/box/b")).body == b"second"


async def test_the_hash_of_a_block_is_returned_to_clients_that_send_it(blobs: Harness) -> None:
    sent = {"Content-MD5": md5_text(b"x")}
    assert (await stage(blobs, 0, b"x", sent)).headers["content-md5"] == md5_text(b"x")
    for headers in ({}, {"Content-MD5": ""}):
        assert "content-md5" not in (await stage(blobs, 0, b"x", headers)).headers


@pytest.mark.parametrize(
    ("target", "body", "headers", "status", "code"),
    [
        ("/box/b?comp=block", b"x", {}, 400, "MissingRequiredQueryParameter"),
        ("/box/b?comp=block&blockid=***", b"x", {}, 400, "InvalidQueryParameterValue"),
        (
            f"/box/b?comp=block&blockid={base64.b64encode(bytes(65)).decode()}",
            b"x",
            {},
            400,
            "OutOfRangeInput",
        ),
        ("/box/b?comp=block&blockid=AAAA", b"x", {}, 400, "InvalidBlobOrBlock"),
        (f"/box/b?comp=block&blockid={ident(9)}", b"", {}, 400, "InvalidHeaderValue"),
        (f"/box/b?comp=block&blockid={ident(9)}", b"x", {"Content-MD5": md5_text(b"y")}, 400, "Md5Mismatch"),
        ("/box/b?comp=blocklist", b"<BlockList><Oops/></BlockList>", {}, 400, "UnsupportedXmlNode"),
        (
            "/box/b?comp=blocklist",
            b"<BlockList><Latest>!</Latest></BlockList>",
            {},
            400,
            "InvalidXmlNodeValue",
        ),
        ("/box/b?comp=blocklist", b"<BlockList>", {}, 400, "InvalidXmlDocument"),
        ("/none/b?comp=blocklist", b"<BlockList/>", {}, 404, "ContainerNotFound"),
        (
            "/box/b?comp=blocklist",
            b"<BlockList>" + b"<Latest>AA==</Latest>" * 50_001 + b"</BlockList>",
            {},
            400,
            "BlockListTooLong",
        ),
    ],
    ids=range(11),
)
async def test_bad_blocks_and_lists(
    blobs: Harness, target: str, body: bytes, headers: dict[str, str], status: int, code: str
) -> None:
    await stage(blobs, 0, b"zero")
    answer = await blobs("PUT", target, headers, body)
    assert (answer.status, answer.code) == (status, code)
    assert await lists(blobs) == ([], ["0000"])


async def test_a_lease_is_needed_for_staging_and_committing(blobs: Harness) -> None:
    await stage(blobs, 0, b"zero")
    await commit(blobs, ("Latest", 0))
    acquire = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "15"}
    leased = await blobs("PUT", "/box/b?comp=lease", acquire)
    lease = {"x-ms-lease-id": leased.headers["x-ms-lease-id"]}
    assert (await stage(blobs, 1, b"one")).code == "LeaseIdMissing"
    assert (await stage(blobs, 1, b"one", lease)).status == 201
    assert (await commit(blobs, ("Latest", 1))).code == "LeaseIdMissing"
    assert (await commit(blobs, ("Latest", 1), headers=lease)).status == 201
    assert (await blobs("HEAD", "/box/b")).headers["x-ms-lease-state"] == "leased"


async def test_conditions_on_a_block_list(blobs: Harness) -> None:
    await stage(blobs, 0, b"zero")
    assert (await commit(blobs, ("Latest", 0), headers={"If-None-Match": "*"})).status == 201
    await stage(blobs, 1, b"one")
    assert (await commit(blobs, ("Latest", 1), headers={"If-None-Match": "*"})).code == "BlobAlreadyExists"
    assert (await commit(blobs, ("Latest", 1), headers={"If-Match": '"0x1"'})).code == "ConditionNotMet"
    assert await lists(blobs) == (["0000"], ["0001"])


async def test_a_snapshot_keeps_its_blocks(blobs: Harness) -> None:
    for number in range(8):
        await stage(blobs, number, bytes([65 + number]) * 20_000)
    await commit(blobs, *(("Latest", number) for number in range(8)))
    before = (await blobs("GET", "/box/b")).body
    at = (await blobs("PUT", "/box/b?comp=snapshot")).headers["x-ms-snapshot"]
    await stage(blobs, 8, b"tail")
    await commit(blobs, ("Committed", 3), ("Latest", 8))
    assert (await blobs("GET", "/box/b")).body == b"D" * 20_000 + b"tail"
    assert (await blobs("GET", f"/box/b?snapshot={at}")).body == before
    kept = await blobs("GET", f"/box/b?comp=blocklist&snapshot={at}")
    assert len(kept.xml.findall("CommittedBlocks/Block")) == 8


async def test_what_is_only_staged_is_listed_on_request(blobs: Harness) -> None:
    await stage(blobs, 0, b"zero")
    await blobs("PUT", "/box/a", BLOCK, b"")
    await blobs("PUT", f"/box/a?comp=block&blockid={ident(0)}", {}, b"beside")
    plain = await blobs("GET", LIST)
    assert [name.text for name in plain.xml.iter("Name")] == ["a"]
    listed = await blobs("GET", LIST + "&include=uncommittedblobs")
    assert [name.text for name in listed.xml.iter("Name")] == ["a", "b"]
    assert listed.xml.find("Blobs/Blob[2]/Properties/Etag") is None


async def test_staged_blocks_expire_a_week_after_the_last(blobs: Harness) -> None:
    await stage(blobs, 0, b"zero")
    blobs.clock.now = type(blobs.clock.now)(blobs.clock.now + 7 * 24 * 3600 * 10_000_000 + 100)
    assert (await commit(blobs, ("Latest", 0))).code == "InvalidBlockList"
    assert (await blobs("GET", "/box/b?comp=blocklist")).code == "BlobNotFound"
    listed = await blobs("GET", LIST + "&include=uncommittedblobs")
    assert list(listed.xml.iter("Name")) == []


@pytest.mark.parametrize(("version", "status"), [("2026-04-06", 403), ("2026-06-06", 201)])
async def test_who_may_only_create_may_put_blocks_since_a_version(
    blobs: Harness, version: str, status: int
) -> None:
    await stage(blobs, 0, b"kept")
    token = generate_blob_sas(
        "acme",
        "box",
        "b",
        account_key=base64.b64encode(ACCOUNT.keys[0]).decode(),
        permission=BlobSasPermissions(create=True),
        expiry=datetime(1, 1, 1, tzinfo=UTC) + timedelta(microseconds=blobs.clock.now // 10, hours=1),
    )
    spoken = {"x-ms-version": version}
    block = f"/box/b?comp=block&blockid={ident(1)}&{token}"
    document = f"<BlockList><Latest>{ident(1)}</Latest></BlockList>".encode()
    assert (await blobs("PUT", block, spoken, b"new", sign=False)).status == status
    await stage(blobs, 1, b"new")
    listed = await blobs("PUT", f"/box/b?comp=blocklist&{token}", spoken, document, sign=False)
    assert listed.status == status
    if status == 201:
        again = await blobs("PUT", f"/box/b?comp=blocklist&{token}", spoken, document, sign=False)
        assert again.code == "UnauthorizedBlobOverwrite"
        assert (await blobs("GET", "/box/b")).body == b"new"
    else:
        assert listed.code == "AuthorizationPermissionMismatch"


async def test_public_access_is_to_committed_blocks_only(blobs: Harness) -> None:
    await stage(blobs, 1, b"one")
    await blobs("PUT", "/box?restype=container&comp=acl", {"x-ms-blob-public-access": "container"})
    target = "/box/b?comp=blocklist&blocklisttype="
    for kind in ("committed", "uncommitted", "all"):
        missing = await blobs("GET", target + kind, sign=False)
        assert (missing.status, missing.code) == (404, "BlobNotFound"), kind
    await commit(blobs, ("Latest", 1))
    await stage(blobs, 2, b"two")
    assert await lists(blobs) == (["0001"], ["0002"])
    for kind, committed in (("committed", 1), ("uncommitted", 0), ("all", 1)):
        public = await blobs("GET", target + kind, sign=False)
        assert public.status == 200
        assert len(public.xml.findall("CommittedBlocks/Block")) == committed
        assert not public.xml.findall("UncommittedBlocks/Block")
