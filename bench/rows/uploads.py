"""Rows of large bodies: blobs put whole, by blocks, by appends and by pages, and downloads.

Whole blobs are also held against MD5 on one core, which Put Blob returns, the rest against a loop that receives and
writes and does nothing else.
"""

import hashlib
from base64 import b64encode
from collections.abc import Callable
from itertools import count
from time import perf_counter

from bench.load.client import LaneWork
from bench.load.lane import Body, Request, Work, expecting
from bench.load.single_request import send_request
from bench.load.site import Site
from bench.load.works import FIRST_PUT, MIB, Content, gets, puts
from bench.rows.blobs import Blobs, check_content
from bench.rows.row import Row
from bench.servers.peers import Server

HUGE = Content.of(256 * MIB)
_QUARTER = Content.of(64 * MIB)
_HUGE_BLOB = Blobs("huge", ("blob",), HUGE)
_PART = Content.of(4 * MIB)
_PARTS = 16
_PART_BODY = Body(memoryview(_PART.piece), _PART.times)


def md5_rate() -> float:
    """MiB/s of MD5 on one core."""
    piece, pieces = HUGE.piece, 128
    hashed = hashlib.md5(usedforsecurity=False)
    began_at = perf_counter()
    for _ in range(pieces):
        hashed.update(piece)
    return pieces * len(piece) / MIB / (perf_counter() - began_at)


def block_uploads(site: Site, container: str, series: str) -> LaneWork:
    """Blobs of 64 MiB, in blocks of 4 MiB that are then committed."""
    ids = [b64encode(b"%06d" % number).decode() for number in range(_PARTS)]
    entries = "".join(f"<Latest>{block_id}</Latest>" for block_id in ids)
    document = f"<BlockList>{entries}</BlockList>".encode()

    def work(lane: int) -> Work:
        for number in count():
            path = f"/{container}/{series}-{lane:02}-{number:08}"
            for block_id in ids:
                yield _part(site, path, f"comp=block&blockid={block_id.replace('=', '%3D')}")
            headers = f"Content-Length: {len(document)}\r\n"
            yield Request(site.head("PUT", path, "comp=blocklist", headers) + document, expecting(201))

    return work


def append_uploads(site: Site, container: str, series: str) -> LaneWork:
    """Append blobs of 64 MiB, by 4 MiB."""

    def work(lane: int) -> Work:
        for number in count():
            path = f"/{container}/{series}-{lane:02}-{number:08}"
            yield _creation(site, path, "x-ms-blob-type: AppendBlob\r\n")
            for _ in range(_PARTS):
                yield _part(site, path, "comp=appendblock")

    return work


def page_uploads(site: Site, container: str, series: str) -> LaneWork:
    """Page blobs of 64 MiB, by 4 MiB."""
    size = _PARTS * _PART.size

    def work(lane: int) -> Work:
        for number in count():
            path = f"/{container}/{series}-{lane:02}-{number:08}"
            headers = f"x-ms-blob-type: PageBlob\r\nx-ms-blob-content-length: {size}\r\n"
            yield _creation(site, path, headers)
            for first in range(0, size, _PART.size):
                span = f"x-ms-range: bytes={first}-{first + _PART.size - 1}\r\n"
                yield _part(site, path, "comp=page", f"x-ms-page-write: update\r\n{span}")

    return work


def _creation(site: Site, path: str, headers: str) -> Request:
    return Request(site.head("PUT", path, headers=f"{headers}Content-Length: 0\r\n"), expecting(201))


def _part(site: Site, path: str, query: str, headers: str = "") -> Request:
    headers += f"Content-Length: {_PART.size}\r\n"
    return Request(site.head("PUT", path, query, headers), expecting(201), _PART_BODY)


def _whole_row(content: Content, lanes: int) -> Row:
    container = f"upload-{lanes}"
    return Row(
        name=f"upload-256m/{lanes}",
        title="upload a blob of 256 MiB"
        if lanes == 1
        else f"upload {lanes} blobs of {content.size // MIB} MiB",
        lanes=lanes,
        work=lambda server, series: puts(server.site, container, content, series),
        check=lambda server: check_content(server, container, FIRST_PUT, content),
        container=container,
        unit=" MiB/s",
        units_per_operation=content.size / MIB,
        yardsticks={"md5": md5_rate},
    )


def _parts_row(label: str, title: str, work: Callable[[Site, str, str], LaneWork], lanes: int) -> Row:
    container = f"{label}-{lanes}"

    def check(server: Server) -> None:
        last = _PARTS * _PART.size - 1
        head = server.site.head("GET", f"/{container}/{FIRST_PUT}", headers=f"Range: bytes={last}-\r\n")
        if send_request(server.site, head, 206) != _PART.piece[-1:]:
            raise RuntimeError(f"{server.name} gave back something else than was put")

    return Row(
        name=f"upload-{label}/{lanes}",
        title=f"upload a blob of 64 MiB by {title} of 4 MiB",
        lanes=lanes,
        work=lambda server, series: work(server.site, container, series),
        check=check,
        container=container,
        unit=" MiB/s",
        units_per_operation=_PARTS * _PART.size / MIB,
        requests_per_operation=_PARTS + 1,
        beside=("receiver",),
    )


def _download_row(lanes: int) -> Row:
    return Row(
        name=f"download-256m/{lanes}",
        title="download a blob of 256 MiB",
        lanes=lanes,
        work=lambda server, series: gets(server.site, _HUGE_BLOB.container, _HUGE_BLOB.names),
        check=lambda server: check_content(server, _HUGE_BLOB.container, _HUGE_BLOB.names[0], HUGE),
        dataset=_HUGE_BLOB,
        unit=" MiB/s",
        units_per_operation=HUGE.size / MIB,
        beside=("nginx",),
    )


UPLOAD_ROWS: tuple[Row, ...] = (
    _whole_row(HUGE, 1),
    _whole_row(_QUARTER, 4),
    _parts_row("blocks", "blocks", block_uploads, 1),
    _parts_row("blocks", "blocks", block_uploads, 4),
    _parts_row("appends", "appends", append_uploads, 1),
    _parts_row("appends", "appends", append_uploads, 4),
    _parts_row("pages", "pages", page_uploads, 1),
    _parts_row("pages", "pages", page_uploads, 4),
    _download_row(1),
    _download_row(4),
)
