"""Many connections of one process that dawdle: they send a little now and then, and read nothing."""

import os
import signal
import socket
from collections.abc import Callable, Sequence
from time import sleep
from typing import NamedTuple

from bench.load.site import Site

POKE_SECONDS = 0.2


class Member(NamedTuple):
    """One connection. ``poke`` is sent every now and then."""

    socket: socket.socket
    poke: bytes = b""


Gather = Callable[[], Sequence[Member]]


class Crowd:
    """A forked process with its connections."""

    def __init__(self, gather: Gather) -> None:
        ready, is_ready = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(ready)
            try:
                _dawdle(gather(), is_ready)
            finally:
                os._exit(1)
        os.close(is_ready)
        with os.fdopen(ready, "rb") as answer:
            if not answer.read(1):
                self.end()
                raise RuntimeError("a crowd could not connect")

    def end(self) -> None:
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)


def _dawdle(members: Sequence[Member], is_ready: int) -> None:
    for member in members:
        member.socket.setblocking(False)
    os.write(is_ready, b"1")
    while True:
        sleep(POKE_SECONDS)
        for member in members:
            if member.poke:
                send_some(member.socket, member.poke)


def send_some(connected: socket.socket, data: bytes) -> None:
    """As much as the server takes now, if it is still there."""
    try:
        connected.send(data)
    except OSError:
        return


def connected_to(site: Site) -> socket.socket:
    made = socket.create_connection((site.host, site.port), timeout=60)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made
