"""``python -m bench.costs``: what each hot operation costs in calls, SQL statements and rows.

Every operation is sent to its service in this process, over SQLite and local extents, as a signed request. Its cost is
the smallest of several rounds after some that warm up, less that of doing nothing. ``--functions "Get Blob, 1 KiB"``
lists the functions that an operation calls.
"""

import argparse
import asyncio
import gc
import json
import tempfile
import time
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Any, Protocol
from urllib.parse import quote

import uvloop

from bench.meter import Cost, Meter

WARM_UP_ROUNDS, ROUNDS = 4, 6
LONG_ROUNDS = 2
LISTED_BLOBS, QUERIED_ENTITIES, BATCH_ENTITIES = 5000, 1000, 100
SMALL, MEDIUM, LARGE, LARGER = bytes(1024), bytes(64 * 1024), bytes(1024 * 1024), bytes(4 * 1024 * 1024)

_QUIET_SECONDS = 0.002
"""After so long the other threads have finished what an operation left to them."""

_FILLED_TOGETHER = 250
_FOLDERS = 20
_NOTHING = "nothing"
_BLOCK_BLOB = {"x-ms-blob-type": "BlockBlob"}
_JSON = {"Content-Type": "application/json", "Accept": "application/json;odata=minimalmetadata"}
_NO_ECHO = {"Prefer": "return-no-content"}
_LEASE_ID = "11111111-2222-4333-8444-555555555555"
_FILE = {
    "x-ms-type": "file",
    "x-ms-content-length": "1024",
    "x-ms-file-permission": "inherit",
    "x-ms-file-attributes": "None",
    "x-ms-file-creation-time": "now",
    "x-ms-file-last-write-time": "now",
}
_MESSAGE = b"<QueueMessage><MessageText>a message of the benchmark</MessageText></QueueMessage>"

Answer = tuple[int, dict[str, str], bytes]


class Clock:
    """Stands almost still, so that no cache of dates is renewed while something is measured. In 100 ns since year 1."""

    def __init__(self) -> None:
        self._at = (int(time.time()) + 62_135_596_800) * 10_000_000
        self._steps = cycle(Random(1).choices(range(1, 100), k=997))

    def __call__(self) -> int:
        self._at += next(self._steps)
        return self._at


class Services(Protocol):
    """What is measured."""

    def request(
        self, service: str, method: str, target: str, headers: Mapping[str, str], body: bytes
    ) -> Any: ...

    async def send(self, service: str, request: Any) -> Answer: ...

    async def close(self) -> None: ...


class Costs:
    """The costs of operations, by name, as scripts measure them."""

    def __init__(self, services: Services, meter: Meter) -> None:
        self._services = services
        self._meter = meter
        self._warm = False
        self._measured: dict[str, list[Cost]] = {}
        self.functions: dict[str, Mapping[str, int]] = {}
        self.sql: dict[str, Sequence[str]] = {}

    async def send(
        self,
        service: str,
        method: str,
        target: str,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> Answer:
        """Send a request without measuring it."""
        return _succeeded(
            await self._services.send(
                service, self._services.request(service, method, target, headers or {}, body)
            )
        )

    async def measure(
        self,
        name: str,
        service: str,
        method: str,
        target: str,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> Answer:
        """Send a request and keep what it cost under the name."""
        request = self._services.request(service, method, target, headers or {}, body)
        return _succeeded(await self._cost_of(name, lambda: self._services.send(service, request)))

    async def measure_nothing(self) -> None:
        async def nothing() -> Answer:
            return 200, {}, b""

        await self._cost_of(_NOTHING, nothing)

    async def _cost_of(self, name: str, work: Callable[[], Awaitable[Answer]]) -> Answer:
        await asyncio.sleep(_QUIET_SECONDS)
        self._meter.start()
        try:
            answer = await work()
            await asyncio.sleep(0)  # Work that the operation left for the next iteration of the loop.
        finally:
            self._meter.pause()
        await asyncio.sleep(_QUIET_SECONDS)
        if self._warm:
            self._keep(name, self._meter.cost())
        return answer

    def _keep(self, name: str, cost: Cost) -> None:
        costs = self._measured.setdefault(name, [])
        if not costs or cost < min(costs):
            self.functions[name] = self._meter.functions()
            self.sql[name] = self._meter.sql()
        costs.append(cost)

    async def repeat(self, script: "Script", *, warm_up: int, rounds: int) -> None:
        for number in range(warm_up + rounds):
            self._warm = number >= warm_up
            await script(self, number)

    def all(self) -> dict[str, Cost]:
        smallest = {
            name: Cost(*(min(column) for column in zip(*costs, strict=True)))
            for name, costs in self._measured.items()
        }
        nothing = smallest.pop(_NOTHING)
        return {
            name: Cost(*(of - least for of, least in zip(cost, nothing, strict=True)))
            for name, cost in smallest.items()
        }


Script = Callable[[Costs, int], Awaitable[None]]
"""One round of some operations; the number keeps the names of one round apart from those of another."""


def _succeeded(answer: Answer) -> Answer:
    status, headers, body = answer
    if not 200 <= status < 300:
        raise RuntimeError(f"answered with {status} {headers.get('x-ms-error-code', '')} {body[:300]!r}")
    return answer


async def _nothing(costs: Costs, number: int) -> None:
    await costs.measure_nothing()


async def _blobs(costs: Costs, number: int) -> None:
    path = f"/box/blob-{number}"
    _, put, _ = await costs.measure("Put Blob, 1 KiB", "blob", "PUT", path, _BLOCK_BLOB, SMALL)
    await costs.measure("Get Blob, 1 KiB", "blob", "GET", path)
    matching = {**_BLOCK_BLOB, "If-Match": put["etag"]}
    await costs.measure("Put Blob, If-Match", "blob", "PUT", path, matching, SMALL)
    acquire = {
        "x-ms-lease-action": "acquire",
        "x-ms-lease-duration": "60",
        "x-ms-proposed-lease-id": _LEASE_ID,
    }
    await costs.measure("Lease Blob, acquire", "blob", "PUT", f"{path}?comp=lease", acquire)
    for action in ("renew", "release"):
        headers = {"x-ms-lease-action": action, "x-ms-lease-id": _LEASE_ID}
        await costs.measure(f"Lease Blob, {action}", "blob", "PUT", f"{path}?comp=lease", headers)
    await costs.measure("Put Blob, 64 KiB", "blob", "PUT", f"{path}-medium", _BLOCK_BLOB, MEDIUM)
    await costs.measure("Put Blob, 1 MiB", "blob", "PUT", f"{path}-large", _BLOCK_BLOB, LARGE)
    await costs.measure("Get Blob, 1 MiB", "blob", "GET", f"{path}-large")
    await _blocks(costs, f"{path}-blocks")


async def _blocks(costs: Costs, path: str) -> None:
    block_id = b64encode(b"block 1").decode()
    target = f"{path}?comp=block&blockid={quote(block_id)}"
    await costs.measure("Put Block", "blob", "PUT", target, {}, SMALL)
    await costs.measure("Put Block, 4 MiB", "blob", "PUT", f"{path}-large{target[len(path) :]}", {}, LARGER)
    block_list = f"<BlockList><Latest>{block_id}</Latest></BlockList>".encode()
    await costs.measure("Put Block List", "blob", "PUT", f"{path}?comp=blocklist", {}, block_list)


async def _messages(costs: Costs, number: int) -> None:
    await costs.measure("Put Message", "queue", "POST", "/line/messages", {}, _MESSAGE)
    _, _, listed = await costs.measure("Get Messages", "queue", "GET", "/line/messages")
    message_id, receipt = (_inside(listed, name) for name in (b"MessageId", b"PopReceipt"))
    target = f"/line/messages/{message_id}?popreceipt={quote(receipt, safe='')}"
    _, updated, _ = await costs.measure("Update Message", "queue", "PUT", f"{target}&visibilitytimeout=60")
    target = f"/line/messages/{message_id}?popreceipt={quote(updated['x-ms-popreceipt'], safe='')}"
    await costs.measure("Delete Message", "queue", "DELETE", target)


def _inside(xml: bytes, element: bytes) -> str:
    return xml.partition(b"<%b>" % element)[2].partition(b"</")[0].decode()


async def _entities(costs: Costs, number: int) -> None:
    one = _entity("single", f"{number:04}")
    await costs.measure("Insert Entity", "table", "POST", "/things", _JSON | _NO_ECHO, one)
    target = f"/things(PartitionKey='single',RowKey='{number:04}')"
    await costs.measure("Query Entities, by keys", "table", "GET", target, _JSON)
    await costs.measure("Merge Entity", "table", "MERGE", target, _JSON | {"If-Match": "*"}, b'{"Count": 1}')


async def _batches(costs: Costs, number: int) -> None:
    headers, body = _batch(f"batch-{number}")
    await costs.measure("batch of 100 inserts", "table", "POST", "/$batch", headers, body)


def _entity(partition_key: str, row_key: str) -> bytes:
    values = {
        "PartitionKey": partition_key,
        "RowKey": row_key,
        "Name": "an entity",
        "Count": 123456,
        "Ratio": 0.25,
    }
    return json.dumps(
        {**values, "Active": True, "Total@odata.type": "Edm.Int64", "Total": "1234567890123"}
    ).encode()


def _batch(partition_key: str) -> tuple[dict[str, str], bytes]:
    parts = "".join(
        "--changeset_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n"
        f"Content-ID: {number}\r\n\r\nPOST http://localhost:10000/acme/things HTTP/1.1\r\n"
        "Accept: application/json;odata=minimalmetadata\r\nContent-Type: application/json\r\n"
        f"Prefer: return-no-content\r\nDataServiceVersion: 3.0\r\n\r\n{entity.decode()}\r\n"
        for number in range(BATCH_ENTITIES)
        for entity in [_entity(partition_key, f"{number:04}")]
    )
    body = (
        f"--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_1\r\n\r\n{parts}--changeset_1--\r\n"
    )
    headers = {"Content-Type": "multipart/mixed; boundary=batch_1", "DataServiceVersion": "3.0"}
    return headers, f"{body}--batch_1--\r\n".encode()


async def _files(costs: Costs, number: int) -> None:
    path = f"/share/file-{number}"
    await costs.measure("Create File", "file", "PUT", path, _FILE)
    headers = {"x-ms-write": "update", "x-ms-range": "bytes=0-1023"}
    await costs.measure("Put Range, 1 KiB", "file", "PUT", f"{path}?comp=range", headers, SMALL)
    await costs.measure("Get File, 1 KiB", "file", "GET", path)


async def _lists(costs: Costs, number: int) -> None:
    target = f"/many?restype=container&comp=list&maxresults={LISTED_BLOBS}"
    _, _, listed = await costs.measure("List Blobs, 5,000", "blob", "GET", target)
    assert listed.count(b"<Blob>") == LISTED_BLOBS
    target = "/many?restype=container&comp=list&prefix=012"
    _, _, listed = await costs.measure("List Blobs, 100 by prefix", "blob", "GET", target)
    assert listed.count(b"<Blob>") == 100
    target = "/box?restype=container&comp=list&delimiter=/&prefix=folders/"
    _, _, listed = await costs.measure("List Blobs, 20 folders", "blob", "GET", target)
    assert listed.count(b"<BlobPrefix>") == _FOLDERS
    wanted = quote("PartitionKey eq 'filled'")
    target = f"/things()?$filter={wanted}"
    _, _, queried = await costs.measure("Query Entities, 1,000", "table", "GET", target, _JSON)
    assert len(json.loads(queried)["value"]) == QUERIED_ENTITIES


async def fill(costs: Costs) -> None:
    for container in ("box", "many"):
        await costs.send("blob", "PUT", f"/{container}?restype=container")
    for number in range(_FOLDERS):
        await costs.send("blob", "PUT", f"/box/folders/{number:02}/blob", _BLOCK_BLOB, b"x")
    await costs.send("queue", "PUT", "/line")
    await costs.send("table", "POST", "/Tables", _JSON, b'{"TableName": "things"}')
    await costs.send("file", "PUT", "/share?restype=share")
    for first in range(0, LISTED_BLOBS, _FILLED_TOGETHER):
        numbers = range(first, first + _FILLED_TOGETHER)
        puts = (costs.send("blob", "PUT", f"/many/{number:05}", _BLOCK_BLOB, b"x") for number in numbers)
        await asyncio.gather(*puts)
    # Enough for every shard of the counts to be in use.
    for number in range(_FILLED_TOGETHER):
        await costs.send("file", "PUT", f"/share/filled-{number}", _FILE)
        await costs.send("queue", "POST", "/line/messages", {}, _MESSAGE)
    for first in range(0, QUERIED_ENTITIES, BATCH_ENTITIES):
        headers, body = _batch("filled")
        await costs.send(
            "table", "POST", "/$batch", headers, body.replace(b'"RowKey": "', b'"RowKey": "%d' % first)
        )


SCRIPTS: Sequence[Script] = (_blobs, _messages, _entities, _batches, _files)
LONG_SCRIPTS: Sequence[Script] = (_lists,)

OpenServices = Callable[[Path, Clock], Services]


async def measure(open_services: OpenServices) -> Costs:
    meter = Meter()
    with tempfile.TemporaryDirectory() as folder, meter.installed():
        services = open_services(Path(folder), Clock())
        costs = Costs(services, meter)
        gc.disable()  # A finalizer would count as a call of whatever runs then.
        try:
            await fill(costs)
            for script in (_nothing, *SCRIPTS):
                await costs.repeat(script, warm_up=WARM_UP_ROUNDS, rounds=ROUNDS)
            for script in LONG_SCRIPTS:
                await costs.repeat(script, warm_up=1, rounds=LONG_ROUNDS)
        finally:
            gc.enable()
            await services.close()
    return costs


def print_table(costs: Mapping[str, Cost]) -> None:
    titles = ("Python calls", "C calls", "statements", "rows read", "rows written", "hand-overs")
    print(f"{'':26}" + "".join(f"{title:>14}" for title in titles))
    for name, cost in costs.items():
        print(f"{name:26}" + "".join(f"{number:14,}" for number in cost))


def main(open_services: OpenServices) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.costs", description=__doc__)
    parser.add_argument(
        "--functions", metavar="OPERATION", help="list the functions and statements of one operation"
    )
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args()
    costs = uvloop.run(measure(open_services))
    if options.functions:
        for function, count in sorted(costs.functions[options.functions].items()):
            print(f"{count:7,} {function}")
        print(*costs.sql[options.functions], sep="\n")
    elif options.json:
        print(json.dumps({name: cost._asdict() for name, cost in costs.all().items()}, indent=1))
    else:
        print_table(costs.all())


if __name__ == "__main__":
    from bench.in_process import InProcess

    main(InProcess)
