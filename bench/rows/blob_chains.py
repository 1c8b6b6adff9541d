"""Blob rows of several requests: a chain of conditional writes, a lease cycle, an upload by blocks."""

from base64 import b64encode
from collections.abc import Callable
from itertools import count

from bench.load.answers import header
from bench.load.client import LaneWork
from bench.load.lane import Body, Request, Work, expecting
from bench.load.single_request import send_request
from bench.load.site import Site
from bench.load.works import KIB, MIB, Content, put_blob
from bench.report.bars import AtLeast
from bench.rows.row import Row
from bench.servers.peers import Server

_SMALL = Content.of(KIB)
_BLOCK = Content.of(4 * MIB)
_BLOCKS = 16


def if_match_chain(site: Site, container: str, series: str) -> LaneWork:
    """Each lane overwrites a blob of its own, on condition that it is still what the last write made it."""

    def work(lane: int) -> Work:
        name = f"{series}-{lane}"
        answer = yield put_blob(site, container, name, _SMALL)
        headers = f"x-ms-blob-type: BlockBlob\r\nContent-Length: {_SMALL.size}\r\nIf-Match: @\r\n"
        before, after = site.head("PUT", f"/{container}/{name}", headers=headers).split(b"@")
        while True:
            answer = yield Request(before + header(answer, b"etag") + after + _SMALL.piece, expecting(201))

    return work


def lease_cycles(site: Site, container: str, series: str) -> LaneWork:
    """Acquire, renew and release, each lane on a blob of its own."""

    def work(lane: int) -> Work:
        name = f"{series}-{lane}"
        yield put_blob(site, container, name, _SMALL)

        def lease(action: str, more: str = "") -> bytes:
            headers = f"Content-Length: 0\r\nx-ms-lease-action: {action}\r\n{more}"
            return site.head("PUT", f"/{container}/{name}", "comp=lease", headers=headers)

        acquire = Request(lease("acquire", "x-ms-lease-duration: 15\r\n"), expecting(201))
        renew, release = lease("renew", "x-ms-lease-id: @\r\n"), lease("release", "x-ms-lease-id: @\r\n")
        while True:
            lease_id = header((yield acquire), b"x-ms-lease-id")
            yield Request(renew.replace(b"@", lease_id), expecting(200))
            yield Request(release.replace(b"@", lease_id), expecting(200))

    return work


def block_uploads(site: Site, container: str, series: str) -> LaneWork:
    """Blobs of 64 MiB, in blocks of 4 MiB that are then committed."""
    ids = [b64encode(b"%06d" % number).decode() for number in range(_BLOCKS)]
    entries = "".join(f"<Latest>{block_id}</Latest>" for block_id in ids)
    document = f"<BlockList>{entries}</BlockList>".encode()

    def work(lane: int) -> Work:
        for number in count():
            path = f"/{container}/{series}-{lane}-{number}"
            for block_id in ids:
                headers = f"Content-Length: {_BLOCK.size}\r\n"
                head = site.head("PUT", path, f"comp=block&blockid={block_id.replace('=', '%3D')}", headers)
                yield Request(head, expecting(201), Body(memoryview(_BLOCK.piece), _BLOCK.times))
            headers = f"Content-Length: {len(document)}\r\n"
            yield Request(site.head("PUT", path, "comp=blocklist", headers) + document, expecting(201))

    return work


def _chain_row(lanes: int, *bars: AtLeast) -> Row:
    return _conditional_row("if-match", "If-Match chain 1 KiB", if_match_chain, lanes, 1, bars)


def _lease_row(lanes: int, *bars: AtLeast) -> Row:
    return _conditional_row("lease-cycle", "lease: acquire, renew, release", lease_cycles, lanes, 3, bars)


def _conditional_row(
    label: str,
    title: str,
    work: Callable[[Site, str, str], LaneWork],
    lanes: int,
    requests: int,
    bars: tuple[AtLeast, ...],
) -> Row:
    """A row that counts on conditions being checked."""
    container = f"{label}-{lanes}"
    return Row(
        name=f"{label}/{lanes}",
        title=title,
        lanes=lanes,
        work=lambda server, series: work(server.site, container, series),
        check=lambda server: _check_condition(server, container),
        container=container,
        requests_per_operation=requests,
        bars=bars,
    )


def _blocks_row(lanes: int, *bars: AtLeast) -> Row:
    container = f"blocks-{lanes}"

    def check(server: Server) -> None:
        last = _BLOCKS * _BLOCK.size - 1
        head = server.site.head("GET", f"/{container}/0-0-0", headers=f"Range: bytes={last}-\r\n")
        if send_request(server.site, head, 206) != _BLOCK.piece[-1:]:
            raise RuntimeError(f"{server.name} gave back something else than was put")

    return Row(
        name=f"upload-blocks/{lanes}",
        title="upload 64 MiB by blocks of 4 MiB",
        lanes=lanes,
        work=lambda server, series: block_uploads(server.site, container, series),
        check=check,
        container=container,
        unit=" MiB/s",
        units_per_operation=_BLOCKS * _BLOCK.size / MIB,
        requests_per_operation=_BLOCKS + 1,
        bars=bars,
    )


def _check_condition(server: Server, container: str) -> None:
    """A stale ETag must be refused, or the row measures something else."""
    headers = 'x-ms-blob-type: BlockBlob\r\nContent-Length: 0\r\nIf-Match: "0x1"\r\n'
    send_request(server.site, server.site.head("PUT", f"/{container}/0-0", headers=headers), 412)


CHAIN_ROWS: tuple[Row, ...] = (
    _chain_row(1),
    _chain_row(32, AtLeast(8, "azurite")),
    _lease_row(1),
    _lease_row(32, AtLeast(12, "azurite")),
    _blocks_row(1),
    _blocks_row(4, AtLeast(8, "azurite")),
)
