"""The admin port: ``GET /healthz`` and ``GET /metrics`` for the whole server, commands, and the clock of tests.

A process of its own answers here, so that it can report what is wrong when no worker answers. All that it knows is in
the process table; management commands are passed on to a worker (``management/http_api.py``).
"""

import json
import math
import os
import time
from collections.abc import Mapping
from datetime import UTC, datetime

from kyanite.server.clock import TestingClock
from kyanite.server.management import http_api
from kyanite.server.observability import metrics
from kyanite.server.observability.metrics import Samples
from kyanite.server.processes.process_table import Slot, State
from kyanite.values import instant_from_datetime, iso_text, later
from kyanite.wire import iso_time
from kyanite.wire.http import Handler, Request, Response

SILENT_SECONDS = 3.0
"""A worker whose heartbeat has not changed for so long does not answer."""

_STATES = {State.GONE: "is not running", State.STARTING: "is starting", State.STOPPING: "is stopping"}
_CLOCK_BYTES_MAX = 1000
_LAST_TIME = instant_from_datetime(datetime(3000, 1, 1, tzinfo=UTC))
"""How far the clock can be moved: instants and ids have to fit their 63 bits for a while after that."""


class Admin:
    """Answers for all workers. ``note_heartbeats`` is to be called about once a second."""

    def __init__(
        self,
        slots: Mapping[str, Slot],
        workers: frozenset[str],
        clock: TestingClock | None = None,
        api: Handler | None = None,
    ) -> None:
        self._slots = slots
        self._workers = workers
        self._clock = clock
        self._api = api
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
        if self._clock is not None and request.path == "/testing/clock":
            return await _move_clock(self._clock, request)
        if self._api is not None and request.path.startswith(http_api.PATH):
            return await self._api(request)
        pages = {"/healthz": self._health, "/metrics": self._metrics}
        page = pages.get(request.path)
        if page is None:
            return _text(404, "There is /healthz and /metrics.\n")
        if request.method not in ("GET", "HEAD"):
            return _text(405, "Only GET.\n", ("Allow", "GET, HEAD"))
        return page()

    def _health(self) -> Response:
        complaints = [complaint for name in sorted(self._workers) if (complaint := self._complaint(name))]
        if complaints:
            return _text(503, "".join(f"{complaint}\n" for complaint in complaints))
        return _text(200, "ok\n")

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


async def _move_clock(clock: TestingClock, request: Request) -> Response:
    """``GET`` returns the time, ``POST`` moves it: by so many seconds, or to a time."""
    if request.method == "POST":
        has_moved = _advance(clock, await request.body.read_all(_CLOCK_BYTES_MAX))
        if has_moved is None:
            return _text(400, 'Give {"advance_seconds": 3600} or {"now": "2027-01-01T00:00:00Z"}.\n')
        if not has_moved:
            return _text(409, "The clock does not go back.\n")
    elif request.method not in ("GET", "HEAD"):
        return _text(405, "Only GET and POST.\n", ("Allow", "GET, HEAD, POST"))
    state = {"now": iso_text(clock()), "offset_seconds": clock.offset_seconds}
    return Response(200, [("Content-Type", "application/json")], json.dumps(state).encode() + b"\n")


def _advance(clock: TestingClock, body: bytes | None) -> bool | None:
    """Move the clock as a request says. Returns whether it has moved, and None if the request is malformed."""
    try:
        wanted = json.loads(body or b"")
    except ValueError:
        return None
    match wanted:
        case {"advance_seconds": int() | float() as seconds, **others} if not others:
            if (
                not isinstance(seconds, bool)
                and math.isfinite(seconds)
                and later(clock(), seconds) <= _LAST_TIME
            ):
                return clock.advance(seconds)
        case {"now": str(text), **others} if not others:
            instant = iso_time.decode(text)
            if instant is not None and instant <= _LAST_TIME:
                return clock.advance_to(instant)
    return None


def _text(status: int, text: str, *headers: tuple[str, str]) -> Response:
    return Response(status, [("Content-Type", "text/plain; charset=utf-8"), *headers], text.encode())
