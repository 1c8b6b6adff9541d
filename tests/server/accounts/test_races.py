"""A command has returned: from then on every worker obeys it, also beside many requests in progress."""

import http.client
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from azure.storage.blob import AccountSasPermissions, ResourceTypes, generate_account_sas

from kyanite.server.management.client import call
from tests.server.accounts.running import blob_service
from tests.server_process import ServerProcess

WORKERS, CLIENTS, ROUNDS = 3, 9, 6


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess(
        "--workers", str(WORKERS), "--services", "blob", location=tmp_path / "store"
    ) as started:
        yield started


class Clients:
    """Connections that send one request after the other, and note when each began and whether it succeeded."""

    def __init__(self, server: ServerProcess, path: str, query: Callable[[], str]) -> None:
        self._address = urlsplit(server.endpoints["blob"]).netloc
        self._path = path
        self._query = query
        self._is_over = threading.Event()
        self.answers: list[tuple[float, str, int]] = []
        """When a request began, its query, and its status."""
        self._threads = [threading.Thread(target=self._run) for _ in range(CLIENTS)]

    def __enter__(self) -> "Clients":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join(60)

    def _run(self) -> None:
        while not self._is_over.is_set():
            with closing(http.client.HTTPConnection(self._address, timeout=30)) as connection:
                try:
                    while not self._is_over.is_set():
                        query = self._query()
                        began = time.monotonic()
                        connection.request("GET", f"{self._path}&{query}")
                        answer = connection.getresponse()
                        answer.read()
                        self.answers.append((began, query, answer.status))
                except (OSError, http.client.HTTPException):
                    continue  # Removing an account ends connections.

    def wait_for_more(self, count: int = 10 * CLIENTS) -> None:
        before = len(self.answers)
        deadline = time.monotonic() + 60
        while len(self.answers) < before + count:
            assert time.monotonic() < deadline
            time.sleep(0.005)


def token(account: str, key: str) -> str:
    return generate_account_sas(
        account,
        key,
        ResourceTypes(service=True, container=True, object=True),
        AccountSasPermissions(read=True, list=True, write=True, create=True),
        datetime.now(UTC) + timedelta(hours=1),
    )


def test_after_a_rotation_no_worker_accepts_the_old_key(server: ServerProcess) -> None:
    """Tokens that were verified with it, and are remembered, neither."""
    at = server.location
    key = call(at, "account add", name="alpha")["keys"][0]
    tokens = [token("alpha", key)]
    rotated_at: dict[str, float] = {}
    # Each client goes on with the old token for a while.
    with Clients(server, "/alpha?comp=list", lambda: tokens[-1]) as clients, ExitStack() as at_end:
        clients.wait_for_more()
        for _ in range(ROUNDS):
            old = tokens[-1]
            with_old = at_end.enter_context(Clients(server, "/alpha?comp=list", lambda old=old: old))  # type: ignore[misc]
            with_old.wait_for_more(CLIENTS)
            key = call(at, "account rotate-key", name="alpha", number=1)["keys"][0]
            rotated_at[old] = time.monotonic()
            tokens.append(token("alpha", key))
            with_old.wait_for_more(CLIENTS)
            with_old.__exit__()
            clients.answers += with_old.answers
        clients.wait_for_more()
    by_status = {status: 0 for _, _, status in clients.answers}
    for began, query, status in clients.answers:
        by_status[status] += 1
        if query in rotated_at and began > rotated_at[query]:
            assert status == 403
    assert by_status.keys() == {200, 403}
    assert all(status == 200 for _, query, status in clients.answers if query == tokens[-1])


def test_an_account_that_is_removed_and_made_again_is_new(server: ServerProcess) -> None:
    """Beside requests that make containers all the time: what they made belongs to the account that it was made in."""
    at = server.location
    key = call(at, "account add", name="alpha")["keys"][0]
    call(at, "account add", name="other")
    for _ in range(ROUNDS):
        makers = _Makers(server, key)
        with makers:
            makers.wait_for_more()
            call(at, "account remove", name="alpha", with_data=True)
            # The same key, so that the same requests would be accepted.
            call(at, "account add", name="alpha", keys=[key])
            added_at = time.monotonic()
            with blob_service(server, "alpha", key) as client:
                found = {each.name for each in client.list_containers()}
            makers.wait_for_more()
        before = {
            name for began, name, status in makers.made if status == 201 and began < makers.cut(added_at)
        }
        assert before
        assert not found & before


class _Makers:
    """Clients that create containers with new names."""

    def __init__(self, server: ServerProcess, key: str) -> None:
        self._address = urlsplit(server.endpoints["blob"]).netloc
        self._token = token("alpha", key)
        self._is_over = threading.Event()
        self.made: list[tuple[float, str, int]] = []
        self.refused: list[float] = []
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(CLIENTS)]

    def __enter__(self) -> None:
        for thread in self._threads:
            thread.start()

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join(60)

    def cut(self, added_at: float) -> float:
        """The first time at which a request was refused: what began before that was of the old account."""
        return min([*self.refused, added_at])

    def _run(self, number: int) -> None:
        count = 0
        while not self._is_over.is_set():
            with closing(http.client.HTTPConnection(self._address, timeout=30)) as connection:
                try:
                    while not self._is_over.is_set():
                        count += 1
                        name, began = f"c{number}-{count}-{time.monotonic_ns()}", time.monotonic()
                        path = f"/alpha/{name}?restype=container&{self._token}"
                        connection.request("PUT", path, headers={"Content-Length": "0"})
                        status = connection.getresponse()
                        status.read()
                        self.made.append((began, name, status.status))
                        if status.status == 403:
                            self.refused.append(began)
                except (OSError, http.client.HTTPException):
                    continue

    def wait_for_more(self) -> None:
        before, deadline = len(self.made), time.monotonic() + 60
        while len(self.made) < before + 5 * CLIENTS:
            assert time.monotonic() < deadline
            time.sleep(0.005)


def test_a_stopped_worker_does_not_keep_a_command_for_long(server: ServerProcess) -> None:
    """The supervisor replaces it, and its successor begins with the new key."""
    at = server.location
    call(at, "account add", name="alpha")
    pids = server.worker_pids()
    for pid in pids[1:]:  # The first carries out commands.
        os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    old = token("alpha", call(at, "account rotate-key", name="alpha", number=2)["keys"][1])
    call(at, "account rotate-key", name="alpha", number=2)
    assert time.monotonic() - began < 20
    assert server.worker_pids()[0] == pids[0]
    address = urlsplit(server.endpoints["blob"]).netloc
    for _ in range(5 * WORKERS):
        with closing(http.client.HTTPConnection(address, timeout=30)) as connection:
            connection.request("GET", f"/alpha?comp=list&{old}")
            assert connection.getresponse().status == 403
