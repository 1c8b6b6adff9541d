"""List Ranges: by blocks, and since a snapshot, whatever the file was called then."""

from urllib.parse import quote

import pytest

from tests.services.files.builders import make, rename_from, write
from tests.services.harness import Answer, Harness

RENAMES = {"x-ms-file-support-rename": "true"}


async def snapshot(files: Harness) -> str:
    received = await files("PUT", "/box?restype=share&comp=snapshot")
    return quote(received.headers["x-ms-snapshot"])


async def clear(files: Harness, path: str, first: int, last: int) -> None:
    headers = {"x-ms-write": "clear", "x-ms-range": f"bytes={first}-{last}"}
    assert (await files("PUT", f"/box/{path}?comp=range", headers)).status == 201


async def since(
    files: Harness, path: str, at: str, headers: dict[str, str] | None = None, query: str = ""
) -> Answer:
    return await files("GET", f"/box/{path}?comp=rangelist&prevsharesnapshot={at}{query}", headers)


def listed(answer: Answer) -> list[str]:
    """Ranges as text; those that were cleared with a minus."""
    assert answer.status == 200, answer.code
    return [
        f"{'-' if each.tag == 'ClearRange' else ''}{each.findtext('Start')}..{each.findtext('End')}"
        for each in answer.xml
    ]


async def test_changes_are_listed_in_blocks(files: Harness) -> None:
    await make(files, headers={"x-ms-content-length": "2049"})
    await write(files, "f", b"Hello")
    at = await snapshot(files)
    await clear(files, "f", 0, 1023)
    await write(files, "f", b"World", 1023)
    await write(files, "f", b"!", 2048)
    assert listed(await since(files, "f", at)) == ["-0..511", "512..1535", "2048..2048"]
    assert listed(await since(files, "f", at, {"x-ms-range": "bytes=500-600"})) == ["-500..511", "512..600"]
    assert listed(await files("GET", "/box/f?comp=rangelist")) == ["512..1535", "2048..2048"]


async def test_the_edges_of_what_was_cleared_count_as_written(files: Harness) -> None:
    await make(files, data=b"x" * 8192)
    at = await snapshot(files)
    await clear(files, "f", 500, 2547)
    assert listed(await since(files, "f", at)) == ["0..511", "-512..2047", "2048..2559"]


async def test_what_a_snapshot_in_between_shows_counts(files: Harness) -> None:
    """What was written and cleared again since is listed as cleared, if a snapshot has it as written."""
    await make(files, headers={"x-ms-content-length": "2048"})
    first = await snapshot(files)
    await write(files, "f", b"x" * 1536)
    second = await snapshot(files)
    await clear(files, "f", 512, 1023)
    assert listed(await since(files, "f", first)) == ["0..511", "-512..1023", "1024..1535"]
    assert listed(await since(files, "f", second)) == ["-512..1023"]
    assert listed(await since(files, "f", first, query=f"&sharesnapshot={second}")) == ["0..1535"]
    third = await snapshot(files)
    assert listed(await since(files, "f", third)) == []
    newer = await since(files, "f", third, query=f"&sharesnapshot={second}")
    assert (newer.status, newer.code) == (400, "PreviousSnapshotCannotBeNewer")


async def test_a_renamed_file_is_compared_if_requested(files: Harness) -> None:
    await make(files, data=b"x" * 2048)
    await files("PUT", "/box/d?restype=directory")
    first = await snapshot(files)
    await write(files, "f", b"y", 600)
    await files("PUT", "/box/d/g?comp=rename", rename_from("f"))
    second = await snapshot(files)
    await write(files, "d/g", b"z", 1600)
    await files("PUT", "/box/d/h?comp=rename", rename_from("d/g"))
    await files("PUT", "/box/e?restype=directory&comp=rename", rename_from("d"))
    for at in (first, second):
        refused = await since(files, "e/h", at)
        assert (refused.status, refused.code) == (409, "PreviousSnapshotNotFound")
    assert listed(await since(files, "e/h", first, RENAMES)) == ["512..1023", "1536..2047"]
    assert listed(await since(files, "e/h", second, RENAMES)) == ["1536..2047"]
    third = await snapshot(files)
    assert listed(await since(files, "e/h", first, RENAMES, f"&sharesnapshot={third}")) == [
        "512..1023",
        "1536..2047",
    ]


async def test_only_snapshots_that_are_left_are_remembered_through_renames(files: Harness) -> None:
    await make(files, data=b"x" * 2048)
    kept = await snapshot(files)
    for number in range(3):
        await files(
            "PUT", f"/box/f{number}?comp=rename", rename_from("f" if not number else f"f{number - 1}")
        )
        at = await snapshot(files)
        await files("PUT", f"/box/f{number}?comp=metadata", {"x-ms-meta-n": str(number)})
        await files("DELETE", f"/box?restype=share&sharesnapshot={at}")
    assert listed(await since(files, "f2", kept, RENAMES)) == []
    await write(files, "f2", b"y")
    assert listed(await since(files, "f2", kept, RENAMES)) == ["0..511"]


async def test_only_the_same_file_is_compared(files: Harness) -> None:
    await make(files, data=b"x")
    at = await snapshot(files)
    await make(files, "new", b"x")
    await files("DELETE", "/box/f")
    await make(files, data=b"x")
    for path, headers, code in (
        ("new", {}, "PreviousSnapshotNotFound"),
        ("new", RENAMES, "PreviousSnapshotNotFound"),
        ("f", {}, "FileGenerationMismatch"),
        ("f", RENAMES, "PreviousSnapshotNotFound"),
    ):
        refused = await since(files, path, at, headers)
        assert (refused.status, refused.code) == (409, code)


@pytest.mark.parametrize("headers", [{}, RENAMES])
async def test_a_snapshot_that_never_was(files: Harness, headers: dict[str, str]) -> None:
    await make(files, data=b"x")
    refused = await since(files, "f", "2020-01-01T00:00:00Z", headers)
    assert (refused.status, refused.code) == (409, "PreviousSnapshotNotFound")


async def test_ranges_come_in_pages_to_who_knows_of_pages(
    files: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kyanite.services.files.ranges._RANGES_MAX", 2)
    await make(files, headers={"x-ms-content-length": "10240"})
    for first in range(0, 10240, 2048):
        await write(files, "f", b"x" * 512, first)
    whole = [f"{first}..{first + 511}" for first in range(0, 10240, 2048)]
    assert listed(await files("GET", "/box/f?comp=rangelist")) == whole
    found, marker = [], "0"
    while marker:
        target = f"/box/f?comp=rangelist&marker={marker}"
        page = await files("GET", target, {"x-ms-version": "2026-10-06"})
        marker = page.xml.findtext("NextMarker") or ""
        found.append([each.findtext("Start") for each in page.xml.findall("Range")])
    assert found == [["0", "2048"], ["4096", "6144"], ["8192"]]
    one = await files("GET", "/box/f?comp=rangelist&maxresults=1")
    assert (one.xml.findtext("Range/Start"), one.xml.findtext("NextMarker")) == ("0", "2048")


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("maxresults=0", "OutOfRangeQueryParameterValue"),
        ("maxresults=-1", "OutOfRangeQueryParameterValue"),
        ("maxresults=few", "InvalidQueryParameterValue"),
        ("marker=here", "InvalidQueryParameterValue"),
        ("prevsharesnapshot=yesterday", "InvalidQueryParameterValue"),
    ],
)
async def test_pages_that_cannot_be(files: Harness, query: str, code: str) -> None:
    await make(files, data=b"x")
    refused = await files("GET", f"/box/f?comp=rangelist&{query}")
    assert (refused.status, refused.code) == (400, code)


async def test_a_range_behind_the_end(files: Harness) -> None:
    """It is refused; a marker there, in the last block or later, finds nothing."""
    await make(files, data=b"x" * 10)
    at = await snapshot(files)
    await write(files, "f", b"y")
    for first in (10, 100, 1000):
        for query in ("", f"&prevsharesnapshot={at}"):
            target = f"/box/f?comp=rangelist{query}"
            refused = await files("GET", target, {"x-ms-range": f"bytes={first}-{first + 50}"})
            assert (refused.status, refused.code) == (416, "InvalidRange")
            assert listed(await files("GET", f"{target}&marker={first}")) == []
    assert listed(await files("GET", "/box/f?comp=rangelist", {"x-ms-range": "bytes=9-50"})) == ["9..9"]


async def test_renames_matter_only_to_a_comparison(files: Harness) -> None:
    await make(files, data=b"x")
    refused = await files("GET", "/box/f?comp=rangelist", RENAMES)
    assert (refused.status, refused.code) == (400, "InvalidHeaderValue")
