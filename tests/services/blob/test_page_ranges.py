"""Get Page Ranges with a snapshot to compare with: what was written, what was cleared, and nothing else."""

from urllib.parse import quote

import pytest

from kyanite.values import later
from tests.services.blob.page_requests import clear, make, write
from tests.services.harness import Answer, Harness


async def snapshot(blobs: Harness) -> str:
    blobs.clock.now = later(blobs.clock.now, 1)
    return (await blobs("PUT", "/box/disk?comp=snapshot")).headers["x-ms-snapshot"]


async def changes(blobs: Harness, query: str, headers: dict[str, str] | None = None) -> list[str]:
    """For example ``+0-511 -512-1023``, the plus for what was written and the minus for what was cleared."""
    answer = await blobs("GET", f"/box/disk?comp=pagelist{query}", headers)
    assert answer.status == 200, answer
    return ranges_in(answer)


def ranges_in(answer: Answer) -> list[str]:
    signs = {"PageRange": "+", "ClearRange": "-"}
    return [
        f"{signs[item.tag]}{item.findtext('Start')}-{item.findtext('End')}"
        for item in answer.xml
        if item.tag in signs
    ]


async def test_what_was_written_and_cleared_since_a_snapshot(blobs: Harness) -> None:
    await make(blobs)
    await write(blobs, 0, b"a" * 2048)
    first = await snapshot(blobs)
    await write(blobs, 512, b"b" * 512)
    await write(blobs, 3072, b"c" * 1024)
    second = await snapshot(blobs)
    await clear(blobs, 1024, 1536)
    await clear(blobs, 2048, 2560)
    assert await changes(blobs, f"&prevsnapshot={first}") == ["+512-1023", "-1024-1535", "+3072-4095"]
    assert await changes(blobs, f"&prevsnapshot={second}") == ["-1024-1535"]
    assert await changes(blobs, f"&snapshot={second}&prevsnapshot={first}") == ["+512-1023", "+3072-4095"]
    assert await changes(blobs, f"&snapshot={second}&prevsnapshot={second}") == []
    ranged = {"x-ms-range": "bytes=1024-3583"}
    assert await changes(blobs, f"&prevsnapshot={first}", ranged) == ["-1024-1535", "+3072-3583"]


async def test_pages_written_and_cleared_are_listed_if_a_snapshot_has_them(blobs: Harness) -> None:
    await make(blobs)
    first = await snapshot(blobs)
    await write(blobs, 0, b"a" * 1536)
    second = await snapshot(blobs)
    await clear(blobs, 512, 1024)
    third = await snapshot(blobs)
    await clear(blobs, 1024, 1536)
    assert await changes(blobs, f"&prevsnapshot={first}") == ["+0-511", "-512-1535"]
    assert await changes(blobs, f"&prevsnapshot={second}") == ["-512-1535"]
    assert await changes(blobs, f"&prevsnapshot={third}") == ["-1024-1535"]
    until_third = f"&snapshot={third}&prevsnapshot={first}"
    assert await changes(blobs, until_third) == ["+0-511", "-512-1023", "+1024-1535"]


async def test_the_snapshot_may_be_named_by_its_url(blobs: Harness) -> None:
    await make(blobs)
    first = await snapshot(blobs)
    await write(blobs, 512, b"b" * 512)
    here = f"http://localhost:10000/acme/box/disk?snapshot={quote(first)}"
    assert await changes(blobs, "", {"x-ms-previous-snapshot-url": here}) == ["+512-1023"]
    for wrong in (here.replace("disk", "other"), here.partition("?")[0], "nonsense"):
        answer = await blobs("GET", "/box/disk?comp=pagelist", {"x-ms-previous-snapshot-url": wrong})
        assert (answer.status, answer.code) == (400, "InvalidHeaderValue")


async def test_changes_come_in_pages_on_request(blobs: Harness) -> None:
    await make(blobs, 512 * 10)
    await write(blobs, 0, b"x" * 5120)
    first = await snapshot(blobs)
    for number in range(0, 10, 4):
        await write(blobs, number * 512, b"y" * 512)
        await clear(blobs, number * 512 + 512, number * 512 + 1024)
    gathered, marker = [], ""
    for _ in range(10):
        answer = await blobs(
            "GET", f"/box/disk?comp=pagelist&prevsnapshot={first}&maxresults=2&marker={marker}"
        )
        gathered += ranges_in(answer)
        marker = answer.xml.findtext("NextMarker") or ""
        if not marker:
            break
    assert gathered == [
        *("+0-511", "-512-1023"),
        *("+2048-2559", "-2560-3071"),
        *("+4096-4607", "-4608-5119"),
    ]


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("&prevsnapshot=2020-01-01T00:00:00.0000000Z", 409, "PreviousSnapshotNotFound"),
        ("&prevsnapshot=SECOND&snapshot=FIRST", 400, "PreviousSnapshotCannotBeNewer"),
        ("&prevsnapshot=yesterday", 400, "InvalidQueryParameterValue"),
    ],
)
async def test_there_must_be_something_older_to_compare_with(
    blobs: Harness, query: str, status: int, code: str
) -> None:
    await make(blobs)
    first, second = await snapshot(blobs), await snapshot(blobs)
    query = query.replace("FIRST", first).replace("SECOND", second)
    answer = await blobs("GET", f"/box/disk?comp=pagelist{query}")
    assert (answer.status, answer.code) == (status, code)


async def test_a_blob_that_was_made_anew_differs_wherever_there_is_data(blobs: Harness) -> None:
    await make(blobs, 2048)
    await write(blobs, 0, b"a" * 1024)
    first = await snapshot(blobs)
    await make(blobs, 2048)
    await write(blobs, 512, b"a" * 1024)
    assert await changes(blobs, f"&prevsnapshot={first}") == ["-0-511", "+512-1535"]
