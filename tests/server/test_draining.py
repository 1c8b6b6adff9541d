"""A server that is told to stop: first it is not ready, then it closes."""

import http.client
import signal
import time
from collections.abc import Callable
from urllib.parse import urlsplit

from tests.server_process import ServerProcess

PATIENCE_SECONDS = 30.0


def get(url: str, path: str) -> tuple[int, str | None]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        response.read()
        return response.status, response.getheader("Connection")
    finally:
        connection.close()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_server_is_not_ready_before_it_closes() -> None:
    with ServerProcess("--admin-port", "0", "--workers", "2", "--drain-seconds", "600") as server:
        blob, admin = server.endpoints["blob"], server.endpoints["admin"]
        until(lambda: get(admin, "/readyz")[0] == 200)
        assert get(blob, "/devstoreaccount1/public/blob") == (404, None)
        kept = http.client.HTTPConnection(urlsplit(blob).hostname or "", urlsplit(blob).port, timeout=10)
        kept.connect()
        server.signal(signal.SIGTERM)
        until(lambda: get(admin, "/readyz")[0] == 503)
        assert get(admin, "/healthz")[0] == 200
        # It serves on, and tells its clients to go.
        until(lambda: get(blob, "/devstoreaccount1/public/blob") == (404, "close"))
        # A connection without a request is closed.
        assert kept.sock.recv(1) == b""
        kept.close()
        # Another signal ends the wait.
        server.signal(signal.SIGTERM)
        assert server.wait() == 0


def test_a_drained_server_stops_by_itself() -> None:
    with ServerProcess("--admin-port", "0", "--workers", "1", "--drain-seconds", "0.5") as server:
        server.signal(signal.SIGTERM)
        assert server.wait() == 0
        assert [line["message"] for line in server.log][-3:] == ["draining", "stopping", "stopped"]
