"""The ways in for management commands: the socket in the store's folder, and the admin port."""

import http.client
import json
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from kyanite.server.failures import Failure
from kyanite.server.management import unix_socket
from kyanite.server.management.client import call
from kyanite.server.management.command_server import CONNECTIONS_MAX
from tests.server_process import ServerProcess, eventually


def kyanite(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line."""
    return subprocess.run(
        [sys.executable, "-m", "kyanite.server.cli", *arguments], capture_output=True, text=True, check=False
    )


def send(
    server: ServerProcess, path: str, token: str | None, body: bytes = b"", method: str = "POST"
) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(urlsplit(server.endpoints["admin"]).netloc, timeout=30)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, json.loads(text)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    # Longer than the address of a socket may be.
    location = tmp_path_factory.mktemp("management") / ("long" * 30)
    with ServerProcess("--workers", "2", "--admin-port", "0", location=location) as started:
        yield started


def token_of(server: ServerProcess) -> str:
    return (server.location / "admin.token").read_text().strip()


def test_only_the_user_of_the_server_gets_in(server: ServerProcess) -> None:
    for name in (unix_socket.NAME, "admin.token"):
        assert stat.S_IMODE((server.location / name).stat().st_mode) == 0o600


def test_the_command_line(server: ServerProcess) -> None:
    ended = kyanite("account", "list", "--location", str(server.location), "--json")
    assert ended.returncode == 0, ended.stderr
    (only,) = json.loads(ended.stdout)
    assert only["name"] == "devstoreaccount1"
    assert server.account_key not in ended.stdout
    ended = kyanite("account", "list", "--location", str(server.location))
    assert ended.stdout == "devstoreaccount1  1 key\n"


def test_a_folder_without_a_server(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        ended = kyanite("account", "list", "--location", str(folder))
        assert ended.returncode == 1
        assert ended.stderr == f"kyanite: No server is running on {folder}, so it can take no command.\n"


@pytest.mark.parametrize(
    "sent", [b"", b"\n", b"{}\n", b"[]\n", b'{"command": 1}\n', b"x" * 3_000_000 + b"\n", b'{"command": "']
)
def test_what_cannot_be_read_is_refused(server: ServerProcess, sent: bytes) -> None:
    with unix_socket.connect(server.location) as connection:
        connection.settimeout(30)
        try:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
        except BrokenPipeError:
            pass
        try:
            assert b"cannot be read" in connection.recv(1000)
        except ConnectionResetError:
            assert len(sent) > 1_000_000
    assert call(server.location, "account list")


def test_many_clients_wait_for_one_another(server: ServerProcess) -> None:
    """Those that send nothing are ended after a while; here they leave."""
    silent = [unix_socket.connect(server.location) for _ in range(CONNECTIONS_MAX)]
    try:
        with unix_socket.connect(server.location) as late:
            late.sendall(b'{"command": "account list"}\n')
            late.settimeout(0.3)
            with pytest.raises(TimeoutError):
                late.recv(1)
            silent.pop().close()
            late.settimeout(30)
            assert late.recv(1) == b"{"
    finally:
        for connection in silent:
            connection.close()


def test_an_unknown_command(server: ServerProcess) -> None:
    with pytest.raises(Failure) as failed:
        call(server.location, "account fly")
    assert failed.value.sentence == "The server has no command 'account fly'."
    assert failed.value.exit_code == 2


def test_commands_over_http(server: ServerProcess) -> None:
    status, result = send(server, "/commands/account/list", token_of(server))
    assert status == 200
    assert result == call(server.location, "account list")


@pytest.mark.parametrize("token", [None, "", "wrong", "0" * 64, "é"])
def test_http_needs_the_token(server: ServerProcess, token: str | None) -> None:
    for path in ("/commands/account/list", "/commands/no/such"):
        status, answer = send(server, path, token)
        assert (status, answer) == (401, {"error": "The token of the admin port is needed."})


@pytest.mark.parametrize(
    ("path", "body", "method", "status"),
    [
        ("/commands/no/such", b"", "POST", 400),
        ("/commands/account/list", b'{"x": 1}', "POST", 400),
        ("/commands/account/list", b"[1]", "POST", 400),
        ("/commands/account/list", b"{", "POST", 400),
        ("/commands/account/list", b"", "GET", 405),
        ("/commands/account/list", b" " * 600_000, "POST", 413),
    ],
)
def test_bad_requests_over_http(
    server: ServerProcess, path: str, body: bytes, method: str, status: int
) -> None:
    assert send(server, path, token_of(server), body, method)[0] == status


def test_health_needs_no_token(server: ServerProcess) -> None:
    connection = http.client.HTTPConnection(urlsplit(server.endpoints["admin"]).netloc, timeout=30)
    connection.request("GET", "/healthz")
    assert connection.getresponse().status == 200
    connection.close()


def test_the_door_survives_its_worker(tmp_path: Path) -> None:
    with ServerProcess("--workers", "2", location=tmp_path) as server:
        assert call(tmp_path, "account list")
        os.kill(server.worker_pids()[0], signal.SIGKILL)
        eventually(lambda: _answers(tmp_path))
        assert server.stop() == 0
        assert not (tmp_path / unix_socket.NAME).exists()
        server.start()
        server.kill9()
        assert (tmp_path / unix_socket.NAME).exists()
        eventually(lambda: not _answers(tmp_path))
        with pytest.raises(Failure, match="No server is running"):
            call(tmp_path, "account list")
        server.start()
        assert call(tmp_path, "account list")


def _answers(location: Path) -> bool:
    try:
        return bool(call(location, "account list"))
    except Failure:
        return False


def test_a_server_in_memory_says_where_its_socket_is() -> None:
    with ServerProcess("--in-memory") as server:
        eventually(lambda: any("management" in line for line in server.log))
        (path,) = [line["management"] for line in server.log if "management" in line]
        assert [each["name"] for each in call(Path(str(path)).parent, "account list")] == ["devstoreaccount1"]
