"""Runs requests, world by world, and checks every answer, the log, and the store at the end of each world.

A world is a new store with a seed of its own, so that any of them can be run again alone.
"""

import random
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kyanite.values import TICKS_PER_SECOND, Instant
from tests.services.fuzzing import opens
from tests.services.fuzzing.client import Answer, Broken, FuzzConnection
from tests.services.fuzzing.local_server import HOSTS, LocalServer
from tests.services.fuzzing.oddities import Chance
from tests.services.fuzzing.oracle import problems
from tests.services.fuzzing.report import Failure, Report
from tests.services.fuzzing.request import FuzzRequest
from tests.services.fuzzing.requests import SERVICES, Requests

REQUESTS_PER_WORLD = 2000
_SLOW_SECONDS = 1.0
_FAVOURED_EVERY = 100
_RENEWED_AFTER = 700
"""The first resources are created anew after so many requests, since many of them are gone by then."""
_JUMPS_SECONDS = (1, 20, 61, 3600)


@dataclass(frozen=True, slots=True)
class Sent:
    """A request as it was sent, to be sent again while a failure is shrunk."""

    service: str
    request: FuzzRequest
    octets: bytes
    now: Instant


class Checker:
    """Sends requests and judges what comes back."""

    def __init__(self, server: LocalServer, connections: Mapping[str, FuzzConnection]) -> None:
        self._server = server
        self._connections = connections
        self.slow_seconds = 0.0
        """The time of the processor that the last request took, if it took long."""
        self._sent = 0
        self._cpu_began = time.process_time()

    async def send(self, request: FuzzRequest, octets: bytes) -> tuple[Answer | None, str]:
        """The answer, and what is wrong with it; empty if nothing is."""
        began = time.perf_counter()
        self._server.operation = ""
        try:
            answer = await self._connections[request.service].send(octets, request.framing)
        except Broken as broken:
            return None, str(broken)
        finally:
            self._measure(time.perf_counter() - began)
        failed = self._server.failures.found
        if failed:
            text = failed[0]
            failed.clear()
            return answer, f"the server logged an error: {text.strip().rpartition(chr(10))[2]}\n{text}"
        if answer is None:
            return None, ""
        method = octets.partition(b" ")[0].decode("latin-1")
        return answer, "; ".join(problems(request, method, answer))

    def _measure(self, seconds: float) -> None:
        """To read the clock of the processor takes long, so it is read only now and then, and after long requests."""
        self._sent += 1
        self.slow_seconds = 0.0
        if seconds > _SLOW_SECONDS or self._sent % 50 == 0:
            now = time.process_time()
            used = min(seconds, now - self._cpu_began)
            if used > _SLOW_SECONDS:
                self.slow_seconds = used
            self._cpu_began = now


async def run_world(seed: int, world: int, count: int, services: Sequence[str], report: Report) -> list[Sent]:
    """Run one world; stops at its first failure. Returns what was sent."""
    own = Report()
    try:
        return await _run_world(seed, world, count, services, own)
    finally:
        report.merge(own)


async def _run_world(
    seed: int, world: int, count: int, services: Sequence[str], report: Report
) -> list[Sent]:
    chance = random.Random(f"{seed}/{world}")
    sent: list[Sent] = []
    with tempfile.TemporaryDirectory(prefix="kyanite-fuzz-") as folder:
        server = LocalServer(Path(folder))
        await server.start()
        connections = {word: FuzzConnection(port) for word, port in server.ports.items()}
        checker, requests = Checker(server, connections), Requests(chance, services, HOSTS)
        try:
            for number in range(count):
                if number and number % _RENEWED_AFTER == 0:
                    requests.begin_again()
                if number % _FAVOURED_EVERY == 0:
                    missing = {word: report.uncovered(word, SERVICES[word].OPERATIONS) for word in services}
                    requests.favour(missing)
                _move(server, chance)
                if "file" in services:
                    await _act_over_smb(server, chance)
                request, octets = requests.next(server.clock.now)
                sent.append(Sent(request.service, request, octets, server.clock.now))
                answer, problem = await checker.send(request, octets)
                _count(report, server, request, answer)
                if checker.slow_seconds > _SLOW_SECONDS:
                    report.slow.append(
                        f"seed {seed}, world {world}, request {number}: {checker.slow_seconds:.1f} s, "
                        f"{request.method} {request.path[:100]} {server.operation}"
                    )
                if problem:
                    report.failures.append(Failure(seed, world, number, problem, octets))
                    return sent
                if answer is not None:
                    requests.pool.learn(request, answer.status, answer.headers, answer.body)
            findings = await server.findings()
            if findings:
                text = f"verification finds {findings[0]}"
                report.failures.append(Failure(seed, world, count, text, b""))
        finally:
            for connection in connections.values():
                await connection.close()
            await server.close()
    return sent


async def _act_over_smb(server: LocalServer, chance: Chance) -> None:
    happens = chance.random()
    if happens < 0.02:
        await opens.act(server, chance)
    elif happens < 0.024:
        await opens.close_all(server)


def _move(server: LocalServer, chance: Chance) -> None:
    """A little time passes, sometimes more, so that leases and messages expire."""
    seconds = chance.choice(_JUMPS_SECONDS) if chance.random() < 0.03 else 0.01
    server.clock.now = Instant(server.clock.now + int(seconds * TICKS_PER_SECOND))


def _count(report: Report, server: LocalServer, request: FuzzRequest, answer: Answer | None) -> None:
    if answer is None:
        report.unanswered += 1
        return
    code = answer.headers.get("x-ms-error-code", "")
    report.count(request.service, server.operation, answer.status, code)


async def run(
    seed: int,
    requests: int,
    services: Sequence[str] = tuple(SERVICES),
    *,
    first_world: int = 0,
    failures_max: int = 1,
    on_failure: Callable[[Failure, list[Sent]], None] = lambda _failure, _sent: None,
    on_world: Callable[[Report], None] = lambda _report: None,
) -> Report:
    """So many requests. Stops after so many failures, of which each ends its world."""
    report = Report()
    world = first_world
    while report.requests + report.unanswered < requests and len(report.failures) < failures_max:
        left = requests - report.requests - report.unanswered
        known = len(report.failures)
        sent = await run_world(seed, world, min(left, REQUESTS_PER_WORLD), services, report)
        for failure in report.failures[known:]:
            on_failure(failure, sent)
        on_world(report)
        world += 1
    return report
