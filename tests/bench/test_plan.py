"""Plans: what each lane sends, by raw sockets and, where it is installed, by wrk."""

import shutil
import socket
import threading
from collections.abc import Iterator

import pytest
from bench.load import wrk
from bench.load.lane import Request, expecting
from bench.load.plan import CLIENT_REQUEST_ID, Kept, Plan, Step, fixed
from bench.load.site import Site

ANSWER = b"HTTP/1.1 201 Created\r\nX-MS-Client-Request-ID: 00\r\nETag: tag\r\nContent-Length: 12\r\n\r\n<I>a/b=</I>!"
NO_BODY = b"HTTP/1.1 %b\r\nx-ms-client-request-id: %b\r\netag: tag-%d\r\nContent-Length: 0\r\n\r\n"
needs_wrk = pytest.mark.skipif(shutil.which("wrk") is None, reason="wrk is not installed")


def test_a_lane_fills_in_what_answers_had() -> None:
    put = Step.of(
        b"put @lane@-@number@", 201, Kept("etag", header="etag"), Kept("id", element="I", quoted=True)
    )
    plan = Plan([put, Step.of(b"get @etag@ @id@ ", 200, body=b"@etag@")], first=[Step.of(b"first", 201)])
    work = plan.lane_work()(7)
    assert next(work) == Request(b"first", expecting(201))
    sent = [work.send(ANSWER).data for _ in range(4)]
    assert sent == [
        b"put 07-00000000",
        b"get tag a%2Fb%3D @etag@",
        b"put 07-00000001",
        b"get tag a%2Fb%3D @etag@",
    ]


def test_lanes_begin_elsewhere_where_the_order_does_not_matter() -> None:
    requests = [Request(b"%d" % number, expecting(200)) for number in range(50)]
    works = [fixed(requests).lane_work()(lane) for lane in (0, 1)]
    assert [next(work).data for work in works] == [b"0", b"37"]


def test_the_plan_of_wrk_has_every_byte() -> None:
    text = Plan(
        [Step.of(b'a"\\\r\n@lane@', 201, Kept("etag", header="ETag"), body=bytes(range(256)))]
    ).as_lua()
    assert text.isascii()
    assert 'pieces={"a\\034\\092\\013\\010","lane","\\000\\001' in text
    assert 'kept={{name="etag", header="etag", element="", quoted=false}}' in text


@pytest.mark.parametrize(
    ("figures", "failure", "errors"),
    [
        ("300 2000000 0 0 0 0 0", "", []),
        ("300 2000000 1 0 0 5 0", "", ["1 connections failed", "5 answers had an error status"]),
        ("300 2000000 0 0 0 0 0", "answered with 412", ["answered with 412"]),
    ],
)
def test_what_wrk_prints(figures: str, failure: str, errors: list[str]) -> None:
    latencies = " ".join(str(1000 * number) for number in range(1, 100, 7))
    text = f"Running\nfigures {figures}\nlatencies {latencies}\nfailure {failure}\n"
    tally = wrk.parsed(text, 0.5, 3)
    assert (tally.operations, tally.rate, tally.errors, tally.client) == (100, 50, errors, "wrk")
    assert (tally.percentile_ms(0.5), tally.percentile_ms(0.99)) == (50, 99)


def test_wrk_that_did_not_finish_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="unable to connect"):
        wrk.parsed("unable to connect", 0.0, 1)


class Chained:
    """A server of chains: a request must name the tag that the last answer of its lane had."""

    def __init__(self) -> None:
        self.answered: dict[bytes, int] = {}
        self.wrong = 0

    def answer(self, request: bytes) -> bytes:
        lane, tag = request.split(b" ")[1].split(b"/")[1:]
        last = self.answered.get(lane, 0)
        if tag != (b"tag-%d" % last if last else b"first"):
            self.wrong += 1
            return NO_BODY % (b"412 Precondition Failed", lane, last)
        self.answered[lane] = last + 1
        return NO_BODY % (b"201 Created", lane, last + 1)


@pytest.fixture
def chained() -> Iterator[tuple[Site, Chained]]:
    server = Chained()
    with socket.create_server(("127.0.0.1", 0)) as server_socket:
        thread = threading.Thread(target=_serve, args=(server_socket, server))
        thread.start()
        yield Site("127.0.0.1", server_socket.getsockname()[1], "", ""), server
        server_socket.shutdown(socket.SHUT_RDWR)
        thread.join(10)
        assert not thread.is_alive()


def _serve(server_socket: socket.socket, server: Chained) -> None:
    threads = []
    while True:
        try:
            connection, _ = server_socket.accept()
        except OSError:
            break
        threads.append(threading.Thread(target=_converse, args=(connection, server)))
        threads[-1].start()
    for thread in threads:
        thread.join(10)


def _converse(connection: socket.socket, server: Chained) -> None:
    with connection:
        try:
            while request := connection.recv(65536):
                connection.sendall(server.answer(request))
        except ConnectionError:
            return


def _chain(site: Site, tag: str, first: str) -> Plan:
    def step(path: str) -> Step:
        return Step.of(site.head("GET", path, headers=CLIENT_REQUEST_ID), 201, Kept("etag", header="ETag"))

    return Plan([step(tag)], first=[step(first)])


@needs_wrk
def test_wrk_follows_the_chain_of_every_lane(chained: tuple[Site, Chained]) -> None:
    site, server = chained
    plan = _chain(site, "/@lane@/@etag@", "/@lane@/first")
    tally = wrk.load(site, plan, lanes=8, seconds=0.3)
    assert tally.errors == []
    assert server.wrong == 0
    assert sorted(server.answered) == [b"%02d" % lane for lane in range(8)]
    assert 8 < tally.operations <= sum(server.answered.values())
    assert tally.client_cpu_seconds > 0


@needs_wrk
def test_wrk_reports_an_answer_that_was_not_expected(chained: tuple[Site, Chained]) -> None:
    site, _ = chained
    tally = wrk.load(site, _chain(site, "/@lane@/wrong", "/@lane@/first"), lanes=4, seconds=0.3)
    assert any(error.startswith("answered with 412 instead of 201") for error in tally.errors)
