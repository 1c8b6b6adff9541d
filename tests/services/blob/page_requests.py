"""Requests for the pages of one page blob."""

from tests.services.harness import Answer, Harness

PAGE = {"x-ms-blob-type": "PageBlob"}


async def make(blobs: Harness, size: int = 4096, headers: dict[str, str] | None = None) -> None:
    await blobs("PUT", "/box?restype=container")
    sent = PAGE | {"x-ms-blob-content-length": str(size)} | (headers or {})
    assert (await blobs("PUT", "/box/disk", sent)).status == 201


async def write(blobs: Harness, start: int, data: bytes, headers: dict[str, str] | None = None) -> Answer:
    sent = {"x-ms-page-write": "update", "x-ms-range": f"bytes={start}-{start + len(data) - 1}"}
    return await blobs("PUT", "/box/disk?comp=page", sent | (headers or {}), data)


async def clear(blobs: Harness, start: int, end: int) -> Answer:
    sent = {"x-ms-page-write": "clear", "Range": f"bytes={start}-{end - 1}"}
    return await blobs("PUT", "/box/disk?comp=page", sent)
