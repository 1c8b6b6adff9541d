"""``python -m bench.stores``: the same load on a small store, on a large one, and on one that an older version filled.

The large store gets a million blobs from the model, many in one commit, before its server starts. With ``--old
PYTHON:FOLDER``, such as ``.venv/bin/python:../old/src``, the server of an older checkout fills a third store, which
the server of this one then upgrades and serves. All run at the same time and are loaded alternately. Names are
scattered over 256 folders, so that puts and gets touch all parts of a store.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from statistics import median

import uvloop

from bench.load.client import LaneWork
from bench.load.lane import Request, Work
from bench.load.single_request import send_request
from bench.load.site import ACCOUNT
from bench.load.works import get_blob, lists, put_blob
from bench.report.results import Result
from bench.rows.blobs import SMALL
from bench.rows.row import Row
from bench.run import Run, say
from bench.servers.peers import Kyanite, Server
from bench.versions import Version
from kyanite.engine.sqlite.engine import SqliteEngine
from kyanite.model.blobs import put
from kyanite.model.blobs.blob import UNCONDITIONAL
from kyanite.model.blobs.container import ContainerKey
from kyanite.model.blobs.put import NewBlob
from kyanite.model.blobs.rows import BlobKey
from kyanite.model.records import HttpHeaders

CONTAINER = "filled"
FOLDERS = 256
LANES = 32
SMALL_STORE, LARGE_STORE, OLD_STORE = 1_000, 1_000_000, 20_000
_TOGETHER = 2_000
"""Bodies that the filling process submits at a time. The engine commits hundreds of them together."""


class _Store(Kyanite):
    def __init__(self, name: str, blobs: int, folder: Path) -> None:
        super().__init__(folder)
        self.name = name
        self.blobs = blobs


def name_of(number: int) -> str:
    """A name for each number; neighbouring numbers lie far apart in the order of names."""
    text = f"{number * 2_654_435_761 % 2**32:08x}"
    return f"{text[:2]}/{text[2:]}"


async def fill(folder: Path, blobs: int) -> None:
    """Put blobs of 1 KiB into the container of a store that no server has open."""
    engine = SqliteEngine.open(folder / "engine")
    container = ContainerKey(ACCOUNT, CONTAINER)
    headers = HttpHeaders(content_type="application/octet-stream")
    for first in range(0, blobs, _TOGETHER):
        await asyncio.gather(
            *(
                put.put(
                    engine,
                    BlobKey(container, name_of(number)),
                    NewBlob(SMALL.piece, len(SMALL.piece), headers, {}),
                    UNCONDITIONAL,
                    may_overwrite=True,
                )
                for number in range(first, min(first + _TOGETHER, blobs))
            )
        )
    await engine.close()


def _small_or_large(name: str, blobs: int, folder: Path) -> Server:
    store = _Store(name, blobs, folder)
    store.start()
    store.create_container(CONTAINER)
    store.stop()
    say(f"putting {blobs:,} blobs into the {name} store")
    uvloop.run(fill(folder, blobs))
    return store


def _upgraded(checkout: str, folder: Path) -> Server:
    old = Version("old", checkout, folder)
    old.start()
    say(f"the older version puts {OLD_STORE:,} blobs")
    old.fill(CONTAINER, map(name_of, range(OLD_STORE)), SMALL)
    old.stop()
    return _Store("upgraded", OLD_STORE, folder)


def _blobs_of(server: Server) -> int:
    assert isinstance(server, _Store)
    return server.blobs


def _requests(request: Request, names: Callable[[int], int]) -> LaneWork:
    """A request whose path has ``@`` in the place of a name."""
    before, _, after = request.data.partition(b"@")

    def work(lane: int) -> Work:
        for number in count(lane, LANES):
            yield Request(before + name_of(names(number)).encode() + after, request.expected)

    return work


def _puts(server: Server, series: str) -> LaneWork:
    """New blobs among those that are there."""
    return _requests(put_blob(server.site, CONTAINER, f"@-{series}", SMALL), lambda number: number)


def _gets(server: Server, _series: str) -> LaneWork:
    blobs = _blobs_of(server)
    return _requests(get_blob(server.site, CONTAINER, "@"), lambda number: number * 7_919 % blobs)


def _list_row(label: str, title: str, query: str, element: bytes, least: int) -> Row:
    def check(server: Server) -> None:
        head = server.site.head("GET", f"/{CONTAINER}", f"restype=container&comp=list&{query}")
        if send_request(server.site, head, 200).count(element) < least:
            raise RuntimeError(f"{server.name} lists fewer than {least}")

    return Row(
        name=f"list-{label}",
        title=title,
        lanes=LANES,
        work=lambda server, _series: lists(server.site, CONTAINER, query),
        check=check,
    )


def _nothing(_server: Server) -> None:
    """The status of every answer was checked already."""


ROWS = (
    Row(name="get", title="Get Blob 1 KiB", lanes=LANES, work=_gets, check=_nothing),
    _list_row("page", "list 500 blobs", "maxresults=500", b"<Blob>", 500),
    _list_row("prefix", "list by prefix, 3 blobs", "prefix=00/&maxresults=3", b"<Blob>", 3),
    _list_row("delimiter", "list 250 folders", "delimiter=/&maxresults=250", b"<BlobPrefix>", 200),
    # Last, because it makes the stores larger.
    Row(name="put", title="Put Blob 1 KiB", lanes=LANES, work=_puts, check=_nothing),
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.stores", description=__doc__)
    parser.add_argument("--old", help="PYTHON:FOLDER of an older checkout")
    parser.add_argument("--blobs", type=int, default=LARGE_STORE, help="in the large store")
    parser.add_argument("--seconds", type=float, default=1.0, help="how long one round of one server lasts")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where the stores go (default: temporary files)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name, ExitStack() as running:
        folder = Path(name).resolve()
        servers = [
            _small_or_large("small", SMALL_STORE, folder / "small"),
            _small_or_large("large", options.blobs, folder / "large"),
        ]
        if options.old:
            servers.append(_upgraded(options.old, folder / "upgraded"))
        for server in servers:
            running.callback(server.stop)
            say(f"{server.name} starts in {server.start():.2f} s")
        run = Run(servers, options.seconds, options.rounds)
        results = [run.row(row) for row in ROWS]
    _print(results, [server.name for server in servers])
    return 1 if any(result.errors for result in results) else 0


def _print(results: list[Result], names: list[str]) -> None:
    """Rates are medians of all rounds; processor time is the server's own, for one operation."""
    print(f"{'':26}" + "".join(f"{f'{name} /s':>14}{'CPU us':>10}" for name in names))
    for result in results:
        if result.errors:
            print(f"{result.title:26}FAILED: {result.errors[0]}")
            continue
        figures = "".join(f"{result.medians[name]:14,.0f}{_cpu_us(result, name):10,.0f}" for name in names)
        print(f"{result.title:26}{figures}")


def _cpu_us(result: Result, name: str) -> float:
    return median(each.server_user_us + each.server_system_us for each in result.measures[name])


if __name__ == "__main__":
    sys.exit(main())
