"""What a hot operation may cost in system calls, counted by strace in the one worker of a real server.

They are not the same to the last one in every run, so these ceilings leave a call of room; and strace slows a server
down, so this belongs to ``make test-long``.
"""

import http.client
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest
from bench.load.site import account_sas

from tests.profiles import examples
from tests.server_process import ServerProcess

REQUESTS = 300
BODY = bytes(1024)

_BLOB = {"x-ms-blob-type": "BlockBlob"}
_JSON = {"Content-Type": "application/json", "Accept": "application/json;odata=nometadata"}
_NO_ECHO = {"Prefer": "return-no-content"}
_LEASE_ID = "11111111-2222-4333-8444-555555555555"
_MESSAGE = b"<QueueMessage><MessageText>a message</MessageText></QueueMessage>"

pytestmark = [
    pytest.mark.skipif(examples(1) == 1, reason="strace slows a server down: make test-long"),
    pytest.mark.timeout(600),
]


class Operation(NamedTuple):
    service: str
    method: str
    path: str
    """``{}`` is replaced by the number of the request."""
    headers: dict[str, str]
    body: bytes
    status: int
    ceiling: float
    """System calls of the worker for one request of a client that is alone."""


def _put(path: str, headers: dict[str, str], body: bytes, status: int, ceiling: float = 0) -> Operation:
    return Operation("blob", "PUT", path, headers, body, status, ceiling)


def _insert(row_key: str, ceiling: float = 0) -> Operation:
    body = b'{"PartitionKey":"p","RowKey":"%b","Value":1}' % row_key.encode()
    return Operation("table", "POST", "/things", _JSON | _NO_ECHO, body, 204, ceiling)


def _lease(action: str, status: int, ceiling: float = 0) -> Operation:
    headers = {"x-ms-lease-action": action, "x-ms-lease-duration": "60", "x-ms-lease-id": _LEASE_ID}
    return _put(
        "/box/leased?comp=lease", headers | {"x-ms-proposed-lease-id": _LEASE_ID}, b"", status, ceiling
    )


OPERATIONS = {
    "Get Blob, 1 KiB": Operation("blob", "GET", "/box/read", {}, b"", 200, 5),
    "Put Blob, 1 KiB": _put("/box/new-{}", _BLOB, BODY, 201, 34),
    "Lease Blob, renew": _lease("renew", 200, 34),
    "Put Message": Operation("queue", "POST", "/line/messages", {}, _MESSAGE, 201, 34),
    "Insert Entity": _insert("r{}", 32),
    "Query Entities, by keys": Operation(
        "table", "GET", "/things(PartitionKey='p',RowKey='one')", _JSON, b"", 200, 5
    ),
}
PREPARATION = (
    _put("/box?restype=container", {}, b"", 201),
    _put("/box/read", _BLOB, BODY, 201),
    _put("/box/leased", _BLOB, BODY, 201),
    _lease("acquire", 201),
    Operation("queue", "PUT", "/line", {}, b"", 201, 0),
    Operation("table", "POST", "/Tables", _JSON | _NO_ECHO, b'{"TableName":"things"}', 204, 0),
    _insert("one"),
)


class Client:
    """One connection to each service, with a token for everything."""

    def __init__(self, server: ServerProcess) -> None:
        self._token = account_sas()
        self._account = server.account
        self._connections = {
            service: http.client.HTTPConnection(urlsplit(server.endpoints[service]).netloc, timeout=60)
            for service in ("blob", "queue", "table")
        }

    def send(self, operation: Operation, number: int = 0) -> None:
        path = operation.path.replace("{}", str(number))
        target = f"/{self._account}{path}{'&' if '?' in path else '?'}{self._token}"
        body = operation.body.replace(b"{}", str(number).encode())
        connection = self._connections[operation.service]
        headers = {"x-ms-version": "2021-12-02", **operation.headers}
        connection.request(operation.method, target, body, headers)
        answer = connection.getresponse()
        text = answer.read()
        assert answer.status == operation.status, text

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()


@pytest.fixture(scope="module")
def counted() -> Iterator[tuple[ServerProcess, Client]]:
    with ServerProcess("--workers", "1", "--services", "blob,queue,table") as server:
        client = Client(server)
        for each in PREPARATION:
            client.send(each)
        yield server, client
        client.close()


@pytest.mark.parametrize("name", OPERATIONS)
def test_system_calls(name: str, counted: tuple[ServerProcess, Client], tmp_path: Path) -> None:
    server, client = counted
    operation = OPERATIONS[name]
    for number in range(100):
        client.send(operation, number)

    def work() -> None:
        for number in range(100, 100 + REQUESTS):
            client.send(operation, number)

    (pid,) = server.worker_pids()
    calls = system_calls(pid, work, tmp_path / "calls")
    for call, count in sorted(calls.items(), key=lambda item: -item[1]):
        if count >= REQUESTS / 50:
            print(f"{count / REQUESTS:6.2f} {call}")
    assert sum(calls.values()) / REQUESTS <= operation.ceiling


def system_calls(pid: int, work: Callable[[], None], report: Path) -> dict[str, int]:
    """How often the process makes each system call while the work is done."""
    command = ["strace", "--follow-forks", "--summary-only", "--output", str(report), "--attach", str(pid)]
    tracer = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert tracer.stderr is not None
    assert "attached" in tracer.stderr.readline()
    time.sleep(0.5)  # All threads have to be attached.
    try:
        work()
    finally:
        tracer.send_signal(signal.SIGINT)
        tracer.communicate(timeout=60)
    rows = re.findall(r"^ *[\d.]+ +[\d.]+ +\d+ +(\d+) +(?:\d+ +)?(\w+)$", report.read_text(), re.MULTILINE)
    return {call: int(count) for count, call in rows if call != "total"}
