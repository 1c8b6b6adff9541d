"""Page blobs: writes, clears, ranges, sizes and sequence numbers."""

import pytest

from tests.services.blob.page_requests import PAGE, clear, make, write
from tests.services.harness import Harness


async def pages(
    blobs: Harness, query: str = "", headers: dict[str, str] | None = None
) -> list[tuple[int, int]]:
    answer = await blobs("GET", f"/box/disk?comp=pagelist{query}", headers)
    assert answer.status == 200
    return [
        (int(item.findtext("Start") or ""), int(item.findtext("End") or "") + 1)
        for item in answer.xml.iter("PageRange")
    ]


async def test_pages_are_written_and_cleared_anywhere(blobs: Harness) -> None:
    await make(blobs)
    image = bytearray(4096)
    assert await pages(blobs) == []
    for start, data in ((1024, b"a" * 512), (2048, b"b" * 1024), (1536, b"c" * 1024)):
        answer = await write(blobs, start, data)
        assert answer.status == 201
        image[start : start + len(data)] = data
    assert (await blobs("GET", "/box/disk")).body == bytes(image)
    assert await pages(blobs) == [(1024, 3072)]
    assert (await clear(blobs, 1536, 2048)).status == 201
    image[1536:2048] = bytes(512)
    got = await blobs("GET", "/box/disk", {"Range": "bytes=1000-3000"})
    assert got.body == bytes(image[1000:3001])
    assert await pages(blobs) == [(1024, 1536), (2048, 3072)]
    assert await pages(blobs, headers={"Range": "bytes=0-1535"}) == [(1024, 1536)]


async def test_ranges_come_in_pages_on_request(blobs: Harness) -> None:
    await make(blobs, 512 * 10)
    for number in range(0, 10, 2):
        await write(blobs, number * 512, b"x" * 512)
    first = await blobs("GET", "/box/disk?comp=pagelist&maxresults=3")
    marker = first.xml.findtext("NextMarker")
    assert len(first.xml.findall("PageRange")) == 3
    assert await pages(blobs, f"&marker={marker}") == [(3072, 3584), (4096, 4608)]


async def test_a_snapshot_keeps_its_pages(blobs: Harness) -> None:
    await make(blobs)
    await write(blobs, 0, b"a" * 512)
    at = (await blobs("PUT", "/box/disk?comp=snapshot")).headers["x-ms-snapshot"]
    await write(blobs, 512, b"b" * 512)
    await clear(blobs, 0, 512)
    assert await pages(blobs, f"&snapshot={at}") == [(0, 512)]
    assert await pages(blobs) == [(512, 1024)]
    assert (await blobs("GET", f"/box/disk?snapshot={at}")).body[:512] == b"a" * 512


async def test_resizing_cuts_off_and_grows_by_zeros(blobs: Harness) -> None:
    await make(blobs, 1024, {"x-ms-blob-content-type": "image/x"})
    await write(blobs, 0, b"a" * 1024)
    for size in ("512", "2048"):
        answer = await blobs("PUT", "/box/disk?comp=properties", {"x-ms-blob-content-length": size})
        assert answer.status == 200
    got = await blobs("GET", "/box/disk")
    assert got.body == b"a" * 512 + bytes(1536)
    assert got.headers["content-type"] == "image/x"


@pytest.mark.parametrize(
    ("headers", "status", "number"),
    [
        ({"x-ms-sequence-number-action": "update", "x-ms-blob-sequence-number": "3"}, 200, "3"),
        ({"x-ms-sequence-number-action": "max", "x-ms-blob-sequence-number": "3"}, 200, "7"),
        ({"x-ms-sequence-number-action": "max", "x-ms-blob-sequence-number": "9"}, 200, "9"),
        ({"x-ms-sequence-number-action": "increment"}, 200, "8"),
        ({"x-ms-sequence-number-action": "increment", "x-ms-blob-sequence-number": "1"}, 400, "7"),
        ({"x-ms-sequence-number-action": "update"}, 400, "7"),
        ({"x-ms-sequence-number-action": "halve"}, 400, "7"),
    ],
)
async def test_sequence_numbers(blobs: Harness, headers: dict[str, str], status: int, number: str) -> None:
    await make(blobs, headers={"x-ms-blob-sequence-number": "7"})
    assert (await blobs("PUT", "/box/disk?comp=properties", headers)).status == status
    assert (await blobs("HEAD", "/box/disk")).headers["x-ms-blob-sequence-number"] == number


async def test_a_sequence_number_does_not_overflow(blobs: Harness) -> None:
    await make(blobs, headers={"x-ms-blob-sequence-number": str(2**63 - 1)})
    answer = await blobs("PUT", "/box/disk?comp=properties", {"x-ms-sequence-number-action": "increment"})
    assert (answer.status, answer.code) == (409, "SequenceNumberIncrementTooLarge")


@pytest.mark.parametrize(
    ("condition", "number", "met"),
    [("le", 7, True), ("le", 6, False), ("lt", 8, True), ("lt", 7, False), ("eq", 7, True), ("eq", 8, False)],
)
async def test_sequence_conditions_on_writes(blobs: Harness, condition: str, number: int, met: bool) -> None:
    await make(blobs, headers={"x-ms-blob-sequence-number": "7"})
    answer = await write(blobs, 0, b"x" * 512, {f"x-ms-if-sequence-number-{condition}": str(number)})
    assert answer.code == ("" if met else "SequenceNumberConditionNotMet")


@pytest.mark.parametrize(
    ("headers", "size", "status", "code"),
    [
        ({"x-ms-range": "bytes=0-510"}, 511, 416, "InvalidPageRange"),
        ({"x-ms-range": "bytes=1-512"}, 512, 416, "InvalidPageRange"),
        ({"x-ms-range": "bytes=4096-4607"}, 512, 416, "InvalidPageRange"),
        ({"x-ms-range": "bytes=0-"}, 512, 400, "InvalidHeaderValue"),
        ({"x-ms-range": "(absent)"}, 512, 400, "MissingRequiredHeader"),
        ({"x-ms-range": "bytes=0-1023"}, 512, 400, "InvalidHeaderValue"),
        ({"x-ms-range": "bytes=0-8388607"}, 512, 413, "RequestBodyTooLarge"),
        ({"x-ms-page-write": "scribble"}, 512, 400, "InvalidHeaderValue"),
        ({"x-ms-page-write": "(absent)"}, 512, 400, "MissingRequiredHeader"),
        ({"x-ms-if-sequence-number-eq": "x"}, 512, 400, "InvalidHeaderValue"),
    ],
)
async def test_bad_page_writes(
    blobs: Harness, headers: dict[str, str], size: int, status: int, code: str
) -> None:
    await make(blobs)
    sent = {"x-ms-page-write": "update", "x-ms-range": "bytes=0-511"} | headers
    answer = await blobs("PUT", "/box/disk?comp=page", sent, b"x" * size)
    assert (answer.status, answer.code) == (status, code)
    assert await pages(blobs) == []


@pytest.mark.parametrize("size", ["(absent)", "100", "-512", str(9 * 2**40)])
async def test_page_blobs_have_whole_pages(blobs: Harness, size: str) -> None:
    await blobs("PUT", "/box?restype=container")
    answer = await blobs("PUT", "/box/disk", PAGE | {"x-ms-blob-content-length": size})
    assert answer.status == 400


async def test_the_largest_blob_costs_nothing_while_it_is_empty(blobs: Harness) -> None:
    await make(blobs, 8 * 2**40)
    end = 8 * 2**40 - 512
    assert (await write(blobs, end, b"e" * 512)).status == 201
    assert await pages(blobs) == [(end, end + 512)]
    got = await blobs("GET", "/box/disk", {"Range": f"bytes={end - 10}-{end + 9}"})
    assert got.body == bytes(10) + b"e" * 10
