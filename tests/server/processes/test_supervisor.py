"""A real server: its processes, from the ready line to the end."""

import contextlib
import http.client
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import uvloop

from kyanite.engine.clock import wall_clock
from kyanite.model.store_format import FORMAT
from kyanite.server.processes.child import waits_for_disk
from kyanite.server.store.api import StoreKind
from kyanite.server.store.factory import factory_of
from tests.server.stand_in import PROGRAM
from tests.server_process import ServerFailed, ServerProcess, eventually, is_alive

TICK_SECONDS, WRITE_LOCK_SECONDS = 0.2, 1.6
"""Of an impatient stand-in: between two looks at the workers, and how long one may keep the write lock."""


class Client:
    """One connection to one endpoint of a server."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.path = parts.path
        assert parts.hostname is not None
        self.connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)

    def request(self, action: str, method: str = "GET", body: bytes | None = None) -> tuple[int, bytes, int]:
        """Status, body, and the process that answered."""
        self.connection.request(method, f"{self.path}/{action}", body)
        response = self.connection.getresponse()
        return response.status, response.read(), int(response.headers.get("X-Pid") or 0)

    def close(self) -> None:
        self.connection.close()


def client(url: str) -> contextlib.closing[Client]:
    return contextlib.closing(Client(url))


def request(server: ServerProcess, action: str, endpoint: str = "blob") -> tuple[int, bytes, int]:
    with client(server.endpoints[endpoint]) as once:
        return once.request(action)


def stand_in(*args: str, location: Path | None = None, **environment: str) -> ServerProcess:
    return ServerProcess(
        "--services", "blob", *args, location=location, program=PROGRAM, environment=environment
    )


def one_of_each(server: ServerProcess, at_end: contextlib.ExitStack) -> tuple[Client, Client]:
    """Connections to two different workers."""
    found: dict[int, Client] = {}
    for _ in range(50):
        made = at_end.enter_context(client(server.endpoints["blob"]))
        found.setdefault(made.request("hello")[2], made)
        if len(found) == 2:
            break
    first, second = found.values()
    return first, second


def test_ready_line_means_ready(tmp_path: Path) -> None:
    with stand_in("--workers", "2", location=tmp_path / "store") as server:
        assert list(server.endpoints) == ["blob"]
        assert server.endpoints["blob"].startswith("http://127.0.0.1:")
        assert server.endpoints["blob"].endswith("/devstoreaccount1")
        assert request(server, "hello")[:2] == (200, b"hello")
        assert len(server.worker_pids()) == 2
        assert server.stop() == 0


def test_few_connections_spread() -> None:
    """Evenly on a machine that has time for it; on one that has none, no worker may be left with next to nothing."""
    with stand_in("--workers", "2") as server, contextlib.ExitStack() as at_end:
        clients = [at_end.enter_context(client(server.endpoints["blob"])) for _ in range(8)]
        pids = [each.request("hello")[2] for each in clients]
        assert len(set(pids)) == 2
        assert all(pids.count(pid) >= 2 for pid in pids)


def test_options_from_the_environment(tmp_path: Path) -> None:
    environment = {
        "KYANITE_LOCATION": str(tmp_path / "elsewhere"),
        "KYANITE_ACCOUNTS": "alpha:a2V5;beta:a2V5:a2V5Mg==",
        "KYANITE_ADMIN_PORT": "0",
        "KYANITE_WORKERS": "1",
        "KYANITE_LOG_LEVEL": "warning",
        "KYANITE_BLOB_PORT": "0",
        "KYANITE_CONSOLE_PORT": "none",
        "KYANITE_SERVICES": "blob",
    }
    server = ServerProcess(program=PROGRAM, environment=environment, defaults=False)
    with server:
        assert server.endpoints["blob"].endswith("/alpha")
        assert request(server, "hello")[0] == 200
        assert request(server, "healthz", "admin")[:2] == (200, b"ok\n")
        assert len(server.worker_pids()) == 1
        assert (tmp_path / "elsewhere" / "format").exists()
        assert server.stop() == 0
        assert server.errors == ""


def test_second_server_on_one_store(tmp_path: Path) -> None:
    with stand_in(location=tmp_path), pytest.raises(ServerFailed) as failed:
        stand_in(location=tmp_path).start()
    assert failed.value.code == 1
    assert failed.value.errors == f"kyanite: The store {tmp_path} is in use by another Kyanite server.\n"


def test_killed_worker_is_replaced_and_the_others_go_on(tmp_path: Path) -> None:
    with stand_in("--workers", "2", location=tmp_path) as server, contextlib.ExitStack() as at_end:
        first, second = one_of_each(server, at_end)
        victim, survivor = first.request("hello")[2], second.request("hello")[2]
        os.kill(victim, signal.SIGKILL)
        assert second.request("hello")[2] == survivor
        eventually(lambda: victim not in server.worker_pids() and len(server.worker_pids()) == 2)
        assert survivor in server.worker_pids()
        eventually(lambda: {request(server, "hello")[2] for _ in range(4)} - {survivor})
        assert server.stop() == 0


def test_worker_that_dies_on_a_request(tmp_path: Path) -> None:
    with stand_in("--workers", "1", location=tmp_path) as server:
        with client(server.endpoints["blob"]) as once, pytest.raises((http.client.HTTPException, OSError)):
            once.request("die")
        assert request(server, "hello")[0] == 200


def test_worker_that_dies_often_is_replaced_as_often(tmp_path: Path) -> None:
    with stand_in("--workers", "2", location=tmp_path) as server:
        for _ in range(7):
            victim = request(server, "hello")[2]
            os.kill(victim, signal.SIGKILL)
            eventually(lambda: victim not in server.worker_pids())  # noqa: B023
        eventually(lambda: len(server.worker_pids()) == 2)
        assert request(server, "hello")[0] == 200
        assert server.stop() == 0


def test_killed_supervisor_takes_its_workers_along(tmp_path: Path) -> None:
    with stand_in("--workers", "2", "--admin-port", "0", location=tmp_path) as server:
        with client(server.endpoints["blob"]) as once:
            assert once.request("put", "PUT", b"kept")[0] == 200
        children = server.child_pids()
        assert len(children) == 3
        server.kill_supervisor()
        assert server.start()
        assert request(server, "get")[1] == b"kept"
        eventually(lambda: not any(is_alive(pid) for pid in children))


def test_supervisor_killed_while_a_worker_is_busy(tmp_path: Path) -> None:
    """A worker whose loop is stuck notices all the same, for as long as it is there the store is not given away."""
    with stand_in("--workers", "1", location=tmp_path) as server:
        with client(server.endpoints["blob"]) as once:
            once.connection.request("GET", f"{once.path}/block?seconds=60")
            (worker,) = server.worker_pids()
            time.sleep(0.1)
            server.kill_supervisor()
        assert server.start()
        assert not is_alive(worker)


def test_everything_killed_and_started_again(tmp_path: Path) -> None:
    with stand_in("--workers", "2", location=tmp_path) as server:
        for value in (b"one", b"two"):
            with client(server.endpoints["blob"]) as once:
                assert once.request("put", "PUT", value)[0] == 200
            server.kill9()
            server.start()
            assert request(server, "get")[1] == value


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stop_finishes_what_is_in_flight(number: signal.Signals) -> None:
    with stand_in("--workers", "1") as server, client(server.endpoints["blob"]) as dripping:
        dripping.connection.request("GET", f"{dripping.path}/drip?pieces=20")
        response = dripping.connection.getresponse()
        assert response.read(4) == b"drop"
        server.signal(number)
        assert response.read() == b"drop" * 19
        assert server.wait() == 0
        with pytest.raises(ConnectionRefusedError):
            request(server, "hello")


@contextlib.contextmanager
def slowly_answering(stop_seconds: str) -> Iterator[ServerProcess]:
    """A server in the middle of a request that takes longer than any test."""
    with (
        stand_in("--workers", "1", "--stop-seconds", stop_seconds) as server,
        client(server.endpoints["blob"]) as slow,
    ):
        slow.connection.request("GET", f"{slow.path}/sleep?seconds=600")
        time.sleep(0.1)
        yield server


def test_stop_is_bounded() -> None:
    with slowly_answering("0.2") as server:
        assert server.stop() == 0


def test_second_signal_stops_at_once() -> None:
    with slowly_answering("600") as server:
        server.signal(signal.SIGINT)
        time.sleep(0.1)
        server.signal(signal.SIGINT)
        assert server.wait() == 0


@pytest.mark.parametrize(
    ("in_the_way", "why"),
    [("extents", "cannot be opened: "), ("engine/store.sqlite3", "cannot be opened. SQLite: ")],
)
def test_worker_that_cannot_start_gives_its_reason(in_the_way: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "engine").mkdir()
    (tmp_path / in_the_way).write_text("nothing that belongs here" * 1000)
    with pytest.raises(ServerFailed) as failed:
        stand_in(location=tmp_path).start()
    assert failed.value.code == 1
    assert failed.value.errors.startswith(f"kyanite: The store {tmp_path} {why}")
    assert failed.value.errors.count("\n") == 1


def test_worker_that_dies_at_once_again_and_again(tmp_path: Path) -> None:
    with pytest.raises(ServerFailed) as failed:
        stand_in("--workers", "1", location=tmp_path, STAND_IN_DIES="1").start()
    assert failed.value.code == 1
    sentence = failed.value.errors.splitlines()[-1]
    assert sentence == (
        "kyanite: Worker 1 ended 5 times before it was ready. The last time it was ended by SIGKILL."
    )


def test_worker_that_does_not_answer_is_ended(tmp_path: Path) -> None:
    with stand_in("--workers", "2", location=tmp_path, STAND_IN_IMPATIENT="1") as server:
        with client(server.endpoints["blob"]) as once, pytest.raises((http.client.HTTPException, OSError)):
            once.request("block?seconds=60")
        assert [line["why"] for line in server.log if line["message"] == "process killed"] == [
            "stopped answering"
        ]
        eventually(lambda: len(server.worker_pids()) == 2)


def test_a_worker_that_keeps_the_write_lock_is_killed(tmp_path: Path) -> None:
    environment = {"STAND_IN_IMPATIENT": "1", "STAND_IN_STORE": str(tmp_path)}
    with (
        stand_in("--workers", "2", location=tmp_path, **environment) as server,
        contextlib.ExitStack() as at_end,
    ):
        hog, other = one_of_each(server, at_end)
        _, _, hog_pid = hog.request("keep-write-lock")
        _, _, other_pid = other.request("put", "PUT", b"at last")
        assert other_pid != hog_pid
        why = [(line["pid"], line["why"]) for line in server.log if line["message"] == "process killed"]
        assert why == [(hog_pid, "held the write lock for too long")]


def test_a_stopped_worker_does_not_keep_the_others_from_writing(tmp_path: Path) -> None:
    """It has the write lock, which a stopped process keeps."""
    store = {"STAND_IN_STORE": str(tmp_path)}
    with (
        stand_in("--workers", "2", location=tmp_path, **store) as server,
        contextlib.ExitStack() as at_end,
    ):
        hog, other = one_of_each(server, at_end)
        _, _, hog_pid = hog.request("keep-write-lock")
        os.kill(hog_pid, signal.SIGSTOP)
        began = time.monotonic()
        assert other.request("put", "PUT", b"value")[0] == 200
        print(f"writes resumed after {time.monotonic() - began:.1f} s")
        why = [(line["pid"], line["why"]) for line in server.log if line["message"] == "process killed"]
        assert why == [(hog_pid, "was stopped by a signal")]
        eventually(lambda: len(server.worker_pids()) == 2 and hog_pid not in server.worker_pids())


def test_a_worker_that_goes_on_soon_is_not_killed() -> None:
    with stand_in("--workers", "2") as server:
        pids = server.worker_pids()
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
            os.kill(pid, signal.SIGCONT)
        time.sleep(3)
        assert server.worker_pids() == pids


def test_a_slow_disk_is_no_reason_to_kill_a_worker(tmp_path: Path) -> None:
    """However long the write lock is kept meanwhile. Afterwards it is."""
    environment = {"STAND_IN_STORE": str(tmp_path), "STAND_IN_IMPATIENT": "1"}
    with stand_in("--workers", "2", location=tmp_path, **environment) as server:
        pids = server.worker_pids()
        with client(server.endpoints["blob"]) as hog:
            _, _, hog_pid = hog.request("wait-for-disk?seconds=5")
            eventually(lambda: waits_for_disk(hog_pid))
            hog.request("keep-write-lock")
            ticks = 3 * int(WRITE_LOCK_SECONDS / TICK_SECONDS)
            for _ in range(ticks):
                time.sleep(TICK_SECONDS)
                if not waits_for_disk(hog_pid):
                    break
                assert server.worker_pids() == pids
            assert hog.request("hello")[0] == 200
        eventually(lambda: hog_pid not in server.worker_pids())
        why = [(line["pid"], line["why"]) for line in server.log if line["message"] == "process killed"]
        assert why == [(hog_pid, "held the write lock for too long")]


def test_store_with_a_commit_of_unknown_outcome_is_opened_anew(tmp_path: Path) -> None:
    environment = {"STAND_IN_IMPATIENT": "1", "STAND_IN_STORE": str(tmp_path)}
    with stand_in("--workers", "2", location=tmp_path, **environment) as server:
        with client(server.endpoints["blob"]) as once:
            assert once.request("put", "PUT", b"before")[0] == 200
        before = set(server.worker_pids())
        assert request(server, "fail-store")[0] == 200
        eventually(lambda: len(server.worker_pids()) == 2 and not before & set(server.worker_pids()))
        assert request(server, "get")[1] == b"before"
        with client(server.endpoints["blob"]) as once:
            assert once.request("put", "PUT", b"after")[0] == 200


def make_format_1(location: Path) -> None:
    """A store as versions without a row for its format left it."""
    uvloop.run(_make_format_1(location))
    (location / "format").write_text("kyanite store, format 1\n")


async def _make_format_1(location: Path) -> None:
    engine = factory_of(StoreKind(), location).open_engine(wall_clock)
    await engine.run(lambda tx: tx.put(b"stand-in", b"old"))
    await engine.close()


@pytest.mark.parametrize("end", ["stop", "kill9", "kill_supervisor"])
def test_an_upgrade_that_is_interrupted_goes_on_before_workers_start(end: str, tmp_path: Path) -> None:
    make_format_1(tmp_path)
    server = stand_in(location=tmp_path, STAND_IN_SLOW_UPGRADE="1")
    with contextlib.closing(server):
        server.launch()
        eventually(lambda: any(line["message"] == "upgrade step" for line in server.log))
        time.sleep(1.2)  # The first call is committed, the second is under way.
        (upgrading,) = server.child_pids()
        assert getattr(server, end)() in (None, 0)
        eventually(lambda: not is_alive(upgrading))
        server.start()
        first, second, *_ = (line for line in server.log if line["message"] == "upgrade begins")
        assert [line["message"] for line in server.log if line["process"] != "supervisor"][-3:] == [
            "upgrade begins",
            "upgrade step",
            "upgrade complete",
        ]
        assert first["to_format"] == second["to_format"] == FORMAT
        assert request(server, "get")[1] == b"old+++"


def test_in_memory_leaves_nothing(tmp_path: Path) -> None:
    with stand_in("--in-memory", TMPDIR=str(tmp_path)) as server:
        with client(server.endpoints["blob"]) as once:
            assert once.request("put", "PUT", b"value")[0] == 200
            assert once.request("get")[1] == b"value"
        assert len(server.worker_pids()) == 1
        assert list(tmp_path.iterdir())
        assert server.stop() == 0
        assert not list(tmp_path.iterdir())


def test_in_memory_does_not_go_on_without_its_memory(tmp_path: Path) -> None:
    with stand_in("--in-memory", TMPDIR=str(tmp_path)) as server:
        os.kill(server.worker_pids()[0], signal.SIGKILL)
        assert server.wait() == 1
        assert server.errors.splitlines()[-1] == (
            "kyanite: Worker 1, whose memory was the store, was ended by SIGKILL."
        )


def test_health_and_metrics() -> None:
    with stand_in("--workers", "2", "--admin-port", "0") as server:
        assert request(server, "healthz", "admin")[:2] == (200, b"ok\n")
        for _ in range(5):
            assert request(server, "hello")[0] == 200
        line = b'kyanite_requests_total{service="blob",operation="Stand In",status="200"} 5\n'
        eventually(lambda: line in request(server, "metrics", "admin")[1])
        status, text, _ = request(server, "metrics", "admin")
        assert status == 200
        assert b"kyanite_workers 2\n" in text
        assert b'kyanite_restarts_total{process="worker 1"} 0\n' in text
        assert b'le="+Inf"} 5\n' in text
        with client(server.endpoints["blob"]) as once:
            assert once.request("put", "PUT", b"committed")[0] == 200
        eventually(lambda: b"kyanite_engine_transactions_total 1\n" in request(server, "metrics", "admin")[1])
        assert request(server, "elsewhere", "admin")[0] == 404
        with client(server.endpoints["admin"]) as once:
            assert once.request("metrics", "POST", b"")[0] == 405


def test_counts_survive_a_worker() -> None:
    with stand_in("--workers", "1", "--admin-port", "0") as server:
        assert request(server, "hello")[0] == 200
        one = b'kyanite_requests_total{service="blob",operation="Stand In",status="200"} 1\n'
        eventually(lambda: one in request(server, "metrics", "admin")[1])
        os.kill(server.worker_pids()[0], signal.SIGKILL)
        restarted = b'kyanite_restarts_total{process="worker 1"} 1\n'
        eventually(lambda: restarted in request(server, "metrics", "admin")[1])
        assert request(server, "hello")[0] == 200
        two = b'kyanite_requests_total{service="blob",operation="Stand In",status="200"} 2\n'
        eventually(lambda: two in request(server, "metrics", "admin")[1])


def test_health_of_a_stopped_worker() -> None:
    with stand_in("--workers", "2", "--admin-port", "0", STAND_IN_PATIENT="1") as server:
        first, _ = server.worker_pids()
        os.kill(first, signal.SIGSTOP)
        eventually(lambda: request(server, "healthz", "admin")[:2] == (503, b"worker 1 does not answer\n"))
        os.kill(first, signal.SIGCONT)
        eventually(lambda: request(server, "healthz", "admin")[0] == 200)


def test_request_log_without_secrets() -> None:
    with stand_in("--workers", "1", "--log-requests") as server:
        query = "sv=2025-01-05&sig=c2VjcmV0%2B&%73ig=c2VjcmV0&se=2030"
        assert request(server, f"hello?{query}")[0] == 200
        eventually(lambda: any(line["message"] == "request" for line in server.log))
        (line,) = [line for line in server.log if line["message"] == "request"]
        assert line["operation"] == "Stand In"
        assert line["account"] == "devstoreaccount1"
        assert line["service"] == "blob"
        assert line["status"] == 200
        assert line["path"] == "/devstoreaccount1/hello"
        assert line["query"] == "sv=2025-01-05&sig=...&sig=...&se=2030"
        assert line["process"] == "worker 1"
        assert len(str(line["request_id"])) == 36
        assert "c2VjcmV0" not in server.errors


def test_no_request_log_unless_configured() -> None:
    with stand_in("--workers", "1") as server:
        assert request(server, "hello")[0] == 200
        assert server.stop() == 0
        assert {line["message"] for line in server.log} == {"serving", "stopping", "stopped"}
