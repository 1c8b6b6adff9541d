"""A server that does nothing but answer, to find out how fast the load client itself can be."""

import os
import select
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from bench.load.site import Site

_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 1024\r\n\r\n" + bytes(1024)


@contextmanager
def responder() -> Iterator[Site]:
    """One process, and one more for every further pair of processors: the client needs the other half."""
    with socket.create_server(("127.0.0.1", 0), backlog=256) as server_socket:
        pids = [_fork(server_socket) for _ in range(max(1, (os.cpu_count() or 1) // 2))]
        try:
            yield Site("127.0.0.1", server_socket.getsockname()[1], "", "")
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def _fork(server_socket: socket.socket) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            _answer_for_ever(server_socket)
        finally:
            os._exit(1)
    return pid


def _answer_for_ever(server_socket: socket.socket) -> None:
    """Whatever arrives is taken for one whole request, which small requests of a waiting client are."""
    server_socket.setblocking(False)
    poller = select.epoll()
    poller.register(server_socket.fileno(), select.EPOLLIN)
    connections: dict[int, socket.socket] = {}
    while True:
        for number, _ in poller.poll():
            if number == server_socket.fileno():
                _accept(server_socket, poller, connections)
                continue
            connection = connections[number]
            if connection.recv(65536):
                connection.send(_ANSWER)
            else:
                poller.unregister(number)
                del connections[number]


def _accept(
    server_socket: socket.socket, poller: select.epoll, connections: dict[int, socket.socket]
) -> None:
    try:
        connection, _ = server_socket.accept()
    except BlockingIOError:
        return
    connection.setblocking(False)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connections[connection.fileno()] = connection
    poller.register(connection.fileno(), select.EPOLLIN)
