"""One client connection: it sends a request, waits for the whole answer, and only then sends the next.

What to send comes from a generator, the lane's *work*: it yields a ``Request`` and is given the answer. So a row
that needs an ETag or a pop receipt from one answer for its next request reads as plain straight code.
"""

import socket
from array import array
from collections.abc import Generator
from time import perf_counter
from typing import NamedTuple

from bench.load.answers import CHUNKED, INCOMPLETE, Chunks, length_of

RECEIVE_BYTES = 256 * 1024
_DISCARD = bytearray(4 * 1024 * 1024)
"""Never read and never written: with MSG_TRUNC the kernel drops the bytes instead of copying them here."""


class Body(NamedTuple):
    """A request body too big to be glued to its head: the same piece, some number of times."""

    piece: memoryview
    times: int


class Request(NamedTuple):
    """A request and how its answer must begin. ``data`` is head and body, unless ``body`` follows it."""

    data: bytes
    expected: bytes
    body: Body | None = None


Work = Generator[Request, bytes, None]
"""Is sent each answer: all of it if it came in one piece, else its head and the beginning of its body."""


def expecting(status: int) -> bytes:
    """How an answer with this status begins."""
    return b"HTTP/1.1 %d " % status


class Lane:
    """The state of one connection. ``outgoing`` is what the socket would not yet take."""

    __slots__ = (
        "_chunks",
        "_work",
        "answered",
        "answered_at",
        "began_at",
        "due",
        "errors",
        "latencies",
        "missing",
        "outgoing",
        "socket",
        "start",
    )

    def __init__(self, host: str, port: int, work: Work) -> None:
        self._work = work
        self.socket = socket.create_connection((host, port), timeout=10)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.outgoing: list[memoryview] = []
        self.answered = 0
        self.errors: list[str] = []
        self.latencies = array("d")
        self.missing = 0
        self.start = b""
        self._chunks: Chunks | None = None
        self.due = next(work)
        self.began_at = 0.0
        self.answered_at = 0.0

    def begin(self) -> None:
        """Send the request that is due, as far as the socket takes it."""
        self.began_at = perf_counter()
        data, _, body = self.due
        if body is None:
            sent = self.socket.send(data)
            if sent < len(data):
                self.outgoing = [memoryview(data)[sent:]]
        else:
            self.outgoing = [memoryview(data), *[body.piece] * body.times]
            self.push()

    def push(self) -> None:
        """Send on; what is left in ``outgoing`` afterwards waits until the socket can take more."""
        pieces = self.outgoing
        try:
            while pieces:
                sent = self.socket.sendmsg(pieces[:4])
                while pieces and sent >= len(pieces[0]):
                    sent -= len(pieces[0])
                    del pieces[0]
                if sent:
                    pieces[0] = pieces[0][sent:]
        except BlockingIOError:
            return

    def receive(self) -> bool:
        """Read what has arrived; True when that completes the answer."""
        if self.missing > 0:
            self.missing -= self._drop()
            return self.missing == 0
        data = self.socket.recv(RECEIVE_BYTES)
        if not data:
            raise ConnectionError("the server closed the connection")
        if self._chunks is not None:
            return self._chunks.feed(data)
        if self.start:
            data = self.start + data
        self.start = data
        length = length_of(data)
        if length == len(data):
            return True
        if length == INCOMPLETE:
            return False
        if length == CHUNKED:
            self._chunks = Chunks()
            return self._chunks.feed(data[data.index(b"\r\n\r\n") + 4 :])
        self.missing = length - len(data)
        if self.missing < 0:
            raise ConnectionError("the server sent more than it announced")
        return False

    def finish(self) -> bool:
        """Keep the answer and get the next request of the work; False when the work is over or has failed."""
        self.answered_at = perf_counter()
        self.latencies.append(self.answered_at - self.began_at)
        answer, self.start, self._chunks = self.start, b"", None
        self.answered += 1
        if not self.is_expected(answer):
            self.errors.append(_described(answer))
            return False
        try:
            self.due = self._work.send(answer)
        except StopIteration:
            return False
        return True

    def is_expected(self, answer: bytes) -> bool:
        return answer.startswith(self.due.expected)

    def _drop(self) -> int:
        dropped = self.socket.recv_into(_DISCARD, min(self.missing, len(_DISCARD)), socket.MSG_TRUNC)
        if dropped == 0:
            raise ConnectionError("the server closed the connection in the middle of an answer")
        return dropped


def _described(answer: bytes) -> str:
    """The status line of an unexpected answer, and the beginning of its body."""
    head, _, body = answer.partition(b"\r\n\r\n")
    return (head.split(b"\r\n")[0] + b" " + body[:300]).decode("latin-1")
