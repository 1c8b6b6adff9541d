"""Queue rows: a message from put to delete, alone and beside a queue with a backlog."""

from base64 import b64encode
from dataclasses import dataclass
from random import Random
from urllib.parse import quote

from bench.load.client import LaneWork, load
from bench.load.lane import Request, Work, expecting
from bench.load.single_request import send_request
from bench.load.site import Site
from bench.report.bars import AtLeast
from bench.rows.row import Row, row_of
from bench.servers.peers import Server

TEXT = b64encode(Random(1).randbytes(768))
"""1 KiB, as clients write it that send bytes."""

_FILLERS = 32


@dataclass(frozen=True, slots=True)
class Queues:
    """A queue for a row to work on, and maybe another one that is not used."""

    name: str
    backlog: int

    def __str__(self) -> str:
        return f"{self.backlog:,} messages"

    def fill(self, server: Server) -> None:
        site = server.sites["queue"]
        _create(site, self.name)
        if not self.backlog:
            return
        _create(site, f"{self.name}-other")
        put = put_message(site, f"{self.name}-other")
        each = [self.backlog // _FILLERS + (lane < self.backlog % _FILLERS) for lane in range(_FILLERS)]

        def puts(lane: int) -> Work:
            for _ in range(each[lane]):
                yield put

        tally = load(site, puts, lanes=_FILLERS, seconds=None)
        if tally.errors:
            raise RuntimeError(f"{server.name} could not be filled: {tally.errors[0]}")


def _create(site: Site, queue: str) -> None:
    send_request(site, site.head("PUT", f"/{queue}", headers="Content-Length: 0\r\n"), 201)


def put_message(site: Site, queue: str) -> Request:
    body = b"<QueueMessage><MessageText>%b</MessageText></QueueMessage>" % TEXT
    headers = f"Content-Type: application/xml\r\nContent-Length: {len(body)}\r\n"
    return Request(site.head("POST", f"/{queue}/messages", headers=headers) + body, expecting(201))


def cycles(site: Site, queue: str, _series: str) -> LaneWork:
    """Put a message, get one, delete that. All lanes share the queue, so it may be another lane's."""
    put = put_message(site, queue)
    get = Request(site.head("GET", f"/{queue}/messages"), expecting(200))
    before, between, after = site.head("DELETE", f"/{queue}/messages/@id", "popreceipt=@receipt").split(b"@")

    def delete(answer: bytes) -> Request:
        message_id, receipt = _inside(answer, b"MessageId"), _inside(answer, b"PopReceipt")
        query = between.removeprefix(b"id") + quote(receipt, safe="").encode()
        return Request(before + message_id + query + after.removeprefix(b"receipt"), expecting(204))

    def work(lane: int) -> Work:
        while True:
            yield put
            answer = yield get
            yield delete(answer)

    return work


def _inside(answer: bytes, element: bytes) -> bytes:
    return answer.partition(b"<%b>" % element)[2].partition(b"</")[0]


def _cycle_row(lanes: int, backlog: int, *bars: AtLeast) -> Row:
    queues = Queues(f"cycle-{lanes}-{backlog}", backlog)

    def check(server: Server) -> None:
        site = server.sites["queue"]
        send_request(site, put_message(site, queues.name).data, 201)
        peeked = send_request(site, site.head("GET", f"/{queues.name}/messages", "peekonly=true"), 200)
        if _inside(peeked, b"MessageText") != TEXT:
            raise RuntimeError(f"{server.name} gave back something else than was put")

    label = f"cycle{'-backlog' if backlog else ''}/{lanes}"
    title = f"put, get, delete a message{f', {backlog:,} in another queue' if backlog else ''}"
    return row_of("queue", label, title, queues, cycles, check, requests_per_operation=3, bars=bars)


QUEUE_ROWS: tuple[Row, ...] = (
    _cycle_row(1, 0),
    _cycle_row(32, 0, AtLeast(8, "azurite")),
    _cycle_row(1, 5000),
    _cycle_row(32, 5000, AtLeast(8, "azurite")),
)
