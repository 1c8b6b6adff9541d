"""List Blobs: pages, prefixes, folders, snapshots, and names that XML cannot hold."""

from itertools import chain
from urllib.parse import quote

import pytest

from tests.services.harness import Answer, Harness

BLOCK = {"x-ms-blob-type": "BlockBlob"}
LIST = "/box?restype=container&comp=list"


async def fill(blobs: Harness, *names: str) -> None:
    await blobs("PUT", "/box?restype=container")
    for name in names:
        answer = await blobs("PUT", f"/box/{quote(name)}", BLOCK, name.encode())
        assert answer.status == 201


def names(answer: Answer) -> list[str]:
    return [element.text or "" for element in answer.xml.iter("Name")]


async def pages(blobs: Harness, query: str = "", size: int = 2) -> list[list[str]]:
    found, marker = [], ""
    for _ in range(50):
        answer = await blobs("GET", f"{LIST}&maxresults={size}{query}&marker={quote(marker)}")
        assert answer.status == 200
        found.append(names(answer))
        marker = answer.xml.findtext("NextMarker") or ""
        if not marker:
            return found
    raise AssertionError("the listing does not end")


async def test_names_come_in_ordinal_order_by_pages(blobs: Harness) -> None:
    await fill(blobs, "b", "a", "B", "a/b", "ä", "z", "a b", "😀")
    expected = sorted(["b", "a", "B", "a/b", "ä", "z", "a b", "😀"], key=str.encode)
    assert names(await blobs("GET", LIST)) == expected
    assert list(chain.from_iterable(await pages(blobs))) == expected
    assert list(chain.from_iterable(await pages(blobs, size=1))) == expected


async def test_prefix(blobs: Harness) -> None:
    await fill(blobs, "a", "ab", "abc", "abd", "b")
    assert names(await blobs("GET", f"{LIST}&prefix=ab")) == ["ab", "abc", "abd"]
    assert await pages(blobs, "&prefix=ab") == [["ab", "abc"], ["abd"]]


async def test_a_delimiter_lists_folders_once(blobs: Harness) -> None:
    await fill(blobs, "a", "dir/1", "dir/2", "dir/sub/3", "dir0", "e/1", "f")
    answer = await blobs("GET", f"{LIST}&delimiter=/")
    assert names(answer) == ["a", "dir/", "dir0", "e/", "f"]
    assert [element.findtext("Name") for element in answer.xml.iter("BlobPrefix")] == ["dir/", "e/"]
    assert names(await blobs("GET", f"{LIST}&delimiter=/&prefix=dir/")) == ["dir/1", "dir/2", "dir/sub/"]
    assert await pages(blobs, "&delimiter=/") == [["a", "dir/"], ["dir0", "e/"], ["f"]]
    assert await pages(blobs, "&delimiter=/", size=1) == [["a"], ["dir/"], ["dir0"], ["e/"], ["f"]]


async def test_a_delimiter_may_be_any_text(blobs: Harness) -> None:
    await fill(blobs, "a--1", "a--2", "a-3")
    assert names(await blobs("GET", f"{LIST}&delimiter=--")) == ["a--", "a-3"]


async def test_pages_are_stable_while_others_write(blobs: Harness) -> None:
    await fill(blobs, "a", "c", "e", "g")
    first = await blobs("GET", f"{LIST}&maxresults=2")
    for name in ("b", "d", "f"):
        await blobs("PUT", f"/box/{name}", BLOCK, b"")
    await blobs("DELETE", "/box/a")
    await blobs("DELETE", "/box/e")
    rest = await blobs("GET", f"{LIST}&marker={first.xml.findtext('NextMarker')}")
    assert names(first) == ["a", "c"]
    assert names(rest) == ["f", "g"]


async def test_bounds_by_name(blobs: Harness) -> None:
    await fill(blobs, "a", "b", "c", "d")
    assert names(await blobs("GET", f"{LIST}&startFrom=b&endBefore=d")) == ["b", "c"]


async def test_the_properties_of_an_item(blobs: Harness) -> None:
    await fill(blobs)
    headers = BLOCK | {
        "x-ms-blob-content-type": "text/plain",
        "x-ms-meta-Mood": "a<b",
        "x-ms-access-tier": "Cool",
    }
    put = await blobs("PUT", "/box/it", headers, b"12345")
    item = (await blobs("GET", f"{LIST}&include=metadata")).xml.find(".//Blob")
    assert item is not None
    returned = {element.tag: element.text for element in item.find("Properties") or ()}
    assert returned["Etag"] == put.headers["etag"].strip('"')
    assert returned["Last-Modified"] == put.headers["last-modified"]
    assert returned["Content-MD5"] == put.headers["content-md5"]
    expected = {
        "Content-Length": "5",
        "Content-Type": "text/plain",
        "BlobType": "BlockBlob",
        "AccessTier": "Cool",
    }
    assert expected.items() <= returned.items()
    assert (returned["LeaseStatus"], returned["LeaseState"]) == ("unlocked", "available")
    assert item.findtext("Metadata/Mood") == "a<b"


async def test_names_that_xml_cannot_represent_are_encoded(blobs: Harness) -> None:
    await fill(blobs, "a\ufffeb", "<&>")
    answer = await blobs("GET", LIST)
    assert names(answer) == ["<&>", "a%EF%BF%BEb"]
    assert [element.get("Encoded") for element in answer.xml.iter("Name")] == [None, "true"]


async def test_snapshots_come_before_their_blob_oldest_first(blobs: Harness) -> None:
    await fill(blobs, "a", "b")
    received = [(await blobs("PUT", "/box/a?comp=snapshot")).headers["x-ms-snapshot"] for _ in range(3)]
    answer = await blobs("GET", f"{LIST}&include=snapshots")
    assert names(answer) == ["a", "a", "a", "a", "b"]
    assert [blob.findtext("Snapshot") for blob in answer.xml.iter("Blob")] == [*received, None, None]
    assert all(
        (blob.find("Properties/LeaseState") is None) == (blob.find("Snapshot") is not None)
        for blob in answer.xml.iter("Blob")
    )
    assert names(await blobs("GET", LIST)) == ["a", "b"]
    for size in (1, 2, 3):
        assert list(chain.from_iterable(await pages(blobs, "&include=snapshots", size))) == [
            "a",
            "a",
            "a",
            "a",
            "b",
        ]


@pytest.mark.parametrize("query", ["&include=snapshots&delimiter=/", "&maxresults=-1", "&marker=1!%2a"])
async def test_what_cannot_be_listed(blobs: Harness, query: str) -> None:
    await fill(blobs, "a")
    assert (await blobs("GET", LIST + query)).status == 400


async def test_a_missing_container_has_no_listing(blobs: Harness) -> None:
    assert (await blobs("GET", LIST)).code == "ContainerNotFound"


async def test_a_list_shows_every_change_since_the_last(blobs: Harness) -> None:
    """Items are remembered as they were written: never beyond a change, another request or the time of a lease."""
    await fill(blobs, "a", "b")
    with_metadata = f"{LIST}&include=metadata"
    assert names(await blobs("GET", LIST)) == names(await blobs("GET", LIST)) == ["a", "b"]
    await blobs("PUT", "/box/a?comp=metadata", {"x-ms-meta-color": "blue"})
    assert (await blobs("GET", LIST)).xml.find(".//Metadata") is None
    assert (await blobs("GET", with_metadata)).xml.findtext(".//Metadata/color") == "blue"
    assert (await blobs("GET", LIST)).xml.find(".//Metadata") is None
    await blobs("PUT", "/box/b", BLOCK, b"longer than before")
    lengths = [each.text for each in (await blobs("GET", LIST)).xml.iter("Content-Length")]
    assert lengths == ["1", "18"]
    lease = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "15"}
    assert (await blobs("PUT", "/box/a?comp=lease", lease)).status == 201
    states = []
    for _ in range(2):
        states.append([each.text for each in (await blobs("GET", LIST)).xml.iter("LeaseState")])
        blobs.clock.now = type(blobs.clock.now)(blobs.clock.now + 16 * 10_000_000)
    assert states == [["leased", "available"], ["expired", "available"]]
    await blobs("DELETE", "/box/b")
    assert names(await blobs("GET", LIST)) == ["a"]
    assert (await blobs("PUT", "/other?restype=container")).status == 201
    assert names(await blobs("GET", "/other?restype=container&comp=list")) == []
