"""``python -m bench.polite``: what a polite client waits while others ask for as much as they can.

One client reads a small blob, one request at a time; beside loads over SMB another one reads 4 KiB of a file. Beside it
run so many others: polite ones first, which gives the figure to compare with, then hostile ones of each kind. The table
has the p50 and p99 of the one client's waits, and its p99 as a multiple of the p99 beside as many polite clients.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bench.hostile import rest, smb
from bench.hostile.crowd import Crowd
from bench.hostile.load import CONTAINER, SHARE, Load, Sites, Sizes, get, put
from bench.hostile.smb_lane import SmbLane
from bench.load.client import Crew, Tally, drive, load
from bench.load.lane import Lane, Request, Work
from bench.load.single_request import send_request
from bench.servers.peers import Kyanite

LOADS = (*rest.LOADS, *smb.LOADS)
_MIB = 1024 * 1024


def polite(sites: Sites, sizes: Sizes, number: int) -> Work:
    while True:
        yield get(sites["blob"], f"/{CONTAINER}/small")


POLITE = {
    "HTTP": Load("polite clients", 1, polite),
    "SMB": Load("polite clients", 1, smb.polite, service="smb", lane=SmbLane),
}


def protocols_of(kind: Load) -> tuple[str, ...]:
    """Of the polite clients beside a load."""
    return ("HTTP", "SMB") if kind.service == "smb" else ("HTTP",)


# What must be there


def prepare(sites: Sites, sizes: Sizes) -> None:
    """What every load uses."""
    none = "Content-Length: 0\r\n"
    blob, file, queue, table = (sites[name] for name in ("blob", "file", "queue", "table"))
    send_request(blob, blob.head("PUT", f"/{CONTAINER}", "restype=container", none), 201)
    send_request(file, file.head("PUT", f"/{SHARE}", "restype=share", none), 201)
    send_request(file, file.head("PUT", f"/{SHARE}/many", "restype=directory", none), 201)
    send_request(queue, queue.head("PUT", "/polite", "", none), 201)
    named = b'{"TableName":"polite"}'
    headers = f"Content-Type: application/json\r\nContent-Length: {len(named)}\r\n"
    send_request(table, table.head("POST", "/Tables", "", headers) + named, 201)
    send_all(sites, list(_things(sites, sizes)))
    for first in range(0, 4 * _MIB, _MIB):
        write = f"x-ms-write: update\r\nx-ms-range: bytes={first}-{first + _MIB - 1}\r\n"
        data = put(file, f"/{SHARE}/large", "comp=range", write, bytes(_MIB))
        send_request(file, data.data, 201)


def _things(sites: Sites, sizes: Sizes) -> Iterator[tuple[str, Request]]:
    pages = f"x-ms-blob-type: PageBlob\r\nx-ms-blob-content-length: {sizes.ranges * 1024}\r\n"
    yield "blob", put(sites["blob"], f"/{CONTAINER}/small", headers=rest.BLOB, body=bytes(1024))
    yield "blob", put(sites["blob"], f"/{CONTAINER}/pages", headers=pages)
    for name, length in (("small", 4096), ("shared", 10), ("locked", 10), ("large", 4 * _MIB)):
        headers = f"x-ms-type: file\r\nx-ms-content-length: {length}\r\n"
        yield "file", put(sites["file"], f"/{SHARE}/{name}", headers=headers)


def fill(sites: Sites, sizes: Sizes, loads: Sequence[Load]) -> None:
    for each in dict.fromkeys(kind.fill for kind in loads if kind.fill is not None):
        send_all(sites, list(each(sites, sizes)))


def send_all(sites: Sites, requests: Sequence[tuple[str, Request]]) -> None:
    for service in dict.fromkeys(service for service, _ in requests):
        every = [request for of, request in requests if of == service]
        lanes = min(64, len(every))
        tally = load(sites[service], lambda number: iterated(every[number::lanes]), lanes=lanes, seconds=None)  # noqa: B023
        if tally.errors:
            sys.exit(f"The store could not be filled: {tally.errors[0]}")


def iterated(requests: list[Request]) -> Work:
    for request in requests:  # noqa: UP028  A list takes no answers.
        yield request


# Measuring


class Beside(NamedTuple):
    """What one polite client got beside a load, and what the others got."""

    own: Tally
    others: Tally


@contextmanager
def under(sites: Sites, sizes: Sizes, kind: Load, seconds: float) -> Iterator[Sequence[Crew]]:
    """While the load is there; its lanes, if it has any."""
    if kind.crowd is not None:
        gather = kind.crowd
        crowd = Crowd(lambda: gather(sites, sizes))
        try:
            yield ()
        finally:
            crowd.end()
        return
    work = kind.work
    assert work is not None
    crew = Crew(sites[kind.service], lambda number: work(sites, sizes, number), range(kind.lanes), kind.lane)
    try:
        crew.wait_until_connected()
        crew.go(seconds, 1)
        yield (crew,)
    finally:
        crew.end()


def measured(sites: Sites, sizes: Sizes, kind: Load, protocol: str, seconds: float) -> Beside:
    with under(sites, sizes, kind, seconds + 1) as crews:
        own = polite_client(sites, sizes, protocol, seconds)
        return Beside(own, crews[0].result() if crews else Tally())


def polite_client(sites: Sites, sizes: Sizes, protocol: str, seconds: float) -> Tally:
    one = POLITE[protocol]
    assert one.work is not None
    site = sites[one.service]
    lane: Lane = one.lane(site.host, site.port, one.work(sites, sizes, 0))
    return drive([lane], seconds, 1)


class Figure(NamedTuple):
    """A line of the table."""

    name: str
    lanes: int
    protocol: str
    p50_ms: float
    p99_ms: float
    times: float | None
    """The p99 as a multiple of that beside as many polite clients."""
    others_rate: float
    errors: Sequence[str]


def figures(sites: Sites, sizes: Sizes, loads: Sequence[Load], seconds: float) -> Iterator[Figure]:
    usual: dict[tuple[str, int], float] = {}
    for kind in loads:
        for protocol in protocols_of(kind):
            base = (protocol, kind.lanes)
            if base not in usual:
                politely = POLITE[protocol]._replace(lanes=kind.lanes)
                first = figure(sites, sizes, politely, protocol, seconds, None)
                usual[base] = first.p99_ms
                yield first
            yield figure(sites, sizes, kind, protocol, seconds, usual[base])


def figure(
    sites: Sites, sizes: Sizes, kind: Load, protocol: str, seconds: float, usual: float | None
) -> Figure:
    own, others = measured(sites, sizes, kind, protocol, seconds)
    p99 = own.percentile_ms(0.99)
    times = None if usual is None else p99 / usual
    errors = [*own.errors, *others.errors]
    return Figure(kind.name, kind.lanes, protocol, own.percentile_ms(0.5), p99, times, others.rate, errors)


HEADINGS = (
    f"{'beside':<40} {'lanes':>5} {'client':>6} {'p50 ms':>8} {'p99 ms':>8} {'times':>6}   the others /s"
)


def line(found: Figure) -> str:
    times = "" if found.times is None else f"{found.times:.1f}"
    errors = f"   errors: {found.errors[0][:60]}" if found.errors else ""
    return (
        f"{found.name:<40} {found.lanes:>5} {found.protocol:>6} {found.p50_ms:>8.2f} {found.p99_ms:>8.2f}"
        f" {times:>6}   {found.others_rate:.1f}{errors}"
    )


@contextmanager
def prepared(folder: Path, sizes: Sizes, loads: Sequence[Load]) -> Iterator[Kyanite]:
    """A server with everything that the loads need."""
    server = Kyanite(folder / "store")
    try:
        server.start()
        prepare(server.sites, sizes)
        fill(server.sites, sizes, loads)
        yield server
    finally:
        server.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--only", default="", help="loads whose name contains this")
    options = parser.parse_args()
    loads = [kind for kind in LOADS if options.only in kind.name]
    sizes = Sizes()
    with (
        tempfile.TemporaryDirectory(prefix="kyanite-polite-") as folder,
        prepared(Path(folder), sizes, loads) as server,
    ):
        print(HEADINGS)
        for found in figures(server.sites, sizes, loads, options.seconds):
            print(line(found), flush=True)


if __name__ == "__main__":
    main()
