"""Clients that are broken, slow or hostile, on plain sockets against the real server: they get a clear answer or none,
nothing of theirs stays, and no other client is affected.
"""

import random
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.faults.client import files_of, open_files, token_of, worker_of
from tests.server_process import ServerProcess, eventually

KIB = 1024
MIB = KIB * KIB
BYTES = random.Random(8).randbytes(20 * MIB)
SIZES = {"inline": 10 * KIB, "packed": 500 * KIB, "gathered": 3 * MIB, "streamed": 20 * MIB}
SPACE_AHEAD = 2 * 17 * MIB
"""What two workers may take on the disk although nothing is stored: space ahead of what they pack next."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess("--workers", "2", location=tmp_path_factory.mktemp("store")) as started:
        yield started
        assert len(started.worker_pids()) == 2
        assert not [line for line in started.log if line["level"] == "error"]


class Wire:
    """One socket to the server, with the container ``box`` at hand."""

    def __init__(self, server: ServerProcess) -> None:
        parts = urlsplit(server.endpoints["blob"])
        assert parts.hostname is not None
        self._root, self._token = parts.path, token_of(server)
        self.socket = socket.create_connection((parts.hostname, parts.port or 0), timeout=30)
        self._kept = b""

    def close(self, *, rudely: bool = False) -> None:
        if rudely:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def target(self, path: str, query: str = "") -> str:
        return f"{self._root}/{path}?{query}{'&' if query else ''}{self._token}"

    def head(self, method: str, path: str, *lines: str, query: str = "") -> bytes:
        first = f"{method} {self.target(path, query)} HTTP/1.1"
        return "\r\n".join((first, "Host: localhost", *lines, "", "")).encode("latin-1")

    def put(self, name: str, length: int, *lines: str) -> bytes:
        return self.head(
            "PUT", f"box/{name}", "x-ms-blob-type: BlockBlob", f"Content-Length: {length}", *lines
        )

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def answer(self) -> tuple[int, dict[str, str], bytes]:
        """The next answer: status, headers by lower-case name, body."""
        while b"\r\n\r\n" not in self._kept:
            self._kept += self._receive()
        raw, _, self._kept = self._kept.partition(b"\r\n\r\n")
        first, *lines = raw.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        length = int(headers.get("content-length", "0"))
        while len(self._kept) < length:
            self._kept += self._receive()
        body, self._kept = self._kept[:length], self._kept[length:]
        return int(first.split()[1]), headers, body

    def request(self, method: str, path: str, query: str = "") -> tuple[int, bytes]:
        self.send(self.head(method, path, "Content-Length: 0", query=query))
        status, _, body = self.answer()
        return status, body

    def ends(self) -> bool:
        """Whether the server ends the connection, whatever it still says before."""
        try:
            while self.socket.recv(65536):
                pass
        except ConnectionError:
            return True
        return True

    def _receive(self) -> bytes:
        data = self.socket.recv(65536)
        if not data:
            raise ConnectionAbortedError("the server ended the connection")
        return data


def wire(server: ServerProcess) -> closing[Wire]:
    return closing(Wire(server))


@pytest.fixture
def good(server: ServerProcess) -> Iterator[Wire]:
    """A client that behaves, with an empty container ``box``. It is served as before when the test is over."""
    with wire(server) as client:
        client.request("DELETE", "box", "restype=container")
        assert client.request("PUT", "box", "restype=container")[0] == 201
        yield client
        assert client.request("GET", "box", "restype=container")[0] == 200


def listed(client: Wire) -> list[bytes]:
    status, body = client.request("GET", "box", "restype=container&comp=list")
    assert status == 200
    return [piece.partition(b"</Name>")[0] for piece in body.split(b"<Name>")[1:]]


def descriptors(server: ServerProcess) -> int:
    """How many connections and files of content the workers have open."""
    opened = [file for pid in server.worker_pids() for file in open_files(pid)]
    return sum(file.startswith("socket:") or "/segments/" in file for file in opened)


def occupied_bytes(server: ServerProcess) -> int:
    """The bytes that content takes on the disk."""
    return sum(files_of(server.location).values())


# Uploads that do not end as they should


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("rudely", [False, True], ids=["closed", "reset"])
def test_an_upload_that_is_broken_off_leaves_nothing(
    server: ServerProcess, good: Wire, size: str, rudely: bool
) -> None:
    length = SIZES[size]
    before = descriptors(server)
    times = 1 + 60 * MIB // (2 * length) if length > MIB else 1
    for sent in (None, 0, 1, length // 2, *(length - 1 for _ in range(times))):
        client = Wire(server)
        head = client.put("half", length)
        client.send(head[: len(head) // 2] if sent is None else head + BYTES[:sent])
        time.sleep(0.02)
        client.close(rudely=rudely)
    # Each worker may have opened the file that it packs small bodies into.
    eventually(lambda: descriptors(server) <= before + 2)
    assert listed(good) == []
    eventually(lambda: occupied_bytes(server) <= SPACE_AHEAD)


@pytest.mark.parametrize("size", SIZES)
def test_a_body_that_ends_early_is_not_stored(server: ServerProcess, good: Wire, size: str) -> None:
    length = SIZES[size]
    with wire(server) as client:
        client.send(client.put("short", length) + BYTES[: length - 1])
        client.socket.shutdown(socket.SHUT_WR)
        with suppress(ConnectionError):
            assert client.answer()[0] in {400, 408}
        assert client.ends()
    assert listed(good) == []
    eventually(lambda: occupied_bytes(server) <= SPACE_AHEAD)


@pytest.mark.parametrize("size", SIZES)
def test_a_body_that_is_too_long_is_cut_where_it_should_end(
    server: ServerProcess, good: Wire, size: str
) -> None:
    """What follows is the next request, and as such it is nonsense."""
    length = SIZES[size]
    with wire(server) as client:
        client.send(client.put("exact", length) + BYTES[:length] + b"\0\0 and more than was announced")
        assert client.answer()[0] == 201
        assert client.answer()[0] == 400
        assert client.ends()
    status, body = good.request("GET", "box/exact")
    assert (status, body) == (200, BYTES[:length])


@pytest.mark.parametrize(
    ("lines", "statuses"),
    [
        (["Content-Length: -1"], {400}),
        (["Content-Length: ten"], {400}),
        (["Content-Length: 5", "Content-Length: 6"], {400}),
        (["Content-Length: 5, 6"], {400}),
        (["Content-Length: 99999999999999999999999"], {400, 413}),
        (["Content-Length: 5", "Transfer-Encoding: chunked"], {400}),
        (["Transfer-Encoding: gzip"], {400, 501}),
        (["Transfer-Encoding: chunked, identity"], {400, 501}),
    ],
    ids=str,
)
def test_lengths_that_are_none_end_the_connection(
    server: ServerProcess, good: Wire, lines: list[str], statuses: set[int]
) -> None:
    with wire(server) as client:
        client.send(client.head("PUT", "box/blob", "x-ms-blob-type: BlockBlob", *lines) + b"12345")
        assert client.answer()[0] in statuses
        assert client.ends()
    assert listed(good) == []


def test_a_body_beyond_the_limit_is_refused_before_it_comes(server: ServerProcess, good: Wire) -> None:
    with wire(server) as client:
        client.send(client.put("huge", 5000 * MIB + 1))
        status, headers, body = client.answer()
        assert (status, headers["x-ms-error-code"]) == (413, "RequestBodyTooLarge")
        assert b"<MaxLimit>5242880000</MaxLimit>" in body
    assert listed(good) == []


@pytest.mark.parametrize("lines", [["Transfer-Encoding: chunked"], []], ids=["chunked", "silent"])
def test_a_put_blob_must_say_how_long_it_is(server: ServerProcess, good: Wire, lines: list[str]) -> None:
    with wire(server) as client:
        body = b"5\r\nhello\r\n0\r\n\r\n" if lines else b""
        client.send(client.head("PUT", "box/blob", "x-ms-blob-type: BlockBlob", *lines) + body)
        status, headers, _ = client.answer()
        assert (status, headers["x-ms-error-code"]) == (411, "MissingContentLengthHeader")
    assert listed(good) == []


# 100-continue


def test_a_body_is_requested_only_when_it_is_wanted(server: ServerProcess, good: Wire) -> None:
    with wire(server) as client:
        client.send(client.put("wanted", 10, "Expect: 100-continue"))
        assert client.answer()[0] == 100
        client.send(b"0123456789")
        assert client.answer()[0] == 201
    assert good.request("GET", "box/wanted") == (200, b"0123456789")


@pytest.mark.parametrize("length", [10, 20 * MIB])
def test_a_body_that_is_not_wanted_is_refused_before_it_is_sent(
    server: ServerProcess, good: Wire, length: int
) -> None:
    with wire(server) as client:
        put = client.put("unwanted", length, "Expect: 100-continue")
        client.send(put.replace(b"sp=racwdl", b"sp=racwdlx"))
        status, headers, _ = client.answer()
        assert (status, headers["x-ms-error-code"]) == (403, "AuthenticationFailed")
    with wire(server) as client:
        client.send(client.put("unwanted", length, "Expect: 100-continue", "x-ms-access-tier: Lukewarm"))
        assert client.answer()[0] == 400
    assert listed(good) == []


# Several requests at once


def test_pipelined_requests_are_answered_in_order(server: ServerProcess, good: Wire) -> None:
    with wire(server) as client:
        requests = b""
        for number in range(50):
            requests += client.put(f"{number:02}", 3) + b"%03d" % number
            requests += client.head("GET", f"box/{number:02}", "Content-Length: 0")
        client.send(requests)
        for number in range(50):
            assert client.answer()[0] == 201
            status, _, body = client.answer()
            assert (status, body) == (200, b"%03d" % number)
    assert len(listed(good)) == 50


def test_a_client_that_never_reads_does_not_make_the_server_keep_its_answers(
    server: ServerProcess, good: Wire
) -> None:
    good.send(good.put("large", 3 * MIB) + BYTES[: 3 * MIB])
    assert good.answer()[0] == 201
    before = _resident_mib(server)
    with ExitStack() as at_end:
        for _ in range(20):
            client = at_end.enter_context(wire(server))
            client.send(client.head("GET", "box/large", "Content-Length: 0") * 20)
        time.sleep(0.5)
        assert good.request("GET", "box/large") == (200, BYTES[: 3 * MIB])
        growth = _resident_mib(server) - before
    print(f"400 answers of 3 MiB that are not read cost {growth:.0f} MiB")
    assert growth < 60


def test_many_slow_uploads_do_not_fill_the_memory(server: ServerProcess, good: Wire) -> None:
    before = _resident_mib(server)
    with ExitStack() as at_end:
        for number in range(100):
            client = at_end.enter_context(wire(server))
            client.send(client.put(f"slow {number}".replace(" ", "-"), 4 * MIB) + BYTES[: 4 * MIB - 1])
        assert listed(good) == []
        growth = _resident_mib(server) - before
    print(f"100 uploads of 4 MiB that lack a byte cost {growth:.0f} MiB")
    assert growth < 250
    eventually(lambda: occupied_bytes(server) <= SPACE_AHEAD)


def _resident_mib(server: ServerProcess) -> float:
    total = 0
    for pid in server.worker_pids():
        status = Path(f"/proc/{pid}/status").read_text()
        total += next(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon"))
    return total / KIB


# Downloads that are broken off


def test_downloads_that_are_broken_off_hold_nothing(server: ServerProcess, good: Wire) -> None:
    good.send(good.put("large", len(BYTES)) + BYTES)
    assert good.answer()[0] == 201
    assert good.request("GET", "box/large")[0] == 200
    before = descriptors(server)
    for number in range(30):
        client = Wire(server)
        client.send(client.head("GET", "box/large", "Content-Length: 0"))
        client.socket.recv(100 * (number % 3))
        client.close(rudely=number % 2 == 0)
    eventually(lambda: descriptors(server) <= before + 1)
    assert good.request("DELETE", "box/large")[0] == 202
    eventually(lambda: occupied_bytes(server) <= SPACE_AHEAD)


# Heads


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(300),
        b"\0" * 100,
        b"hello\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET / HTTP/1.1\r\nbad name: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nx: a\0b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n",
        b"GET http://[ HTTP/1.1\r\nHost: a\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        random.Random(9).randbytes(5000),
    ],
    ids=lambda garbage: repr(garbage[:16]),
)
def test_garbage_is_no_request(server: ServerProcess, good: Wire, garbage: bytes) -> None:
    with wire(server) as client:
        with suppress(ConnectionError):
            client.send(garbage)
            client.socket.shutdown(socket.SHUT_WR)
            assert 400 <= client.answer()[0] < 506
        assert client.ends()


@pytest.mark.parametrize("part", ["target", "header", "headers"])
def test_a_head_that_is_too_large_is_refused(server: ServerProcess, good: Wire, part: str) -> None:
    with wire(server) as client:
        head = {
            "target": client.head("GET", "box/" + "a" * 200_000),
            "header": client.head("GET", "box/blob", "x-large: " + "a" * 200_000),
            "headers": client.head("GET", "box/blob", *(f"x-{number}: {number}" for number in range(20_000))),
        }[part]
        with suppress(ConnectionError):
            client.send(head)
        assert client.answer()[0] in {400, 413, 414, 431}
        assert client.ends()


def test_an_endless_head_costs_no_memory(server: ServerProcess, good: Wire) -> None:
    before = _resident_mib(server)
    with wire(server) as client:
        client.send(b"GET / HTTP/1.1\r\n")
        with suppress(ConnectionError):
            for number in range(2000):
                client.send(b"x-%d: " % number + b"a" * 10_000 + b"\r\n")
        assert client.ends()
    assert _resident_mib(server) - before < 20


def test_slow_clients_do_not_delay_others(server: ServerProcess, good: Wire) -> None:
    with ExitStack() as at_end:
        dawdlers = [at_end.enter_context(wire(server)) for _ in range(300)]
        for dawdler in dawdlers:
            dawdler.send(b"GET / HT")
        for number in range(20):
            with wire(server) as client:
                client.send(client.put(f"{number}", 3) + b"abc")
                assert client.answer()[0] == 201
            for dawdler in dawdlers[:50]:
                dawdler.send(b"x")
        assert len({worker_of(server, dawdler.socket) for dawdler in dawdlers[:20]}) == 2
    assert len(listed(good)) == 20
