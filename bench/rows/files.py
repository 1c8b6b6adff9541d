"""File rows: a small file from creation to deletion, a large one written and read, a large directory listed.

No peer has a File service, so these rows are there to be compared with themselves.
"""

from dataclasses import dataclass

from bench.load.client import LaneWork, load
from bench.load.lane import Body, Request, Work, expecting
from bench.load.plan import CLIENT_REQUEST_ID, Plan, Step
from bench.load.single_request import send_request
from bench.load.site import Site
from bench.load.works import MIB, Content, over_and_over
from bench.rows.blobs import LARGE, MIDDLING, SMALL, size_text
from bench.rows.row import Row, row_of
from bench.rows.uploads import HUGE
from bench.servers.peers import Server

_FILLERS = 32
_RANGE_BYTES = 4 * MIB
_RANGED_BYTES = 16 * MIB
_READ = Content.of(64 * MIB)
_LIST = "restype=directory&comp=list&maxresults=5000"


@dataclass(frozen=True, slots=True)
class Share:
    """A share for a row to work in: empty, with many small files in one directory, or with one large file."""

    name: str
    entries: int = 0
    content: Content | None = None

    def __str__(self) -> str:
        return f"a file of {size_text(self.content)}" if self.content else f"{self.entries:,} files"

    def fill(self, server: Server) -> None:
        site = server.sites["file"]
        send_request(site, site.head("PUT", f"/{self.name}", "restype=share", "Content-Length: 0\r\n"), 201)
        if self.content is not None:
            _run(server, lambda lane: _write_whole(site, f"/{self.name}/file", self.content), 1)
        if not self.entries:
            return

        def fill(lane: int) -> Work:
            for number in range(lane, self.entries, _FILLERS):
                yield create_file(site, f"/{self.name}/file-{number:06}", 0)

        _run(server, fill, _FILLERS)


def _run(server: Server, work: LaneWork, lanes: int) -> None:
    tally = load(server.sites["file"], work, lanes=lanes, seconds=None)
    if tally.errors:
        raise RuntimeError(f"{server.name} could not be filled: {tally.errors[0]}")


def create_file(site: Site, path: str, length: int) -> Request:
    headers = f"x-ms-type: file\r\nx-ms-content-length: {length}\r\nContent-Length: 0\r\n"
    return Request(site.head("PUT", path, headers=headers), expecting(201))


def put_range(site: Site, path: str, first: int, content: Content) -> Request:
    last = first + content.size - 1
    headers = f"x-ms-write: update\r\nx-ms-range: bytes={first}-{last}\r\nContent-Length: {content.size}\r\n"
    head = site.head("PUT", path, "comp=range", headers)
    if content.times == 1 and content.size <= 16 * 1024:
        return Request(head + content.piece, expecting(201))
    return Request(head, expecting(201), Body(memoryview(content.piece), content.times))


def _write_whole(site: Site, path: str, content: Content | None) -> Work:
    """A file of this content, written as clients do: by ranges of 4 MiB."""
    assert content is not None
    yield create_file(site, path, content.size)
    part = Content(content.piece, _RANGE_BYTES // len(content.piece))
    for first in range(0, content.size, _RANGE_BYTES):
        yield put_range(site, path, first, part)


def cycles(site: Site, share: str, series: str) -> Plan:
    """Create a file of 1 KiB, write it, read it, delete it."""
    path = f"/{share}/{series}-@lane@-@number@"
    last = SMALL.size - 1
    create = f"x-ms-type: file\r\nx-ms-content-length: {SMALL.size}\r\nContent-Length: 0\r\n"
    write = f"x-ms-write: update\r\nx-ms-range: bytes=0-{last}\r\nContent-Length: {SMALL.size}\r\n"
    return Plan(
        [
            Step.of(site.head("PUT", path, headers=CLIENT_REQUEST_ID + create), 201),
            Step.of(site.head("PUT", path, "comp=range", CLIENT_REQUEST_ID + write), 201, body=SMALL.piece),
            Step.of(site.head("GET", path, headers=CLIENT_REQUEST_ID), 200),
            Step.of(site.head("DELETE", path, headers=CLIENT_REQUEST_ID), 202),
        ]
    )


def range_puts(site: Site, share: str, series: str, content: Content) -> LaneWork:
    """One range after the other, each lane in a file of its own, over and over."""

    def work(lane: int) -> Work:
        path = f"/{share}/{series}-{lane}"
        yield create_file(site, path, _RANGED_BYTES)
        while True:
            for first in range(0, _RANGED_BYTES, content.size):
                yield put_range(site, path, first, content)

    return work


def range_gets(site: Site, share: str, content: Content) -> LaneWork:
    """One range after the other of the same file, every lane beginning elsewhere."""
    spans = (
        f"x-ms-range: bytes={first}-{first + content.size - 1}\r\n"
        for first in range(0, _READ.size, content.size)
    )
    path = f"/{share}/file"
    return over_and_over([Request(site.head("GET", path, headers=span), expecting(206)) for span in spans])


def uploads(site: Site, share: str, series: str) -> LaneWork:
    part = Content(HUGE.piece, _RANGE_BYTES // len(HUGE.piece))

    def work(lane: int) -> Work:
        path = f"/{share}/{series}-{lane}"
        yield create_file(site, path, HUGE.size)
        while True:
            for first in range(0, HUGE.size, _RANGE_BYTES):
                yield put_range(site, path, first, part)

    return work


def downloads(site: Site, share: str, _series: str) -> LaneWork:
    return over_and_over([Request(site.head("GET", f"/{share}/file"), expecting(200))])


def lists(site: Site, share: str, _series: str) -> LaneWork:
    return over_and_over([Request(site.head("GET", f"/{share}", _LIST), expecting(200))])


def _cycle_row(lanes: int) -> Row:
    share = Share(f"cycle-{lanes}")

    def check(server: Server) -> None:
        site = server.sites["file"]
        path = f"/{share.name}/check"
        send_request(site, create_file(site, path, SMALL.size).data, 201)
        send_request(site, put_range(site, path, 0, SMALL).data, 201)
        if send_request(site, site.head("GET", path), 200) != SMALL.piece:
            raise RuntimeError(f"{server.name} gave back something else than was put")

    title = "create, write, read, delete a file of 1 KiB"
    return row_of("file", f"cycle/{lanes}", title, share, cycles, check, requests_per_operation=4)


def _range_rows(label: str, content: Content, lanes: int) -> list[Row]:
    written, read = Share(f"ranges-{label}-{lanes}"), Share("ranges", content=_READ)

    def check_written(server: Server) -> None:
        _check_range(server, f"/{written.name}/0-0", 0, content)

    def check_read(server: Server) -> None:
        _check_range(server, f"/{read.name}/file", _READ.size - MIB, Content(_READ.piece, 1))

    def puts(site: Site, share: str, series: str) -> LaneWork:
        return range_puts(site, share, series, content)

    def gets(site: Site, share: str, _series: str) -> LaneWork:
        return range_gets(site, share, content)

    size = size_text(content)
    put, get = f"put-range-{label}/{lanes}", f"get-range-{label}/{lanes}"
    return [
        row_of("file", put, f"write a file range of {size}", written, puts, check_written),
        row_of("file", get, f"read a file range of {size}", read, gets, check_read),
    ]


def _check_range(server: Server, path: str, first: int, content: Content) -> None:
    site = server.sites["file"]
    head = site.head("GET", path, headers=f"x-ms-range: bytes={first}-{first + content.size - 1}\r\n")
    if send_request(site, head, 206) != content.piece:
        raise RuntimeError(f"{server.name} gave back something else than was put")


def _upload_row() -> Row:
    share = Share("upload")
    return row_of(
        "file",
        "upload-256m/1",
        "write a file of 256 MiB by ranges of 4 MiB",
        share,
        uploads,
        lambda server: None,
        unit=" MiB/s",
        units_per_operation=_RANGE_BYTES / MIB,
        beside=("receiver",),
    )


def _download_row() -> Row:
    share = Share("download", content=HUGE)

    def check(server: Server) -> None:
        _check_range(server, f"/{share.name}/file", HUGE.size - MIB, Content(HUGE.piece, 1))

    measured = {"unit": " MiB/s", "units_per_operation": HUGE.size / MIB}
    return row_of("file", "download-256m/1", "read a file of 256 MiB", share, downloads, check, **measured)


def _list_row(lanes: int, count: int) -> Row:
    share = Share("listed", entries=count)

    def check(server: Server) -> None:
        site = server.sites["file"]
        found = send_request(site, site.head("GET", f"/{share.name}", _LIST), 200).count(b"<File>")
        if found != 5000:
            raise RuntimeError(f"{server.name} listed {found} instead of 5000")

    return row_of("file", f"list/{lanes}", f"list 5,000 of {count:,} files", share, lists, check)


def file_rows(listed: int) -> list[Row]:
    return [
        _cycle_row(1),
        _cycle_row(32),
        *_range_rows("64k", MIDDLING, 1),
        *_range_rows("64k", MIDDLING, 32),
        *_range_rows("1m", LARGE, 1),
        *_range_rows("1m", LARGE, 32),
        _upload_row(),
        _download_row(),
        _list_row(1, listed),
        _list_row(32, listed),
    ]
