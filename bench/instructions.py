"""``python -m bench.instructions``: how many processor instructions each hot operation takes, counted by Valgrind.

Each operation goes through the whole server without its sockets: bytes of a request into an ``HttpConnection``, bytes
of the response out of it, over SQLite and local extents. The same few blobs and entities are read again and again, and
nothing is written meanwhile. The figures do not depend on the load of the machine, and hardly on the machine.

``--source`` counts another checkout, ``--python`` an installed, compiled one. A program cannot ask Valgrind for what it
has counted, but Valgrind writes it down before each call of ``getsid``.
"""

import argparse
import asyncio
import gc
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import uvloop

from bench.costs import Clock
from bench.load.client import LaneWork
from bench.load.lane import Request, expecting
from bench.load.plan import Plan
from bench.load.site import Site, storage_site
from bench.load.works import Content, gets, lists, over_and_over, put_blob, puts
from bench.rows.blob_chains import if_match_chain, lease_cycles
from bench.rows.queues import TEXT, cycles
from bench.rows.tables import PARTITION, batch, entity, groups, inserts, points

_PORTS = {"blob": 10000, "queue": 10001, "table": 10002, "file": 10003}
_ENTITIES, _READ, _LISTED, _FOLDERS = 1000, 16, 1000, 100
_JSON = "Accept: application/json;odata=minimalmetadata\r\nContent-Type: application/json\r\n"
_SUMMARY = re.compile(r"^(?:summary|totals): (\d+)", re.MULTILINE)
_ROOT = Path(__file__).parents[1]


class Operation(NamedTuple):
    name: str
    service: str
    work: Callable[[Site], LaneWork | Plan]
    requests: int = 1
    """How many requests make one operation, such as a cycle."""
    rounds: int = 20
    warm_up: int = 0
    """How many rounds come before these; 0 for as many. Reads have more, so that all was read twice before."""


OPERATIONS = (
    Operation(
        "Get Blob",
        "blob",
        lambda site: gets(site, "box", [f"b{n}" for n in range(_READ)]),
        warm_up=2 * _READ,
    ),
    Operation("Put Blob", "blob", lambda site: puts(site, "box", Content.of(1024), "put")),
    Operation("If-Match chain", "blob", lambda site: if_match_chain(site, "box", "chain")),
    Operation("lease cycle", "blob", lambda site: lease_cycles(site, "box", "lease"), 3),
    Operation("queue cycle", "queue", lambda site: cycles(site, "line", TEXT), 3),
    Operation(
        "Query Entity", "table", lambda site: over_and_over(points(site, "things", _READ)), warm_up=2 * _READ
    ),
    Operation("Insert Entity", "table", lambda site: inserts(site, "things", "new")),
    Operation("batch of 100", "table", lambda site: groups(site, "things", "group"), rounds=4),
    Operation("List Blobs, 1,000", "blob", lambda site: lists(site, "many", "maxresults=1000"), rounds=4),
    Operation("List 100 folders", "blob", lambda site: lists(site, "folders", "delimiter=/"), rounds=4),
)


class Transport:
    """What a connection writes to. It keeps one answer at a time."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._arrived: asyncio.Future[None] | None = None

    def write(self, data: bytes) -> None:
        self._pieces.append(data)
        if self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)

    def writelines(self, pieces: tuple[bytes, ...]) -> None:
        self.write(b"".join(pieces))

    async def answer(self) -> bytes:
        if not self._pieces:
            self._arrived = asyncio.get_running_loop().create_future()
            await self._arrived
        answer = b"".join(self._pieces)
        self._pieces.clear()
        return answer

    def get_extra_info(self, name: str) -> object:
        return ("127.0.0.1", 50000) if name == "peername" else None

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return False

    def set_write_buffer_limits(self, high: int) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Client:
    """Sends requests to a connection of the server and waits for each answer."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._transport = Transport()
        connection.connection_made(self._transport)

    async def send(self, request: Request) -> bytes:
        self._connection.data_received(request.data)
        answer = await self._transport.answer()
        if not answer.startswith(request.expected):
            raise RuntimeError(f"{request.data[:100]!r} was answered with {answer[:600]!r}")
        return answer

    async def run(self, operation: Operation, site: Site, marked: bool) -> None:
        """Some rounds that warm up, and some between two marks."""
        planned = operation.work(site)
        work = (planned.lane_work() if isinstance(planned, Plan) else planned)(0)
        request = next(work)
        for first_or_last in range(2):
            if first_or_last and marked:
                os.getsid(0)
            rounds = operation.rounds if first_or_last else operation.warm_up or operation.rounds
            for _ in range(rounds * operation.requests):
                request = work.send(await self.send(request))
        if marked:
            os.getsid(0)


async def _serve(marked: bool) -> None:
    from bench.in_process import InProcess
    from kyanite.server.dispatch import Dispatcher
    from kyanite.server.http.connection import HttpConnection
    from kyanite.server.http.limits import Limits
    from kyanite.server.http.server import HttpServer

    loop = asyncio.get_running_loop()
    with tempfile.TemporaryDirectory() as folder:
        services = InProcess.for_sites(Path(folder), Clock())
        ports = {port: name for name, port in _PORTS.items()}
        server = HttpServer(Dispatcher(services.handlers, ports), limits=Limits())
        clients = {name: Client(HttpConnection(server, loop, port)) for name, port in _PORTS.items()}
        sites = {name: storage_site(port) for name, port in _PORTS.items()}
        await _fill(clients, sites)
        gc.disable()
        for operation in OPERATIONS:
            await clients[operation.service].run(operation, sites[operation.service], marked)
        await services.close()


async def _fill(clients: Mapping[str, Client], sites: Mapping[str, Site]) -> None:
    blob, table = sites["blob"], sites["table"]
    for container in ("box", "many", "folders"):
        head = blob.head("PUT", f"/{container}", "restype=container", "Content-Length: 0\r\n")
        await clients["blob"].send(Request(head, expecting(201)))
    for number in range(_READ):
        await clients["blob"].send(put_blob(blob, "box", f"b{number}", Content.of(1024)))
    for number in range(_LISTED):
        await clients["blob"].send(put_blob(blob, "many", f"{number:05}", Content.of(1)))
    for number in range(2 * _FOLDERS):
        await clients["blob"].send(put_blob(blob, "folders", f"{number // 2:03}/{number}", Content.of(1)))
    head = sites["queue"].head("PUT", "/line", headers="Content-Length: 0\r\n")
    await clients["queue"].send(Request(head, expecting(201)))
    body = b'{"TableName": "things"}'
    head = table.head("POST", "/Tables", headers=f"{_JSON}Content-Length: {len(body)}\r\n")
    await clients["table"].send(Request(head + body, expecting(201)))
    for first in range(0, _ENTITIES, 100):
        some = (entity(PARTITION, f"{number:06}") for number in range(first, first + 100))
        await clients["table"].send(Request(batch(table, "things", some), expecting(202)))


def count(python: str, source: Path | None, kept: Path | None = None) -> dict[str, int]:
    """The instructions of one operation each, by name. ``kept`` gets what Valgrind wrote, for callgrind_annotate."""
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    if source is not None:
        environment["PYTHONPATH"] = str(source.resolve())
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "counts"
        valgrind = ["valgrind", "--tool=callgrind", "--dump-before=getsid", f"--callgrind-out-file={out}"]
        command = [*valgrind, python, "-m", "bench.instructions", "--counted"]
        ended = subprocess.run(
            command, cwd=_ROOT, env=environment, capture_output=True, text=True, check=False
        )
        if ended.returncode != 0:
            raise SystemExit(ended.stderr[-3000:])
        parts = sorted(Path(folder).glob("counts.*"), key=lambda part: int(part.suffix[1:]))
        counts = [sum(map(int, _SUMMARY.findall(part.read_text())[-1:])) for part in parts]
        for operation, part in zip(OPERATIONS, parts[1::2], strict=False):
            if kept is not None:
                shutil.copy(part, kept / f"{operation.name.replace(' ', '-').replace(',', '')}.callgrind")
    # One part ends where the warm rounds of an operation end, the next where its measured rounds end.
    return {
        operation.name: counts[2 * index + 1] // operation.rounds
        for index, operation in enumerate(OPERATIONS)
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.instructions", description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="the Python whose Kyanite is counted")
    parser.add_argument(
        "--source", type=Path, help="a source folder that goes before what that Python has installed"
    )
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the profiles in this folder")
    parser.add_argument("--counted", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--unmarked", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.counted or options.unmarked:
        uvloop.run(_serve(marked=options.counted))
        return
    for name, instructions in count(options.python, options.source, options.keep).items():
        print(f"{name:20}{instructions:14,}")


if __name__ == "__main__":
    main()
