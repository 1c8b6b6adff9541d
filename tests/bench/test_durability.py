"""The gauge of what a kill costs, on a server that forgets every second blob."""

import re
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest
from bench.load.site import Site
from bench.servers.peers import Server

from bench import durability


class Forgetful(Server):
    """Acknowledges every put. When it is killed its connections end, and every second blob is gone."""

    name = "forgetful"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._names: list[str] = []
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._is_killed = False

    def start(self) -> float:
        if not self.sites:
            self._server_socket = socket.create_server(("127.0.0.1", 0))
            self.sites = {"blob": Site("127.0.0.1", self._server_socket.getsockname()[1], "", "")}
            threading.Thread(target=self._accept, daemon=True).start()
        return 0.0

    def kill(self) -> None:
        with self._lock:
            self._is_killed = True
            for connection in self._connections:
                connection.shutdown(socket.SHUT_RDWR)
            self._names = self._names[::2]

    def stop(self) -> None:
        self._server_socket.close()

    def _launch(self) -> Mapping[str, Site]:
        return self.sites

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._server_socket.accept()
            except OSError:
                return
            threading.Thread(target=self._converse, args=(connection,), daemon=True).start()

    def _converse(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            while data := connection.recv(65536):
                with self._lock:
                    if self._is_killed and data.startswith(b"PUT"):
                        return
                    connection.sendall(self._answer(connection, data))

    def _answer(self, connection: socket.socket, data: bytes) -> bytes:
        found = re.match(rb"PUT /killed/(\S+) ", data)
        if found:
            self._connections.add(connection)
            self._names.append(found[1].decode())
        if data.startswith(b"PUT"):
            return b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"
        return self._page(b"marker=1" in data)

    def _page(self, second: bool) -> bytes:
        """Half of the names, in two pages."""
        half = len(self._names) // 2
        names = self._names[half:] if second else self._names[:half]
        body = "".join(f"<Blob><Name>{name}</Name></Blob>" for name in names)
        body += "<NextMarker/>" if second else "<NextMarker>1</NextMarker>"
        return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body.encode())


def test_what_is_acknowledged_and_not_listed_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durability, "SECONDS", 0.1)
    server = Forgetful(tmp_path / "store")
    try:
        percent, words = durability.lost_percent(server)
    finally:
        server.stop()
    assert percent == pytest.approx(50, abs=5)
    assert re.fullmatch(r"forgetful: [\d,]+ of [\d,]+ acknowledged puts were lost", words)
