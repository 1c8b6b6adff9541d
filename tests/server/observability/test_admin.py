"""What the admin port says about the workers."""

import asyncio
import os

import pytest

from kyanite.server.http.request_body import NO_BODY
from kyanite.server.observability import admin as admin_port
from kyanite.server.observability import metrics
from kyanite.server.observability.admin import Admin
from kyanite.server.processes.process_table import ProcessTable, State
from kyanite.wire.http import Request, Response


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(admin_port, "time", made)
    return made


def get(admin: Admin, path: str, method: str = "GET") -> tuple[int, str]:
    async def answer() -> Response:
        return await admin(Request(method, path, "", {}, [], NO_BODY, "127.0.0.1", False, 1))

    response = asyncio.run(answer())
    assert isinstance(response.body, bytes)
    return response.status, response.body.decode()


def two_workers() -> tuple[ProcessTable, Admin]:
    process_table = ProcessTable(["worker 1", "worker 2", "admin"])
    return process_table, Admin(process_table.slots, frozenset({"worker 1", "worker 2"}))


def test_health_by_state(clock: Clock) -> None:
    process_table, admin = two_workers()
    first, second = process_table.slots["worker 1"], process_table.slots["worker 2"]
    assert get(admin, "/healthz") == (503, "worker 1 is not running\nworker 2 is not running\n")
    first.state, second.state = State.SERVING, State.STARTING
    assert get(admin, "/healthz") == (503, "worker 2 is starting\n")
    second.state = State.SERVING
    assert get(admin, "/healthz") == (200, "ok\n")
    first.state = State.STOPPING
    assert get(admin, "/healthz") == (503, "worker 1 is stopping\n")


def test_readiness(clock: Clock) -> None:
    process_table, admin = two_workers()
    first, second = process_table.slots["worker 1"], process_table.slots["worker 2"]
    assert get(admin, "/readyz") == (503, "worker 1 is not running\nworker 2 is not running\n")
    first.state, second.state = State.SERVING, State.STARTING
    clock.seconds = 100.0
    assert get(admin, "/readyz") == (503, "the store does not answer worker 1\nworker 2 is starting\n")
    second.state = State.SERVING
    for slot in (first, second):
        slot.store_answered_ns = 100_000_000_000
    assert get(admin, "/readyz") == (200, "ready\n")
    clock.seconds += admin_port.STORE_SILENT_SECONDS + 0.1
    for slot in (first, second):
        slot.count_beat()
    second.store_answered_ns = round(clock.seconds * 1e9)
    assert get(admin, "/readyz") == (503, "the store does not answer worker 1\n")
    first.store_answered_ns = second.store_answered_ns
    assert get(admin, "/readyz") == (200, "ready\n")
    # It is healthy while it is drained, but should get no requests.
    first.drain()
    second.drain()
    assert get(admin, "/readyz") == (503, "worker 1 is about to stop\nworker 2 is about to stop\n")
    assert get(admin, "/healthz") == (200, "ok\n")


def test_health_by_heartbeat(clock: Clock) -> None:
    process_table, admin = two_workers()
    for name in ("worker 1", "worker 2"):
        process_table.slots[name].state = State.SERVING
    admin.note_heartbeats()
    clock.seconds = admin_port.SILENT_SECONDS
    process_table.slots["worker 2"].count_beat()
    assert get(admin, "/healthz") == (200, "ok\n")
    clock.seconds += 0.1
    assert get(admin, "/healthz") == (503, "worker 1 does not answer\n")
    process_table.slots["worker 1"].count_beat()
    assert get(admin, "/healthz") == (200, "ok\n")


def test_figures_of_all_are_added_up() -> None:
    process_table, admin = two_workers()
    for number, name in enumerate(("worker 1", "worker 2"), 1):
        slot = process_table.slots[name]
        slot.take(number)
        slot.state = State.SERVING
        slot.write_metrics(
            metrics.encode({"kyanite_sent_bytes_total": {"": 5}, "kyanite_connections": {"": number}})
        )
    status, text = get(admin, "/metrics")
    assert status == 200
    assert "\nkyanite_sent_bytes_total 10\n" in text
    assert "\nkyanite_connections 3\n" in text
    assert "\nkyanite_workers 2\n" in text


def test_a_worker_that_is_gone_keeps_its_counts_only() -> None:
    process_table, admin = two_workers()
    slot = process_table.slots["worker 1"]
    slot.take(1)
    slot.write_metrics(metrics.encode({"kyanite_sent_bytes_total": {"": 5}, "kyanite_connections": {"": 9}}))
    slot.leave()
    text = get(admin, "/metrics")[1]
    assert "\nkyanite_sent_bytes_total 5\n" in text
    assert "kyanite_connections" not in text
    assert "\nkyanite_workers 0\n" in text


def test_memory_of_processes_that_are_there() -> None:
    process_table, admin = two_workers()
    process_table.slots["worker 1"].take(os.getpid())
    process_table.slots["worker 2"].take(2**22 + 1)
    text = get(admin, "/metrics")[1]
    assert 'kyanite_resident_memory_bytes{process="worker 1"}' in text
    assert 'kyanite_resident_memory_bytes{process="supervisor"}' in text
    assert 'kyanite_resident_memory_bytes{process="worker 2"}' not in text


def test_other_paths_and_methods() -> None:
    _, admin = two_workers()
    assert get(admin, "/")[0] == 404
    assert get(admin, "/metrics", "HEAD")[0] == 200
    assert get(admin, "/metrics", "DELETE")[0] == 405
