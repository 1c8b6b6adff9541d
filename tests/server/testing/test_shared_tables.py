"""Faults and recorded requests in memory that processes share."""

import os
from collections.abc import Callable

import msgspec

from kyanite.server.testing import recorder as recorders
from kyanite.server.testing.fault_table import FAULTS_MAX, FaultTable
from kyanite.server.testing.recorder import Recorder
from kyanite.server.testing.rules import FaultRule, Identified
from kyanite.values import Instant
from kyanite.wire.http import Request

PUT = Identified("blob", "Put Blob", "alpha", "box/blob", "PUT")
NOW = Instant(1)
PROCESSES = 4


class NoBody:
    length = 0

    async def read(self) -> bytes:
        return b""

    async def read_all(self, limit: int) -> bytes | None:
        return b""


def request(path: str = "/alpha/box/blob", query: str = "", headers: dict[str, str] | None = None) -> Request:
    return Request("PUT", path, query, headers or {}, [], NoBody(), "127.0.0.1", False, 1)


def in_processes(work: Callable[[], int]) -> list[int]:
    """What the work returns in each of several processes, at most 255."""
    children = []
    for _ in range(PROCESSES):
        pid = os.fork()
        if pid == 0:
            code = 255
            try:
                code = work()
            finally:
                os._exit(code)
        children.append(pid)
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]


def test_times_are_exact_over_processes() -> None:
    table = FaultTable()
    limited = table.add(FaultRule(operation="Put Blob", times=50, status=503))
    table.add(FaultRule(operation="Get Blob", status=503))
    assert limited is not None
    hits = in_processes(lambda: sum(table.next_fault(PUT, NOW) is not None for _ in range(200)))
    assert sum(hits) == 50
    (fault, counts), _ = table.all()
    assert (fault, counts.matched, counts.fired) == (limited, PROCESSES * 200, 50)


def test_a_process_that_has_read_the_rules_reads_new_ones() -> None:
    table = FaultTable()
    assert table.next_fault(PUT, NOW) is None

    def work() -> int:
        return 0 if table.add(FaultRule(drop=True)) is not None else 1

    assert in_processes(work) == [0] * PROCESSES
    fault = table.next_fault(PUT, NOW)
    assert fault is not None
    assert fault.rule == FaultRule(drop=True)
    assert sorted(each.id for each, _ in table.all()) == list(range(1, PROCESSES + 1))


def test_a_new_fault_begins_with_no_counts() -> None:
    table = FaultTable()
    first = table.add(FaultRule(drop=True, times=1))
    assert first is not None
    assert table.next_fault(PUT, NOW) == first
    assert table.remove(first.id)
    assert not table.remove(first.id)
    second = table.add(FaultRule(drop=True, times=1))
    assert second is not None
    assert (second.slot, second.id) == (first.slot, first.id + 1)
    assert table.next_fault(PUT, NOW) == second
    assert table.next_fault(PUT, NOW) is None


def test_the_first_fault_that_happens_wins() -> None:
    table = FaultTable()
    faults = [table.add(FaultRule(drop=True, times=1, path=path)) for path in ("other", "box/*", "box/blob")]
    assert [table.next_fault(PUT, NOW) for _ in range(3)] == [faults[1], faults[2], None]


def test_room_for_faults_is_bounded() -> None:
    table = FaultTable()
    added = [table.add(FaultRule(drop=True, account=f"account{n % 2}")) for n in range(FAULTS_MAX + 1)]
    assert added[-1] is None
    assert None not in added[:-1]
    table.clear("account0")
    assert len(table.all()) == FAULTS_MAX // 2
    table.clear()
    assert table.all() == []
    long_path = "x" * 2000
    kept = [table.add(FaultRule(drop=True, path=long_path)) for _ in range(FAULTS_MAX)]
    assert None not in kept


def test_numbers_are_unique_over_processes() -> None:
    recorder = Recorder()

    def work() -> int:
        for _ in range(50):
            record = recorder.begin(request(), PUT, NOW)
            recorder.end(msgspec.structs.replace(record, status=201, done=True))
        return 0

    assert in_processes(work) == [0] * PROCESSES
    requests, forgotten = recorder.all()
    assert [each.number for each in requests] == list(range(1, PROCESSES * 50 + 1))
    assert {each.status for each in requests} == {201}
    assert forgotten == 0


def test_the_last_requests_are_kept() -> None:
    recorder = Recorder()
    first = recorder.begin(request(), PUT, NOW)
    for _ in range(recorders.KEPT + 9):
        last = recorder.begin(request(), PUT, NOW)
    recorder.end(msgspec.structs.replace(first, status=201))  # Its room belongs to another one.
    requests, forgotten = recorder.all()
    assert (len(requests), forgotten) == (recorders.KEPT, 10)
    assert {each.status for each in requests} == {None}
    assert recorder.all(after=last.number - 1) == ([requests[-1]], 0)
    assert recorder.all(after=5)[1] == 5
    recorder.clear()
    recorder.end(msgspec.structs.replace(last, status=201))
    assert recorder.all() == ([], 0)
    recorder.begin(request(), PUT, NOW)
    assert len(recorder.all()[0]) == 1


def test_no_secret_is_recorded() -> None:
    secrets = {
        "authorization": "SharedKey alpha:c2VjcmV0",
        "x-ms-copy-source-authorization": "Bearer c2VjcmV0",
        "x-ms-encryption-key": "c2VjcmV0",
        "x-ms-source-encryption-key": "c2VjcmV0",
        "cookie": "session=c2VjcmV0",
        "x-ms-copy-source": "http://127.0.0.1/alpha/box/source?sp=r&sig=c2VjcmV0&se=2030",
        "x-ms-meta-plain": "kept",
    }
    recorder = Recorder()
    record = recorder.begin(request(query="sp=r&sig=c2VjcmV0&comp=lease", headers=secrets), PUT, NOW)
    assert b"c2VjcmV0" not in msgspec.json.encode(record)
    assert record.query == "sp=r&sig=...&comp=lease"
    assert record.headers["x-ms-meta-plain"] == "kept"
    assert record.headers["x-ms-copy-source"].endswith("sig=...&se=2030")


def test_requests_of_any_size_fit() -> None:
    recorder = Recorder()
    huge = {f"x-ms-meta-{n}": "\x01" * 8000 for n in range(20)}
    odd = Identified("blob", "", "a" * 5000, "\x01\U0001f600" * 5000 + "\ud800", "PUT")
    record = recorder.begin(request(query="a=%01&" * 4000, headers=huge), odd, NOW)
    recorder.end(msgspec.structs.replace(record, status=400))
    ((kept,), _) = recorder.all()
    assert kept.status == 400
    assert kept.path.startswith("\x01\U0001f600")
