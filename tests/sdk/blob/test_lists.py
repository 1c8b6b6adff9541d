"""Lists of blobs: flat and by folders, in pages, beside writers."""

import asyncio
from typing import Any

import pytest
from azure.storage.blob import ContentSettings

from tests.sdk.clients import Sdk, content, done, items, names, pages, refused

TREE = [
    "a.txt",
    "folder/one",
    "folder/sub/three",
    "folder/sub/two",
    "folder/two",
    "folder0",
    "other/x/y/z",
    "zz",
]


async def _tree(sdk: Sdk, made: list[str] = TREE) -> Any:
    container = await sdk.new_container()
    for name in made:
        await done(container.upload_blob(name, name.encode(), metadata={"Of": name.replace("/", "_")}))
    return container


async def _walk(listing: Any) -> list[Any]:
    """Names, and for a folder a pair of its name and what is in it. The client puts folders first in a page."""
    return [
        (item.name, await _walk(item)) if type(item).__name__ == "BlobPrefix" else item.name
        for item in sorted(await items(listing), key=lambda item: str(item.name))
    ]


async def test_flat_in_order_of_names(sdk: Sdk) -> None:
    container = await _tree(sdk, TREE[::-1])
    assert await names(container.list_blobs()) == TREE
    assert await items(container.list_blob_names()) == TREE


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        ("folder", TREE[1:6]),
        ("folder/", TREE[1:5]),
        ("folder/sub/t", TREE[2:4]),
        ("Folder", []),
        ("zzz", []),
        ("a.txt", ["a.txt"]),
    ],
)
async def test_by_prefix(sdk: Sdk, prefix: str, expected: list[str]) -> None:
    container = await _tree(sdk)
    assert await names(container.list_blobs(name_starts_with=prefix)) == expected


async def test_items_tell_what_properties_tell(sdk: Sdk) -> None:
    container = await _tree(sdk)
    listed = {item.name: item for item in await items(container.list_blobs(include=["metadata"]))}
    for name in TREE:
        properties = await done(container.get_blob_client(name).get_blob_properties())
        item = listed[name]
        assert f'"{item.etag}"'.replace('""', '"') == properties.etag
        for field in ("last_modified", "creation_time", "size", "metadata", "blob_type", "blob_tier"):
            assert item[field] == properties[field], field
        assert item.content_settings.content_type == properties.content_settings.content_type
        assert item.content_settings.content_md5 == properties.content_settings.content_md5
        assert (item.lease.status, item.lease.state) == ("unlocked", "available")
    plain = await items(container.list_blobs())
    assert all(not item.metadata for item in plain)


async def test_in_pages_of_any_size(sdk: Sdk) -> None:
    container = await _tree(sdk)
    for size in (1, 3, 8, 100):
        found = [
            [item.name for item in page] for page in await pages(container.list_blobs(results_per_page=size))
        ]
        assert found == [TREE[start : start + size] for start in range(0, len(TREE), size)]


async def test_by_folders_at_every_depth(sdk: Sdk) -> None:
    container = await _tree(sdk)
    assert await _walk(container.walk_blobs()) == [
        "a.txt",
        ("folder/", ["folder/one", ("folder/sub/", ["folder/sub/three", "folder/sub/two"]), "folder/two"]),
        "folder0",
        ("other/", [("other/x/", [("other/x/y/", ["other/x/y/z"])])]),
        "zz",
    ]
    assert await _walk(container.walk_blobs(name_starts_with="folder/sub/")) == TREE[2:4]
    assert await _walk(container.walk_blobs(name_starts_with="folder")) == [
        ("folder/", ["folder/one", ("folder/sub/", ["folder/sub/three", "folder/sub/two"]), "folder/two"]),
        "folder0",
    ]


@pytest.mark.parametrize("delimiter", ["-", "--", "/", "é", "&<>"])
async def test_by_any_delimiter(sdk: Sdk, delimiter: str) -> None:
    made = [name.replace("/", delimiter) for name in ("a/1", "a/2", "b", "c/d/e")]
    container = await _tree(sdk, [])
    for name in made:
        await done(container.upload_blob(name, b""))
    found = await items(container.walk_blobs(delimiter=delimiter))
    assert sorted(item.name for item in found) == sorted({"a" + delimiter, "b", "c" + delimiter})


async def test_folders_count_as_one_in_a_page_and_are_never_listed_twice(sdk: Sdk) -> None:
    made = [f"folder{number}/{leaf:02}" for number in range(5) for leaf in range(12)] + ["file", "zz"]
    container = await _tree(sdk, [])
    for name in made:
        await done(container.upload_blob(name, b""))
    expected = ["file", *(f"folder{number}/" for number in range(5)), "zz"]
    for size in (1, 2, 3, 7):
        found = [
            sorted(item.name for item in page)
            for page in await pages(container.walk_blobs(results_per_page=size))
        ]
        assert found == [expected[start : start + size] for start in range(0, 7, size)]


async def test_a_list_goes_on_where_it_was_whatever_others_write(sdk: Sdk) -> None:
    """What was there throughout is listed exactly once; what comes and goes is listed at most once."""
    container = await _tree(sdk, [])
    stay = [f"stay-{number:03}" for number in range(0, 60, 2)]
    leave = [f"stay-{number:03}" for number in range(1, 60, 2)]
    for name in stay + leave:
        await done(container.upload_blob(name, b""))
    found: list[str] = []
    token: str | None = None
    step = 0
    while True:
        by_page = container.list_blobs(results_per_page=7).by_page(token)
        page = await (anext(by_page) if hasattr(by_page, "__anext__") else done(next(by_page)))
        found += [item.name for item in await items(page)]
        token = by_page.continuation_token
        if not token:
            break
        for name in leave[step : step + 4]:
            await done(container.delete_blob(name))
        await done(container.upload_blob(f"aaa-{step:03}", b""))
        await done(container.upload_blob(f"stay-{step:03}x", b""))
        if found[-1] in leave[step + 4 :]:
            await done(container.delete_blob(found[-1]))
            leave.remove(found[-1])
        step += 4
        assert step < 100
    assert found == sorted(set(found))
    assert [name for name in found if name in stay] == stay
    assert not [name for name in found if name.startswith("aaa")]


async def test_a_blob_is_listed_as_soon_as_it_is_written(sdk: Sdk) -> None:
    container = await sdk.new_container()
    for number in range(20):
        await done(container.upload_blob(f"{number:02}", b""))
        assert len(await names(container.list_blobs())) == number + 1
    for number in range(20):
        await done(container.delete_blob(f"{number:02}"))
        assert f"{number:02}" not in await names(container.list_blobs())


async def test_concurrent_lists_return_the_same(sdk: Sdk) -> None:
    container = await _tree(sdk)

    def list_names() -> Any:
        return [item.name for item in container.list_blobs()]

    if sdk.form == "sync":
        found = await asyncio.gather(*(asyncio.to_thread(list_names) for _ in range(8)))
    else:
        found = await asyncio.gather(*(names(container.list_blobs()) for _ in range(8)))
    assert found == [TREE] * 8


async def test_a_marker_of_no_list_is_refused(sdk: Sdk) -> None:
    container = await _tree(sdk)
    with refused(400, "InvalidQueryParameterValue"):
        await pages(container.list_blobs(), "not a marker")


async def test_metadata_and_headers_with_markup_survive_the_list(sdk: Sdk) -> None:
    container = await sdk.new_container()
    metadata = {"Markup": '<a href="x">&amp;\'</a>'}
    settings = ContentSettings(content_type="text/x-<&>", cache_control='a="b"&c', content_disposition="<>")
    blob = await done(container.upload_blob("blob", b"data", metadata=metadata, content_settings=settings))
    (item,) = await items(container.list_blobs(include=["metadata"]))
    assert item.metadata == metadata
    assert item.content_settings.content_type == "text/x-<&>"
    assert item.content_settings.cache_control == 'a="b"&c'
    assert item.content_settings.content_disposition == "<>"
    assert await content(blob) == b"data"
