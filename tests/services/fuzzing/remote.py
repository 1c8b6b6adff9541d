"""The same requests to a real server: several workers, several clients at once, a store on disk.

What the server logs as an error is a failure, and so is what ``kyanite verify`` finds in the store when it has stopped.
"""

import asyncio
import base64
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from urllib.parse import urlsplit

from kyanite.engine.clock import wall_clock
from kyanite.server.config import AccountKeys
from tests.server_process import ServerProcess
from tests.services.fuzzing.client import Broken, FuzzConnection
from tests.services.fuzzing.oracle import problems
from tests.services.fuzzing.report import Failure, Report
from tests.services.fuzzing.requests import SERVICES, Requests
from tests.services.harness import ACCOUNT, OTHER

CLIENTS = 8
_SLOW_SECONDS = 5.0
_RENEWED_AFTER = 2000
"""A client creates the first resources anew after so many requests, since others may have deleted them."""


def run_remote(
    seed: int,
    requests: int,
    services: Sequence[str] = tuple(SERVICES),
    *,
    workers: int = 2,
    clients: int = CLIENTS,
) -> Report:
    report = Report()
    options = ["--workers", str(workers)]
    for each in (ACCOUNT, OTHER):
        options += ["--account", _option(each)]
    with ServerProcess(*options) as server:
        asyncio.run(_run(server, seed, requests, services, clients, report))
        errors = [line for line in server.log if line.get("level") in {"error", "critical"}]
        if errors or not server.is_running():
            report.failures.append(Failure(seed, 0, 0, f"the server logged {errors[:3]}", b""))
        server.stop()
        command = [sys.executable, "-m", "kyanite.server.cli", "verify", "--location", str(server.location)]
        verified = subprocess.run(command, capture_output=True, text=True, check=False)
        if verified.returncode:
            found = verified.stdout[:2000] + verified.stderr[:2000]
            report.failures.append(Failure(seed, 0, 0, f"verification finds {found}", b""))
    return report


def _option(account: AccountKeys) -> str:
    return ":".join((account.name, *(base64.b64encode(key).decode() for key in account.keys)))


async def _run(
    server: ServerProcess, seed: int, requests: int, services: Sequence[str], clients: int, report: Report
) -> None:
    each = [requests // clients + (number < requests % clients) for number in range(clients)]
    await asyncio.gather(
        *(_client(server, seed, number, count, services, report) for number, count in enumerate(each))
    )


async def _client(
    server: ServerProcess, seed: int, number: int, count: int, services: Sequence[str], report: Report
) -> None:
    """One client, with what it knows; it stops at its first failure."""
    hosts = {word: urlsplit(server.endpoints[word]).netloc for word in SERVICES}
    connections = {word: FuzzConnection(int(host.rpartition(":")[2])) for word, host in hosts.items()}
    chance = random.Random(f"{seed}/{number}")
    generated = Requests(chance, services, hosts)
    for at in range(count):
        if at and at % _RENEWED_AFTER == 0:
            generated.begin_again()
        request, octets = generated.next(wall_clock())
        began = time.perf_counter()
        try:
            answer = await connections[request.service].send(octets, request.framing)
        except Broken as broken:
            report.failures.append(Failure(seed, number, at, str(broken), octets))
            break
        seconds = time.perf_counter() - began
        if seconds > _SLOW_SECONDS:
            report.slow.append(f"client {number}, request {at}: {seconds:.1f} s: {octets[:200]!r}")
        if answer is None:
            report.unanswered += 1
            continue
        report.count(request.service, request.label, answer.status, answer.headers.get("x-ms-error-code", ""))
        problem = "; ".join(problems(request, octets.partition(b" ")[0].decode("latin-1"), answer))
        if problem:
            report.failures.append(Failure(seed, number, at, problem, octets))
            break
        generated.pool.learn(request, answer.status, answer.headers, answer.body)
    for connection in connections.values():
        await connection.close()
