"""Blob rows of several requests: a chain of conditional writes and a lease cycle."""

from collections.abc import Callable

from bench.load.plan import CLIENT_REQUEST_ID, Kept, Plan, Step
from bench.load.single_request import send_request
from bench.load.site import Site
from bench.load.works import KIB, Content
from bench.rows.row import Row
from bench.servers.peers import Server

_SMALL = Content.of(KIB)
_PUT = f"{CLIENT_REQUEST_ID}x-ms-blob-type: BlockBlob\r\nContent-Length: {_SMALL.size}\r\n"


def if_match_chain(site: Site, container: str, series: str) -> Plan:
    """Each lane overwrites a blob of its own, on condition that it is still what the last write made it."""
    path, etag = f"/{container}/{series}-@lane@", Kept("etag", header="ETag")

    def put(condition: str) -> Step:
        return Step.of(site.head("PUT", path, headers=_PUT + condition), 201, etag, body=_SMALL.piece)

    return Plan([put("If-Match: @etag@\r\n")], first=[put("")])


def lease_cycles(site: Site, container: str, series: str) -> Plan:
    """Acquire, renew and release, each lane on a blob of its own."""
    path = f"/{container}/{series}-@lane@"

    def lease(action: str, more: str, status: int, *kept: Kept) -> Step:
        headers = f"{CLIENT_REQUEST_ID}Content-Length: 0\r\nx-ms-lease-action: {action}\r\n{more}"
        return Step.of(site.head("PUT", path, "comp=lease", headers), status, *kept)

    put = Step.of(site.head("PUT", path, headers=_PUT), 201, body=_SMALL.piece)
    acquire = lease("acquire", "x-ms-lease-duration: 15\r\n", 201, Kept("lease", header="x-ms-lease-id"))
    renew, release = (lease(action, "x-ms-lease-id: @lease@\r\n", 200) for action in ("renew", "release"))
    return Plan([acquire, renew, release], first=[put])


def _chain_row(lanes: int) -> Row:
    return _row("if-match", "If-Match chain 1 KiB", if_match_chain, lanes, 1)


def _lease_row(lanes: int) -> Row:
    return _row("lease-cycle", "lease: acquire, renew, release", lease_cycles, lanes, 3)


def _row(
    label: str,
    title: str,
    work: Callable[[Site, str, str], Plan],
    lanes: int,
    requests: int,
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
    )


def _check_condition(server: Server, container: str) -> None:
    """A stale ETag must be refused, or the row measures something else."""
    headers = 'x-ms-blob-type: BlockBlob\r\nContent-Length: 0\r\nIf-Match: "0x1"\r\n'
    send_request(server.site, server.site.head("PUT", f"/{container}/0-00", headers=headers), 412)


CHAIN_ROWS: tuple[Row, ...] = (
    _chain_row(1),
    _chain_row(32),
    _lease_row(1),
    _lease_row(32),
)
