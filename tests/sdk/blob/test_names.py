"""Blob names that are hard on URLs, on XML or on signatures."""

import pytest

from tests.sdk.clients import Sdk, content, done, names, refused

NAMES = [
    "plain",
    "with space",
    " leading and trailing ",
    "100%",
    "%41%2F",
    "a+b=c&d",
    "what? #hash",
    "semi;colon:at@,comma",
    "a/b/c",
    "a//b",
    "/slash first",
    "slash last/",
    "dots...",
    ".hidden",
    "pipe|caret^`tick",
    "quotes \" and '",
    "<tag>&amp;]]>",
    "{braces}[brackets](parens)!*~$",
    "ünïcödé/日本語/עברית",
    "combining e\u0301 and é",
    "emoji 😀/👩‍👩‍👧",
    "no-break\u00a0space and \u200bzero width",
    "\ufffe and \uffff",
    "\u007f delete",
    "n" * 1024,
    "ü" * 1024,
    "😀" * 512,
    "/".join("s" * 254),
]


@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name[:20]))
async def test_a_blob_of_this_name_can_be_used_in_every_way(sdk: Sdk, name: str) -> None:
    container = await sdk.new_container()
    blob = container.get_blob_client(name)
    await done(blob.upload_blob(name.encode(), metadata={"one": "1"}))
    assert await content(blob) == name.encode()
    await done(blob.set_blob_metadata({"two": "2"}))
    properties = await done(blob.get_blob_properties())
    assert (properties.name, properties.metadata) == (name, {"two": "2"})
    assert await names(container.list_blobs()) == [name]
    assert await names(container.list_blobs(name_starts_with=name[: len(name) // 2])) == [name]
    if not name.endswith("/"):  # The client drops slashes at the end of a URL.
        assert await content(sdk.blob_at(blob.url, sdk.key)) == name.encode()
    await done(blob.delete_blob())
    assert await names(container.list_blobs()) == []


async def test_a_backslash_is_a_slash(sdk: Sdk) -> None:
    container = await sdk.new_container()
    await done(container.upload_blob("a\\b\\c", b"data"))
    assert await names(container.list_blobs()) == ["a/b/c"]
    assert await content(container.get_blob_client("a/b\\c")) == b"data"
    await done(container.get_blob_client("a\\b/c").delete_blob())
    assert await names(container.list_blobs()) == []


async def test_names_are_listed_in_the_order_of_their_code_points(sdk: Sdk) -> None:
    container = await sdk.new_container()
    for name in NAMES:
        await done(container.upload_blob(name, b""))
    assert await names(container.list_blobs()) == sorted(NAMES)
    by_page = container.list_blobs(results_per_page=1).by_page()
    if sdk.form == "sync":
        found = [item.name for page in by_page for item in page]
    else:
        found = [item.name async for page in by_page async for item in page]
    assert found == sorted(NAMES)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("n" * 1025, "OutOfRangeInput"),
        ("😀" * 513, "OutOfRangeInput"),
        ("/".join("s" * 255), "InvalidResourceName"),
        ("control \u0001", "InvalidResourceName"),
        ("new\nline", "InvalidResourceName"),
        ("c1 \u0081\u0080", "InvalidResourceName"),
    ],
    ids=["1025 characters", "1026 units", "255 segments", "control", "line", "C1"],
)
async def test_names_that_no_blob_can_have(sdk: Sdk, name: str, code: str) -> None:
    container = await sdk.new_container()
    with refused(400, code):
        await done(container.upload_blob(name, b"data"))
    assert await names(container.list_blobs()) == []


async def test_names_differ_by_case_and_by_normal_form(sdk: Sdk) -> None:
    container = await sdk.new_container()
    different = ["Name", "name", "NAME", "é", "e\u0301"]
    for name in different:
        await done(container.upload_blob(name, name.encode()))
    for name in different:
        assert await content(container.get_blob_client(name)) == name.encode()
