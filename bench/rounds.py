"""``python -m bench.rounds``: how often each hot operation has to wait for an answer of the engine.

On a remote engine every read of a body that asks for something it has not read yet is a round: the body cannot go on
without the answer, and the engine cannot ask earlier. Keys that are read together are one round, and so is a scan with
a limit; one without is another round for every further part of it. A commit is one more.
"""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar
from urllib.parse import quote

import uvloop

from bench import costs
from bench.costs import Answer, Clock, Costs, Services
from bench.in_process import InProcess
from bench.meter import Meter
from kyanite.engine.api import STEP_ROWS, Engine, Scope, Snapshot, Steps, Subscription, Transaction
from kyanite.values import Instant

T = TypeVar("T")


class Rounds:
    """What was counted since ``clear``."""

    def __init__(self) -> None:
        self.reads = 0
        self.commits = 0
        self.calls: list[str] = []
        """Of each round, what it read, for whoever has to find out."""

    def clear(self) -> None:
        self.reads = self.commits = 0
        self.calls.clear()

    @property
    def total(self) -> int:
        return self.reads + self.commits

    def read(self, *keys: bytes) -> None:
        self.reads += 1
        self.calls.append(" ".join(repr(key)[:48] for key in keys[:6]))


class CountedSnapshot:
    def __init__(self, inner: Snapshot, rounds: Rounds) -> None:
        self._inner = inner
        self._rounds = rounds
        self._known: set[bytes] = set()

    @property
    def now(self) -> Instant:
        return self._inner.now

    def get(self, key: bytes) -> bytes | None:
        self._count_unknown([key])
        return self._inner.get(key)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        self._count_unknown(keys)
        return self._inner.get_many(keys)

    def _count_unknown(self, keys: Sequence[bytes]) -> None:
        unknown = [key for key in keys if key not in self._known]
        if unknown:
            self._known.update(unknown)
            self._rounds.read(*unknown)

    def scan(
        self, start: bytes, end: bytes, *, reverse: bool = False, limit: int | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        self._rounds.read(b"scan", start, end)
        for count, row in enumerate(self._inner.scan(start, end, reverse=reverse, limit=limit), 1):
            yield row
            if limit is None and count % STEP_ROWS == 0:
                self._rounds.read(b"scan", row[0], end)

    def scan_groups(
        self, start: bytes, end: bytes, *, inside: int, delimiter: bytes, limit: int
    ) -> Iterator[tuple[bytes, bytes]]:
        self._rounds.read(b"scan_groups", start, end)
        return self._inner.scan_groups(start, end, inside=inside, delimiter=delimiter, limit=limit)

    def without_checksum(self, start: bytes, end: bytes) -> list[bytes]:
        return self._inner.without_checksum(start, end)


class CountedTransaction(CountedSnapshot):
    """What it has written itself it knows."""

    def __init__(self, inner: Transaction, rounds: Rounds) -> None:
        super().__init__(inner, rounds)
        self._transaction = inner
        self.wrote = False

    def put(self, key: bytes, value: bytes) -> None:
        self.wrote = True
        self._known.add(key)
        self._transaction.put(key, value)

    def delete(self, key: bytes) -> None:
        self.wrote = True
        self._known.add(key)
        self._transaction.delete(key)

    def new_id(self) -> int:
        return self._transaction.new_id()

    def notify(self, topic: bytes) -> None:
        self._transaction.notify(topic)


class CountedEngine:
    def __init__(self, inner: Engine, rounds: Rounds) -> None:
        self._inner = inner
        self._rounds = rounds

    def read(self, body: Callable[[Snapshot], T]) -> Awaitable[T]:
        return self._inner.read(lambda snap: body(CountedSnapshot(snap, self._rounds)))

    def read_in_steps(self, body: Callable[[Snapshot], Steps[T]]) -> Awaitable[T]:
        return self._inner.read_in_steps(lambda snap: body(CountedSnapshot(snap, self._rounds)))

    def run(self, body: Callable[[Transaction], T], *scopes: Scope, durable: bool = True) -> Awaitable[T]:
        def counted(tx: Transaction) -> T:
            transaction = CountedTransaction(tx, self._rounds)
            result = body(transaction)
            self._rounds.commits += transaction.wrote
            return result

        return self._inner.run(counted, *scopes, durable=durable)

    def subscribe(self, topic: bytes) -> Subscription:
        return self._inner.subscribe(topic)

    async def close(self) -> None:
        await self._inner.close()


DEEP = "/share/one/two/three/four"
_DEEP_FILE = {
    "x-ms-file-permission": "inherit",
    "x-ms-file-attributes": "None",
    "x-ms-file-creation-time": "now",
    "x-ms-file-last-write-time": "now",
}


class Counter(Protocol):
    """Counts rounds. ``Rounds`` does so for any engine; an engine may count its own round trips."""

    @property
    def total(self) -> int: ...

    @property
    def calls(self) -> Sequence[str]: ...

    def clear(self) -> None: ...


class RoundCosts(Costs):
    """The operations of ``bench.costs``, of which the rounds are counted instead."""

    def __init__(self, services: Services, rounds: Counter) -> None:
        super().__init__(services, Meter())
        self._rounds = rounds
        self.totals: dict[str, int] = {}
        self.calls: dict[str, Sequence[str]] = {}

    async def _cost_of(self, name: str, work: Callable[[], Awaitable[Answer]]) -> Answer:
        self._rounds.clear()
        answer = await work()
        if self._rounds.total < self.totals.get(name, 1 << 30):
            self.totals[name], self.calls[name] = self._rounds.total, tuple(self._rounds.calls)
        return answer


async def _deep_files(measured: Costs, number: int) -> None:
    path = f"{DEEP}/file-{number}"
    create = {**_DEEP_FILE, "x-ms-type": "file", "x-ms-content-length": "1024"}
    await measured.measure("Create File, depth 4", "file", "PUT", path, create)
    headers = {"x-ms-write": "update", "x-ms-range": "bytes=0-1023"}
    await measured.measure("Put Range, depth 4", "file", "PUT", f"{path}?comp=range", headers, costs.SMALL)
    await measured.measure("Get File, depth 4", "file", "GET", path)
    await measured.measure("List Files, depth 4", "file", "GET", f"{DEEP}?restype=directory&comp=list")


async def _snapshots(measured: Costs, number: int) -> None:
    """Of a path that has changed since: what the snapshot has are rows that were preserved for it."""
    path = f"{DEEP}/kept-{number}"
    create = {**_DEEP_FILE, "x-ms-type": "file", "x-ms-content-length": "1024"}
    headers = {"x-ms-write": "update", "x-ms-range": "bytes=0-1023"}
    await measured.send("file", "PUT", path, create)
    await measured.send("file", "PUT", f"{path}?comp=range", headers, costs.SMALL)
    _, snapshot, _ = await measured.send("file", "PUT", "/share?restype=share&comp=snapshot")
    at = f"sharesnapshot={quote(snapshot['x-ms-snapshot'])}"
    parts = DEEP.split("/")
    for depth in range(3, len(parts) + 1):
        above = "/".join(parts[:depth])
        await measured.send(
            "file", "PUT", f"{above}?restype=directory&comp=metadata", {"x-ms-meta-a": f"{number}"}
        )
    await measured.send("file", "PUT", f"{path}?comp=range", headers, costs.SMALL)
    await measured.send("file", "HEAD", f"{path}?{at}")
    await measured.measure("Get File, snapshot, depth 4", "file", "GET", f"{path}?{at}")
    await measured.measure("Get File Properties, snapshot", "file", "HEAD", f"{path}?{at}")
    target = f"{DEEP}?restype=directory&comp=list&{at}"
    await measured.measure("List Files, snapshot, depth 4", "file", "GET", target)


async def _more_leases(measured: Costs, number: int) -> None:
    """What ``bench.costs`` does not do: the other actions, and those of a container."""
    first, second = (f"{number:08x}-0000-0000-0000-00000000000{each}" for each in (1, 2))
    await measured.send("blob", "PUT", f"/leased-{number}?restype=container")
    await measured.send("blob", "PUT", f"/leased-{number}/blob", {"x-ms-blob-type": "BlockBlob"}, costs.SMALL)
    for name, target in (
        ("Blob", f"/leased-{number}/blob?comp=lease"),
        ("Container", f"/leased-{number}?restype=container&comp=lease"),
    ):
        acquire = {"x-ms-lease-duration": "-1", "x-ms-proposed-lease-id": first}
        change = {"x-ms-lease-id": first, "x-ms-proposed-lease-id": second}
        for action, headers in (("acquire", acquire), ("change", change), ("break", {})):
            await measured.measure(
                f"Lease {name}, {action}", "blob", "PUT", target, {"x-ms-lease-action": action, **headers}
            )


async def _lists(measured: Costs, number: int) -> None:
    for name, service, target in (
        ("List Containers", "blob", "/?comp=list"),
        ("List Blobs, 1", "blob", f"/leased-{number}?restype=container&comp=list"),
        ("List Queues", "queue", "/?comp=list"),
        ("Query Tables", "table", "/Tables"),
        ("List Shares", "file", "/?comp=list"),
    ):
        await measured.measure(name, service, "GET", target)


async def _fill_folders(measured: Costs) -> None:
    await measured.send("blob", "PUT", "/tree?restype=container")
    for folders in (200, 600):
        for first in range(0, folders, 50):
            numbers = range(first, first + 50)
            names = [f"/tree/{folders}/{number:03}/{name}" for number in numbers for name in "ab"]
            header = {"x-ms-blob-type": "BlockBlob"}
            await asyncio.gather(*(measured.send("blob", "PUT", name, header, b"x") for name in names))


async def _folders(measured: Costs, number: int) -> None:
    for folders in (200, 600):
        target = f"/tree?restype=container&comp=list&delimiter=/&prefix={folders}/"
        _, _, listed = await measured.measure(f"List Blobs, {folders} folders", "blob", "GET", target)
        assert listed.count(b"<BlobPrefix>") == folders


async def measure(folder: Path) -> RoundCosts:
    rounds = Rounds()
    services = InProcess(folder, Clock(), observed=partial(CountedEngine, rounds=rounds))
    measured = RoundCosts(services, rounds)
    await run(measured, services)
    return measured


async def run(measured: Costs, services: Services) -> None:
    """All operations, so that ``measured`` counts their rounds; then close the services."""
    try:
        await costs.fill(measured)
        await _fill_folders(measured)
        parts = DEEP.split("/")
        directory = {**_DEEP_FILE, "x-ms-file-attributes": "Directory"}
        for depth in range(3, len(parts) + 1):
            target = "/".join(parts[:depth]) + "?restype=directory"
            await measured.send("file", "PUT", target, directory)
        for script in (*costs.SCRIPTS, _deep_files, _snapshots, _more_leases, _lists, _folders):
            await measured.repeat(script, warm_up=1, rounds=2)
        for script in costs.LONG_SCRIPTS:
            await measured.repeat(script, warm_up=0, rounds=1)
    finally:
        await services.close()


def totals() -> Mapping[str, int]:
    with tempfile.TemporaryDirectory() as folder:
        return uvloop.run(measure(Path(folder))).totals


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        measured = uvloop.run(measure(Path(folder)))
    for name, total in measured.totals.items():
        print(f"{name:30}{total:4}")
        for call in measured.calls[name]:
            print(f"        {call}")


if __name__ == "__main__":
    main()
