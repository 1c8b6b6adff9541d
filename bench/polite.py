"""``python -m bench.polite``: what a polite client waits while others ask for as much as they can.

One client reads a small blob, one request at a time. Beside it run so many others: polite ones first, which gives the
figure to compare with, then hostile ones of each kind. The table has the p50 and p99 of the one client's waits, and its
p99 as a multiple of the p99 beside as many polite clients.
"""

import argparse
import sys
import tempfile
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.load.client import Crew, Tally, drive, load
from bench.load.lane import Lane, Request, Work, expecting
from bench.load.site import Site
from bench.servers.peers import Kyanite

CONTAINER = "polite"
LISTED_BLOBS, COMMITTED_BLOCKS, STAGED_BLOCKS = 5_000, 49_900, 100_000
_BODY = bytes(1024)
_BLOB = "x-ms-blob-type: BlockBlob\r\n"


class Load(NamedTuple):
    name: str
    lanes: int
    work: Callable[[Site, int], Work]


def put(site: Site, path: str, query: str = "", headers: str = "", body: bytes = b"") -> Request:
    head = site.head("PUT", path, query, f"{headers}Content-Length: {len(body)}\r\n")
    return Request(head + body, expecting(201))


def get(site: Site, path: str, query: str = "", status: int = 200) -> Request:
    return Request(site.head("GET", path, query), expecting(status))


def polite(site: Site, number: int) -> Work:
    while True:
        yield get(site, f"/{CONTAINER}/small")


def listing(site: Site, number: int) -> Work:
    while True:
        yield get(site, f"/{CONTAINER}", "restype=container&comp=list&prefix=listed")


def unknown_ids(site: Site, number: int) -> Work:
    request = put(
        site, f"/{CONTAINER}/unknown-{number}", "comp=blocklist", body=block_list(50_000, b"unknown")
    )
    while True:
        yield request._replace(expected=expecting(400))


def put_long_list(site: Site, number: int) -> Work:
    """Commits the same blocks again and again: they are committed already."""
    request = put(site, f"/{CONTAINER}/long-{number}", "comp=blocklist", body=block_list(COMMITTED_BLOCKS))
    while True:
        yield request


def get_long_list(site: Site, number: int) -> Work:
    while True:
        yield get(site, f"/{CONTAINER}/staged", "comp=blocklist&blocklisttype=all")


LOADS = (
    Load("list 5,000 blobs", 4, listing),
    Load("list 5,000 blobs", 24, listing),
    Load("Put Block List, 50,000 unknown ids", 4, unknown_ids),
    Load("Put Block List, 49,900 blocks", 4, put_long_list),
    Load("Get Block List, 100,000 staged", 4, get_long_list),
)


def block_id(number: int, word: bytes = b"block") -> bytes:
    return b64encode(word + b"-%08d" % number)


def block_list(length: int, word: bytes = b"block") -> bytes:
    items = b"".join(b"<Latest>%b</Latest>" % block_id(number, word) for number in range(length))
    return b'<?xml version="1.0" encoding="utf-8"?><BlockList>%b</BlockList>' % items


def fill(site: Site) -> None:
    def requests() -> Iterator[Request]:
        yield put(site, f"/{CONTAINER}/small", headers=_BLOB, body=_BODY)
        for number in range(LISTED_BLOBS):
            yield put(site, f"/{CONTAINER}/listed-{number:08d}", headers=_BLOB)
        for number in range(STAGED_BLOCKS):
            staged = block_id(number).decode().replace("=", "%3D")
            yield put(site, f"/{CONTAINER}/staged", f"comp=block&blockid={staged}", body=b"1")
            if number < COMMITTED_BLOCKS:
                for name in ("long-0", "long-1", "long-2", "long-3"):
                    yield put(site, f"/{CONTAINER}/{name}", f"comp=block&blockid={staged}", body=b"1")

    every = list(requests())
    tally = load(site, lambda number: iterated(every[number::64]), lanes=64, seconds=None)
    if tally.errors:
        sys.exit(f"The store could not be filled: {tally.errors[0]}")


def iterated(requests: list[Request]) -> Work:
    for request in requests:  # noqa: UP028  A list takes no answers.
        yield request


def measured(site: Site, kind: Load, seconds: float) -> tuple[Tally, Tally]:
    """What the one client got, and what the others got."""
    others = Crew(site, lambda number: kind.work(site, number), range(kind.lanes))
    try:
        others.wait_until_connected()
        others.go(seconds + 1, 1)
        own = drive([Lane(site.host, site.port, polite(site, 0))], seconds, 1)
        return own, others.result()
    finally:
        others.end()


def report(site: Site, loads: Sequence[Load], seconds: float) -> None:
    print(f"{'beside':<45} {'lanes':>5} {'p50 ms':>8} {'p99 ms':>8} {'times':>6}   the others /s")
    usual: dict[int, float] = {}
    for kind in loads:
        if kind.lanes not in usual:
            usual[kind.lanes] = line(site, Load("polite clients", kind.lanes, polite), seconds, None)
        line(site, kind, seconds, usual[kind.lanes])


def line(site: Site, kind: Load, seconds: float, usual: float | None) -> float:
    own, others = measured(site, kind, seconds)
    p99 = own.percentile_ms(0.99)
    times = "" if usual is None else f"{p99 / usual:.1f}"
    errors = f"   errors: {others.errors[0][:60]}" if others.errors else ""
    print(
        f"{kind.name:<45} {kind.lanes:>5} {own.percentile_ms(0.5):>8.2f} {p99:>8.2f} {times:>6}"
        f"   {others.rate:.1f}{errors}",
        flush=True,
    )
    return p99


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--only", default="", help="loads whose name contains this")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kyanite-polite-") as folder:
        server = Kyanite(Path(folder) / "store")
        try:
            server.start()
            server.create_container(CONTAINER)
            fill(server.site)
            report(server.site, [kind for kind in LOADS if options.only in kind.name], options.seconds)
        finally:
            server.stop()


if __name__ == "__main__":
    main()
