"""The admin port: ``/healthz``, ``/readyz`` and ``/metrics`` of the whole server, commands, and what tests use.

A server is *healthy* if all its workers run and answer: if not, restart it. It is *ready* if it should get requests:
its listeners accept, the store answers, and it is not about to stop. Load balancers ask for that.

A process of its own answers here, so that it can report what is wrong when no worker answers. All that it knows is in
the process table; management commands are passed on to a worker (``management/http_api.py``).
"""

import json
import os
import time
from collections.abc import Mapping

from kyanite.server.management import http_api
from kyanite.server.observability import metrics
from kyanite.server.observability.metrics import Samples
from kyanite.server.processes.process_table import Slot, State
from kyanite.wire.http import Handler, Request, Response

SILENT_SECONDS = 3.0
"""A worker whose heartbeat has not changed for so long does not answer."""
STORE_SILENT_SECONDS = 5.0
"""A worker whose store has not answered for so long should get no requests."""

_STATES = {State.GONE: "is not running", State.STARTING: "is starting", State.STOPPING: "is stopping"}
TESTING = "/testing"
"""Below it is what only a server with ``--testing`` has (``server/testing/http_api.py``)."""


async def not_testing(_: Request) -> Response:
    sentence = "This server was not started with --testing, so there is nothing at /testing."
    return Response(
        404, [("Content-Type", "application/json")], json.dumps({"error": sentence}).encode() + b"\n"
    )


class Admin:
    """Answers for all workers. ``note_heartbeats`` is to be called about once a second."""

    def __init__(
        self,
        slots: Mapping[str, Slot],
        workers: frozenset[str],
        api: Handler | None = None,
        testing: Handler = not_testing,
    ) -> None:
        self._slots = slots
        self._workers = workers
        self._api = api
        self._testing = testing
        self._beats: dict[str, tuple[int, float]] = {}

    def note_heartbeats(self) -> None:
        """Remember which workers' heartbeats have changed."""
        now = time.monotonic()
        for name in self._workers:
            slot = self._slots[name]
            known = self._beats.get(name)
            if known is None or known[0] != slot.beat:
                self._beats[name] = slot.beat, now

    async def __call__(self, request: Request) -> Response:
        if request.path == TESTING or request.path.startswith(f"{TESTING}/"):
            return await self._testing(request)
        if self._api is not None and request.path.startswith(http_api.PATH):
            return await self._api(request)
        pages = {"/healthz": self._health, "/readyz": self._readiness, "/metrics": self._metrics}
        page = pages.get(request.path)
        if page is None:
            return _text(404, "There is /healthz, /readyz and /metrics.\n")
        if request.method not in ("GET", "HEAD"):
            return _text(405, "Only GET.\n", ("Allow", "GET, HEAD"))
        return page()

    def _health(self) -> Response:
        complaints = [complaint for name in sorted(self._workers) if (complaint := self._complaint(name))]
        if complaints:
            return _text(503, "".join(f"{complaint}\n" for complaint in complaints))
        return _text(200, "ok\n")

    def _readiness(self) -> Response:
        reasons = []
        for name in sorted(self._workers):
            slot = self._slots[name]
            if slot.is_draining:
                reasons.append(f"{name} is about to stop")
            elif (complaint := self._complaint(name)) is not None:
                reasons.append(complaint)
            elif time.monotonic() - slot.store_answered_ns / 1e9 > STORE_SILENT_SECONDS:
                reasons.append(f"the store does not answer {name}")
        if reasons:
            return _text(503, "".join(f"{reason}\n" for reason in reasons))
        return _text(200, "ready\n")

    def _complaint(self, name: str) -> str | None:
        state = self._slots[name].state
        if state is not State.SERVING:
            return f"{name} {_STATES[state]}"
        self.note_heartbeats()
        if time.monotonic() - self._beats[name][1] > SILENT_SECONDS:
            return f"{name} does not answer"
        return None

    def _metrics(self) -> Response:
        parts = [_metrics_of(slot) for slot in self._slots.values()]
        body = metrics.render(metrics.add_up([*parts, self._own_samples()]))
        return Response(200, [("Content-Type", "text/plain; version=0.0.4; charset=utf-8")], body)

    def _own_samples(self) -> Samples:
        serving = sum(self._slots[name].state is State.SERVING for name in self._workers)
        restarts = {metrics.labels(process=name): float(slot.restarts) for name, slot in self._slots.items()}
        pids = {name: slot.pid for name, slot in self._slots.items() if slot.state is not State.GONE}
        memory = {
            metrics.labels(process=name): float(resident)
            for name, pid in (*pids.items(), ("supervisor", os.getppid()))
            if (resident := resident_bytes(pid)) is not None
        }
        return {
            "kyanite_workers": {"": serving},
            "kyanite_restarts_total": restarts,
            "kyanite_resident_memory_bytes": memory,
        }


def _metrics_of(slot: Slot) -> Samples:
    """What a process has published. Of one that is gone, the counters remain, but not the gauges."""
    samples = metrics.decode(slot.read_metrics())
    return samples if slot.state in (State.SERVING, State.STOPPING) else metrics.counters_of(samples)


def resident_bytes(pid: int) -> int | None:
    """The memory that a process occupies; None where the system does not say."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")
    except (FileNotFoundError, ProcessLookupError):
        return None


def _text(status: int, text: str, *headers: tuple[str, str]) -> Response:
    return Response(status, [("Content-Type", "text/plain; charset=utf-8"), *headers], text.encode())
