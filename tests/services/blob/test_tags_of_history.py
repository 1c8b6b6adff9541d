"""Tags of versions, snapshots and deleted blobs: each keeps its own, and a search finds base blobs only."""

import re
from urllib.parse import quote

import pytest

from kyanite.model import settings
from kyanite.service_properties import DeleteRetention, Retention, ServiceProperties
from kyanite.wire import tags
from tests.services.harness import Answer, Harness
from tests.services.tokens import blob_token

BLOCK = {"x-ms-blob-type": "BlockBlob"}
WHERE = quote("n >= ''")
URL = "http://localhost:10000/acme/box/b"


async def make(blobs: Harness, *, versioning: bool = False, days: int | None = None) -> None:
    await blobs("PUT", "/box?restype=container")
    properties = ServiceProperties(versioning=versioning, delete_retention=DeleteRetention(Retention(days)))
    await settings.update(blobs.engine, "acme", "blob", properties)


async def put(blobs: Harness, form: str) -> str:
    """Returns the version id, if there is one, for a query."""
    answer = await blobs("PUT", "/box/b", BLOCK | {"x-ms-tags": form}, b"data")
    assert answer.status == 201
    return f"versionid={quote(answer.headers.get('x-ms-version-id', ''))}"


async def get(blobs: Harness, which: str = "") -> dict[str, str]:
    answer = await blobs("GET", f"/box/b?comp=tags&{which}")
    assert answer.status == 200
    return dict(tags.decode(answer.body))


async def set_tags(
    blobs: Harness, which: str = "", headers: dict[str, str] | None = None, **given: str
) -> Answer:
    return await blobs("PUT", f"/box/b?comp=tags&{which}", headers, tags.encode(list(given.items())))


async def found(blobs: Harness) -> list[str]:
    """The values of the tag ``n`` that a search finds."""
    answer = await blobs("GET", f"/?comp=blobs&where={WHERE}")
    return re.findall("<Value>(.*?)</Value>", answer.body.decode())


async def test_each_version_has_tags_of_its_own(blobs: Harness) -> None:
    await make(blobs, versioning=True)
    old, new = await put(blobs, "n=1"), await put(blobs, "n=2")
    assert (await get(blobs, old), await get(blobs, new), await get(blobs)) == (
        {"n": "1"},
        {"n": "2"},
        {"n": "2"},
    )
    etags = [(await blobs("HEAD", f"/box/b?{each}")).headers["etag"] for each in (old, new)]
    assert (await set_tags(blobs, old, n="3")).status == 204
    assert (await get(blobs, old), await get(blobs)) == ({"n": "3"}, {"n": "2"})
    assert await found(blobs) == ["2"]
    assert (await set_tags(blobs, new, n="4")).status == 204
    assert (await get(blobs), await found(blobs)) == ({"n": "4"}, ["4"])
    head = await blobs("HEAD", f"/box/b?{old}")
    assert head.headers["x-ms-tag-count"] == "1"
    assert [(await blobs("HEAD", f"/box/b?{each}")).headers["etag"] for each in (old, new)] == etags
    assert "x-ms-version-id" not in (await set_tags(blobs, n="4")).headers


async def test_an_overwrite_leaves_the_tags_with_the_version(blobs: Harness) -> None:
    await make(blobs, versioning=True)
    old = await put(blobs, "n=1")
    assert (await blobs("PUT", "/box/b", BLOCK, b"plain")).status == 201
    assert (await get(blobs), await get(blobs, old), await found(blobs)) == ({}, {"n": "1"}, [])


async def test_metadata_makes_a_version_and_keeps_the_tags(blobs: Harness) -> None:
    await make(blobs, versioning=True)
    old = await put(blobs, "n=1")
    assert (await blobs("PUT", "/box/b?comp=metadata", {"x-ms-meta-a": "1"})).status == 200
    assert (await get(blobs), await get(blobs, old), await found(blobs)) == ({"n": "1"}, {"n": "1"}, ["1"])
    assert (await set_tags(blobs, n="2")).status == 204
    assert (await get(blobs, old), await found(blobs)) == ({"n": "1"}, ["2"])


async def test_a_version_is_promoted_with_its_tags_or_without(blobs: Harness) -> None:
    await make(blobs, versioning=True)
    old = await put(blobs, "n=1")
    await blobs("DELETE", "/box/b")
    assert await found(blobs) == []
    source = {
        "x-ms-copy-source": f"{URL}?{old}&{blob_token(blobs, 'b', permission='rt')}",
        "x-ms-requires-sync": "true",
    }
    assert (await blobs("PUT", "/box/b", source)).status == 202
    assert (await get(blobs), await found(blobs)) == ({}, [])
    assert (await blobs("PUT", "/box/b", source | {"x-ms-copy-source-tag-option": "COPY"})).status == 202
    assert (await get(blobs), await found(blobs)) == ({"n": "1"}, ["1"])


async def test_conditions_are_about_the_version_that_is_named(blobs: Harness) -> None:
    await make(blobs, versioning=True)
    old = await put(blobs, "n=1")
    await put(blobs, "n=2")
    condition = {"x-ms-if-tags": "n = '1'"}
    for method, target in (("GET", f"/box/b?{old}"), ("GET", f"/box/b?comp=tags&{old}")):
        assert (await blobs(method, target, condition)).status == 200
    assert (await blobs("GET", "/box/b", condition)).status == 412
    assert (await set_tags(blobs, old, {"x-ms-if-tags": "n = '2'"}, n="3")).status == 412
    assert (await blobs("DELETE", f"/box/b?{old}", {"x-ms-if-tags": "n = '2'"})).status == 412
    assert (await blobs("DELETE", f"/box/b?{old}", condition)).status == 202
    assert await found(blobs) == ["2"]


async def test_a_deleted_blob_is_not_found_until_it_is_restored(blobs: Harness) -> None:
    await make(blobs, days=7)
    await put(blobs, "n=1")
    await blobs("DELETE", "/box/b")
    assert await found(blobs) == []
    assert (await blobs("GET", "/box/b?comp=tags")).code == "BlobNotFound"
    assert (await set_tags(blobs, n="2")).code == "BlobNotFound"
    assert (await blobs("PUT", "/box/b?comp=undelete")).status == 200
    assert (await get(blobs), await found(blobs)) == ({"n": "1"}, ["1"])


async def test_an_overwritten_blob_comes_back_as_a_snapshot_that_is_not_found(blobs: Harness) -> None:
    await make(blobs, days=7)
    await put(blobs, "n=1")
    await put(blobs, "n=2")
    assert (await blobs("PUT", "/box/b?comp=undelete")).status == 200
    assert (await get(blobs), await found(blobs)) == ({"n": "2"}, ["2"])
    listed = (await blobs("GET", "/box?restype=container&comp=list&include=snapshots,tags")).body.decode()
    at = re.findall("<Snapshot>(.*?)</Snapshot>", listed)
    assert len(at) == 1
    assert await get(blobs, f"snapshot={quote(at[0])}") == {"n": "1"}
    assert re.findall("<Value>(.*?)</Value>", listed) == ["1", "2"]


async def test_lists_of_versions_and_deleted_blobs_have_their_tags(blobs: Harness) -> None:
    await make(blobs, versioning=True, days=7)
    first = await put(blobs, "n=1")
    await put(blobs, "n=2")
    await blobs("DELETE", f"/box/b?{first}")
    target = "/box?restype=container&comp=list&include=tags,versions"
    assert re.findall("<Value>(.*?)</Value>", (await blobs("GET", target)).body.decode()) == ["2"]
    answer = await blobs("GET", target + ",deleted")
    assert re.findall("<Value>(.*?)</Value>", answer.body.decode()) == ["1", "2"]


@pytest.mark.parametrize("which", ["versionid=2020-01-01T00:00:00.0000000Z", "versionid=x", "snapshot=x"])
async def test_versions_that_do_not_exist(blobs: Harness, which: str) -> None:
    await make(blobs, versioning=True)
    await put(blobs, "n=1")
    for answer in (await blobs("GET", f"/box/b?comp=tags&{which}"), await set_tags(blobs, which, n="2")):
        assert answer.code == ("BlobNotFound" if "2020" in which else "InvalidQueryParameterValue")


async def test_a_restored_container_is_found_again(blobs: Harness) -> None:
    await make(blobs)
    kept = ServiceProperties(container_retention=Retention(7))
    await settings.update(blobs.engine, "acme", "blob", kept)
    await put(blobs, "n=1")
    await blobs("DELETE", "/box?restype=container")
    assert await found(blobs) == []
    listed = (await blobs("GET", "/?comp=list&include=deleted")).body.decode()
    version = re.findall("<Version>(.*?)</Version>", listed)[0]
    headers = {"x-ms-deleted-container-name": "box", "x-ms-deleted-container-version": version}
    assert (await blobs("PUT", "/box?restype=container&comp=undelete", headers)).status == 201
    assert await found(blobs) == ["1"]
