"""A way through to a server that a test can cut: connections are refused, and those that are there are broken, until
it is restored."""

import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self


class TcpProxy:
    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._socket = self._open_socket(0)
        self.port: int = self._socket.getsockname()[1]
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._serve()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cut()

    def cut(self) -> None:
        _end(self._socket)
        with self._lock:
            for each in self._open:
                _end(each)
            self._open.clear()

    def restore(self) -> None:
        self._socket = self._open_socket(self.port)
        self._serve()

    def _open_socket(self, port: int) -> socket.socket:
        accepting = socket.socket()
        accepting.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        accepting.bind(("127.0.0.1", port))
        accepting.listen(128)
        return accepting

    def _serve(self) -> None:
        threading.Thread(target=self._accept, args=(self._socket,), daemon=True).start()

    def _accept(self, accepting: socket.socket) -> None:
        while True:
            try:
                client, _ = accepting.accept()
                server = socket.create_connection(self._target)
            except OSError:
                return
            with self._lock:
                self._open |= {client, server}
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=_forward, args=(source, target), daemon=True).start()


def _forward(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    _end(source)
    _end(target)


def _end(each: socket.socket) -> None:
    with suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()
