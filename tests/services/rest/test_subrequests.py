"""Requests inside requests: they come from the caller of the outer one, and are authorised like any other."""

from collections.abc import Sequence

import pytest

from kyanite.extents.api import Extent
from kyanite.extents.local.store import LocalExtents
from kyanite.services.rest.subrequests import path_and_query
from tests.services.harness import Harness
from tests.services.tokens import blob_token

HERE = "http://localhost:10000/acme"
BLOCK = {"x-ms-blob-type": "BlockBlob"}
PAGE_BLOB = {"x-ms-blob-type": "PageBlob"}
MIB = 1024 * 1024


@pytest.mark.parametrize(
    ("text", "path", "query"),
    [
        ("/box/blob", "/box/blob", ""),
        ("/box/blob?comp=tier", "/box/blob", "comp=tier"),
        ("/box/blob?a=b?c", "/box/blob", "a=b?c"),
        ("http://anything/box/blob?comp=tier", "/box/blob", "comp=tier"),
        ("https://anything:10000/box", "/box", ""),
        ("http://anything", "/", ""),
    ],
)
def test_the_target_of_a_part(text: str, path: str, query: str) -> None:
    assert path_and_query(text) == (path, query)


async def copy(blobs: Harness, token: str, *, peer: str = "127.0.0.1", secure: bool = False) -> int:
    await blobs("PUT", "/box?restype=container")
    await blobs("PUT", "/box/src", BLOCK, b"data")
    source = {"x-ms-copy-source": f"{HERE}/box/src?{token}"}
    return (await blobs("PUT", "/box/dst", BLOCK | source, peer=peer, secure=secure)).status


@pytest.mark.parametrize(("peer", "status"), [("10.0.0.7", 201), ("10.0.0.8", 403)])
async def test_a_source_is_read_from_the_address_of_the_caller(
    blobs: Harness, peer: str, status: int
) -> None:
    assert await copy(blobs, blob_token(blobs, "src", address="10.0.0.7"), peer=peer) == status


@pytest.mark.parametrize(("secure", "status"), [(True, 201), (False, 403)])
async def test_a_source_is_read_over_the_protocol_of_the_caller(
    blobs: Harness, secure: bool, status: int
) -> None:
    assert await copy(blobs, blob_token(blobs, "src", protocol="https"), secure=secure) == status


@pytest.mark.parametrize(("permission", "status"), [("r", 201), ("w", 403)])
async def test_a_source_needs_permission(blobs: Harness, permission: str, status: int) -> None:
    assert await copy(blobs, blob_token(blobs, "src", permission=permission)) == status


@pytest.mark.parametrize(("peer", "status"), [("10.0.0.7", b" 202 "), ("10.0.0.8", b" 403 ")])
async def test_a_part_of_a_batch_comes_from_the_address_of_the_caller(
    blobs: Harness, peer: str, status: bytes
) -> None:
    await blobs("PUT", "/box?restype=container")
    await blobs("PUT", "/box/blob", BLOCK, b"data")
    token = blob_token(blobs, "blob", permission="d", address="10.0.0.7")
    body = (
        "--b\r\nContent-Type: application/http\r\nContent-ID: 0\r\n\r\n"
        f"DELETE /acme/box/blob?{token} HTTP/1.1\r\nContent-Length: 0\r\n\r\n\r\n--b--\r\n"
    )
    headers = {"Content-Type": "multipart/mixed; boundary=b"}
    answer = await blobs("POST", "/?comp=batch", headers, body.encode(), peer=peer)
    assert (answer.status, answer.body.split(b"HTTP/1.1")[1][:5]) == (202, status)


async def test_the_bytes_of_a_source_that_is_too_short_are_discarded(
    blobs: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    await blobs("PUT", "/box?restype=container")
    await blobs("PUT", "/box/src", BLOCK, bytes(2 * MIB))
    await blobs("PUT", "/box/pages", PAGE_BLOB | {"x-ms-blob-content-length": str(4 * MIB)})
    discarded: list[Extent] = []

    async def discard(_: LocalExtents, extents: Sequence[Extent]) -> None:
        discarded.extend(extents)

    monkeypatch.setattr(LocalExtents, "discard", discard)
    last = 3 * MIB - 1
    write = {
        "x-ms-page-write": "update",
        "x-ms-range": f"bytes=0-{last}",
        "x-ms-source-range": f"bytes=0-{last}",
    }
    source = {"x-ms-copy-source": f"{HERE}/box/src?{blob_token(blobs, 'src')}"}
    answer = await blobs("PUT", "/box/pages?comp=page", write | source)
    assert (answer.status, answer.code) == (416, "InvalidPageRange")
    assert sum(extent.length for extent in discarded) == 2 * MIB
