"""``python -m bench.commits``: what a durable write costs beyond its sync, and what more workers do to it.

The first table has one client. In turn, a *bare* loop writes as many bytes as a commit puts into the log, into a file
that is long enough already, and syncs it; the *engine* commits what a Put Blob of 1 KiB writes; and the *service* is
sent whole requests, in this process. So the first figure is the disk's, and the differences are ours.

The second table has servers with 1, 2, 4 … workers on the machine's cores, each loaded by the same number of clients
in turn.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import uvloop

from bench.in_process import InProcess
from bench.rows import ROWS
from bench.run import Run
from bench.servers.peers import Kyanite, Server
from kyanite.engine.api import Transaction
from kyanite.engine.sqlite.engine import SqliteEngine
from kyanite.model import keys
from kyanite.values import Instant

LOG_BYTES = 3 * (8192 + 24)
"""Of a commit of one small blob: three pages of the database, each with its header in the log."""

_TICKS_TO_UNIX = 62_135_596_800 * 10_000_000
_FILE_BYTES = 32 * 1024 * 1024


def main() -> None:
    options = _options()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        uvloop.run(_one_client(folder, options.rounds, options.writes))
        _workers(folder, [int(each) for each in options.workers.split(",")], options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.commits", description=__doc__)
    parser.add_argument("--folder", type=Path, help="where the stores go (default: temporary files)")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--writes", type=int, default=200, help="of each kind in a round")
    parser.add_argument("--workers", default="1,2,4,8")
    parser.add_argument("--row", default="put-1k/32", help="what the servers are loaded with")
    parser.add_argument("--seconds", type=float, default=2.0)
    return parser.parse_args()


async def _one_client(folder: Path, rounds: int, writes: int) -> None:
    bare = _BareLog(folder / "bare")
    engine = SqliteEngine.open(folder / "engine", clock=_now)
    services = InProcess(folder / "services", _now)
    await _put_container(services)
    numbers = iter(range(1, 1 << 60))
    kinds: dict[str, Callable[[], Awaitable[None]]] = {
        "bare": bare.write,
        "engine": lambda: engine.run(_put_of(next(numbers))),
        "service": lambda: _put_blob(services, next(numbers)),
    }
    durations: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(rounds):
        for name, write in kinds.items():
            for _ in range(writes):
                began_at = time.perf_counter()
                await write()
                durations[name].append((time.perf_counter() - began_at) * 1e6)
    await engine.close()
    await services.close()
    bare.close()
    print(f"{'one client':12}{'p50 us':>10}{'beyond the sync':>18}")
    for name, figures in durations.items():
        middle = median(figures)
        print(f"{name:12}{middle:10.0f}{middle - median(durations['bare']):18.0f}")


class _BareLog:
    """A file that is written and synced from its start again and again, like a log."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.pwrite(self._file, bytes(_FILE_BYTES), 0)
        os.fsync(self._file)
        self._at = 0
        self._piece = os.urandom(LOG_BYTES)

    async def write(self) -> None:
        os.pwrite(self._file, self._piece, self._at)
        os.fdatasync(self._file)
        self._at = (self._at + LOG_BYTES) % (_FILE_BYTES - LOG_BYTES)

    def close(self) -> None:
        os.close(self._file)


def _put_of(number: int) -> Callable[[Transaction], None]:
    record, body = os.urandom(120), os.urandom(1024)

    def run(tx: Transaction) -> None:
        tx.put(keys.blob(1, f"blob-{number}"), record)
        tx.put(keys.body(number), body)

    return run


async def _put_container(services: InProcess) -> None:
    request = services.request("blob", "PUT", "/box?restype=container", {}, b"")
    status, _, _ = await services.send("blob", request)
    assert status == 201


async def _put_blob(services: InProcess, number: int) -> None:
    headers = {"x-ms-blob-type": "BlockBlob"}
    request = services.request("blob", "PUT", f"/box/blob-{number}", headers, bytes(1024))
    status, _, _ = await services.send("blob", request)
    assert status == 201


def _now() -> Instant:
    return Instant(_TICKS_TO_UNIX + time.time_ns() // 100)


class _Sized(Kyanite):
    def __init__(self, workers: int, folder: Path) -> None:
        super().__init__(folder)
        self.name = f"{workers} workers"
        self.options = ("--workers", str(workers))


def _workers(folder: Path, counts: list[int], options: argparse.Namespace) -> None:
    row = next(row for row in ROWS if row.name == options.row)
    with ExitStack() as running:
        servers: list[Server] = []
        for count in counts:
            server = _Sized(count, folder / f"workers-{count}")
            running.callback(server.stop)
            server.start()
            servers.append(server)
        result = Run(servers, options.seconds, options.rounds // 2).row(row)
    print(f"\n{options.row:12}{'rate /s':>10}{'p99 ms':>10}")
    for name, measures in result.measures.items():
        print(f"{name:12}{result.medians[name]:10,.0f}{median(each.p99_ms for each in measures):10.1f}")


if __name__ == "__main__":
    main()
