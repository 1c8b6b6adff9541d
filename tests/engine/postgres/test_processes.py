"""Several processes on one database: nothing is lost, doubled or torn, and none of them waits for ever."""

import json
import subprocess
import sys
from typing import Any

from tests.engine.postgres.engine_process import CLIENTS, HOT_KEYS
from tests.postgres_server import PostgresServer

PROCESSES = 2


def run_processes(url: str, work: str, times: int) -> list[Any]:
    command = [sys.executable, "-m", "tests.engine.postgres.engine_process", url, work, str(times)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(PROCESSES)]
    outputs = [process.communicate(timeout=120)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * PROCESSES
    return [json.loads(output) for output in outputs]


def test_64_clients_count_on_4_keys(postgres_server: PostgresServer) -> None:
    """Every count is there once, instants ascend with the counts, and no client starves."""
    times = 10
    found = run_processes(postgres_server.new_schema_url(), "count", times)
    counts = sorted(tuple(each) for process in found for each in process["counts"])
    each_key = PROCESSES * CLIENTS * times // len(HOT_KEYS)
    expected = [(key, count) for key in range(len(HOT_KEYS)) for count in range(1, each_key + 1)]
    assert [(key, count) for key, count, _ in counts] == expected
    assert len({now for _, _, now in counts}) == len(counts)
    for key in range(len(HOT_KEYS)):
        instants = [now for number, _, now in counts if number == key]
        assert instants == sorted(instants)
    for process in found:
        # The batch that was under way, and the next one: a client that another process keeps from committing, or that
        # its neighbours overtake, would wait for more.
        assert max(process["waits"]) <= 2
        # Under the lock a batch is not refused again.
        assert process["counters"]["batches_refused"] <= process["counters"]["batches"]


def test_no_write_skew_no_phantom_and_no_torn_read(postgres_server: PostgresServer) -> None:
    found = run_processes(postgres_server.new_schema_url(), "leave", 15)
    assert [process["broken"] for process in found] == [0] * PROCESSES
