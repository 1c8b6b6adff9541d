"""Requests that read much, to a store that has much: which of them take long?

A world with thousands of blobs, ranges, entities, messages and files is made, then lists and queries go there with odd
parameters. Every request that takes more than a second of the processor is noted, and the slowest are kept.
"""

import json
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.services.fuzzing.client import FuzzConnection
from tests.services.fuzzing.local_server import HOSTS, LocalServer
from tests.services.fuzzing.report import Failure, Report
from tests.services.fuzzing.request import FuzzRequest
from tests.services.fuzzing.requests import SERVICES, Requests
from tests.services.fuzzing.run import Checker
from tests.services.fuzzing.seeds import first_requests

READS = {
    "blob": (
        "List Blobs",
        "Get Page Ranges",
        "Get Block List",
        "Get Blob",
        "List Containers",
        "Put Block List",
    ),
    "queue": ("Get Messages", "Peek Messages", "Clear Messages", "Get Queue Metadata"),
    "table": ("Query Entities", "Query Tables", "Entity Group Transaction"),
    "file": (
        "List Directories and Files",
        "List Ranges",
        "Get File",
        "List Shares",
        "Rename Directory",
        "List Handles",
    ),
}
"""The operations that read what may be much."""
_VERSION = ("x-ms-version", "2025-05-05")
_JSON = ("Content-Type", "application/json")
_SLOWEST = 15


async def run_heavy(seed: int, requests: int, things: int) -> tuple[Report, list[tuple[float, str]]]:
    """The report, and the slowest requests with their seconds."""
    report, slowest = Report(), list[tuple[float, str]]()
    chance = random.Random(f"{seed}/heavy")
    with tempfile.TemporaryDirectory(prefix="kyanite-fuzz-") as folder:
        server = LocalServer(Path(folder))
        await server.start()
        connections = {word: FuzzConnection(port) for word, port in server.ports.items()}
        checker = Checker(server, connections)
        generated = Requests(chance, tuple(SERVICES), HOSTS, only=READS)
        now = server.clock.now
        try:
            for request in (*first_requests(), *_many(things)):
                octets = generated.signer.encode(request, host=HOSTS[request.service], now=now, chance=chance)
                await checker.send(request, octets)
            generated.skip_first()
            for number in range(requests):
                request, octets = generated.next(now)
                began = time.perf_counter()
                answer, problem = await checker.send(request, octets)
                seconds = time.perf_counter() - began
                status = 0 if answer is None else answer.status
                slowest = sorted([*slowest, (seconds, f"{status} {octets[:400]!r}")], reverse=True)[:_SLOWEST]
                if answer is not None:
                    report.count(request.service, server.operation, answer.status, "")
                if checker.slow_seconds:
                    report.slow.append(f"{checker.slow_seconds:.1f} s: {octets[:1000]!r}")
                if problem:
                    report.failures.append(Failure(seed, 0, number, problem, octets))
        finally:
            for connection in connections.values():
                await connection.close()
            await server.close()
    return report, slowest


def _many(things: int) -> Iterator[FuzzRequest]:
    for number in range(things):
        name = f"{'dir/' if number % 2 else ''}{number:06}"
        yield _put("blob", f"/box/{name}", [], [("x-ms-blob-type", "BlockBlob")])
        written = [
            ("x-ms-page-write", "update"),
            ("x-ms-range", f"bytes={number * 1024}-{number * 1024 + 511}"),
        ]
        if number == 0:
            sized = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", str(things * 1024))]
            yield _put("blob", "/box/page", [], sized)
            larger = [("x-ms-type", "file"), ("x-ms-content-length", str(things * 8192))]
            yield _put("file", "/share/file", [], larger)
        yield _put("blob", "/box/page", [("comp", "page")], written, b"p" * 512)
        part = [("x-ms-write", "update"), ("x-ms-range", f"bytes={number * 8192}-{number * 8192 + 9}")]
        yield _put("file", "/share/file", [("comp", "range")], part, b"f" * 10)
        yield _put(
            "file", f"/share/dir/{number:06}", [], [("x-ms-type", "file"), ("x-ms-content-length", "0")]
        )
        yield _entity(number)
        message = b"<QueueMessage><MessageText>x</MessageText></QueueMessage>"
        yield FuzzRequest("queue", "(first)", "POST", "/work/messages", [], [_VERSION], message)


def _put(
    service: str, path: str, query: list[tuple[str, str]], headers: list[tuple[str, str]], body: bytes = b""
) -> FuzzRequest:
    return FuzzRequest(service, "(first)", "PUT", path, query, [_VERSION, *headers], body)


def _entity(number: int) -> FuzzRequest:
    path = f"/things(PartitionKey='{number % 7}',RowKey='{number:06}')"
    properties = {
        "Text": "x" * (number % 50),
        "Number": number,
        "Big": str(number),
        "Flag": number % 2 == 0,
        "Real": 0.5,
    }
    return FuzzRequest(
        "table", "(first)", "PUT", path, [], [_VERSION, _JSON], json.dumps(properties).encode()
    )
