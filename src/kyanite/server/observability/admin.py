"""The admin port: ``GET /healthz`` and ``GET /metrics``, answered for the whole server.

A process of its own, so that it can still say what is wrong when no worker answers. All it knows it reads from the
roster.
"""

import os
import time
from collections.abc import Mapping

from kyanite.server.observability import metrics
from kyanite.server.observability.metrics import Samples
from kyanite.server.processes.process_table import Slot, State
from kyanite.wire.http import Request, Response

SILENT_SECONDS = 3.0
"""A worker whose heartbeat has not changed for so long does not answer."""

_STATES = {State.GONE: "is not running", State.STARTING: "is starting", State.STOPPING: "is stopping"}


class Admin:
    """Answers for all workers. ``look_up`` is to be called about once a second."""

    def __init__(self, slots: Mapping[str, Slot], workers: frozenset[str]) -> None:
        self._slots = slots
        self._workers = workers
        self._beats: dict[str, tuple[int, float]] = {}

    def look_up(self) -> None:
        """Take note of who has shown a sign of life."""
        now = time.monotonic()
        for name in self._workers:
            slot = self._slots[name]
            known = self._beats.get(name)
            if known is None or known[0] != slot.beat:
                self._beats[name] = slot.beat, now

    async def __call__(self, request: Request) -> Response:
        answers = {"/healthz": self._health, "/metrics": self._figures}
        answer = answers.get(request.path)
        if answer is None:
            return _text(404, "There is /healthz and /metrics.\n")
        if request.method not in ("GET", "HEAD"):
            return _text(405, "Only GET.\n", ("Allow", "GET, HEAD"))
        return answer()

    def _health(self) -> Response:
        complaints = [complaint for name in sorted(self._workers) if (complaint := self._complaint(name))]
        if complaints:
            return _text(503, "".join(f"{complaint}\n" for complaint in complaints))
        return _text(200, "ok\n")

    def _complaint(self, name: str) -> str | None:
        state = self._slots[name].state
        if state is not State.SERVING:
            return f"{name} {_STATES[state]}"
        self.look_up()
        if time.monotonic() - self._beats[name][1] > SILENT_SECONDS:
            return f"{name} does not answer"
        return None

    def _figures(self) -> Response:
        parts = [_figures_of(slot) for slot in self._slots.values()]
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


def _figures_of(slot: Slot) -> Samples:
    """What a process has written. Of one that is gone, what it counted still holds, but not what it had open."""
    samples = metrics.decode(slot.read_figures())
    return samples if slot.state in (State.SERVING, State.STOPPING) else metrics.counters_of(samples)


def resident_bytes(pid: int) -> int | None:
    """The memory a process occupies, where the system tells."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")
    except (FileNotFoundError, ProcessLookupError):
        return None


def _text(status: int, text: str, *headers: tuple[str, str]) -> Response:
    return Response(status, [("Content-Type", "text/plain; charset=utf-8"), *headers], text.encode())
