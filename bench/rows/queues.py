"""Queue rows: a message from put to delete, alone and beside a queue with a backlog."""

from base64 import b64encode
from dataclasses import dataclass
from random import Random

from bench.load.answers import inside
from bench.load.client import LaneWork, load
from bench.load.lane import Request, Work, expecting
from bench.load.plan import CLIENT_REQUEST_ID, Kept, Plan, Step
from bench.load.single_request import send_request
from bench.load.site import Site
from bench.rows.row import Row, row_of
from bench.servers.peers import Server

_NOISE = Random(1)
TEXT = b64encode(_NOISE.randbytes(768))
"""1 KiB, as clients write it that send bytes."""
LONG_TEXT = b64encode(_NOISE.randbytes(48 * 1024))
"""64 KiB, the longest there is."""

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


def put_message(site: Site, queue: str, text: bytes = TEXT, more: str = "") -> Request:
    body = b"<QueueMessage><MessageText>%b</MessageText></QueueMessage>" % text
    headers = f"Content-Type: application/xml\r\nContent-Length: {len(body)}\r\n{more}"
    return Request(site.head("POST", f"/{queue}/messages", headers=headers) + body, expecting(201))


def cycles(site: Site, queue: str, text: bytes) -> Plan:
    """Put a message, get one, delete that. All lanes share the queue, so it may be another lane's."""
    kept = (Kept("id", element="MessageId"), Kept("receipt", element="PopReceipt", quoted=True))
    delete = site.head("DELETE", f"/{queue}/messages/@id@", "popreceipt=@receipt@", CLIENT_REQUEST_ID)
    return Plan(
        [
            Step.of(put_message(site, queue, text, CLIENT_REQUEST_ID).data, 201),
            Step.of(site.head("GET", f"/{queue}/messages", headers=CLIENT_REQUEST_ID), 200, *kept),
            Step.of(delete, 204),
        ]
    )


def long_cycles(site: Site, queue: str, text: bytes) -> LaneWork:
    """The same by our own client, which receives long texts at less cost than wrk."""
    return cycles(site, queue, text).lane_work()


def _cycle_row(lanes: int, *, backlog: int = 0, long: bool = False) -> Row:
    text = LONG_TEXT if long else TEXT
    kind = "-64k" if long else "-backlog" if backlog else ""
    queues = Queues(f"cycle{kind}-{lanes}", backlog)

    def check(server: Server) -> None:
        site = server.sites["queue"]
        send_request(site, put_message(site, queues.name, text).data, 201)
        peeked = send_request(site, site.head("GET", f"/{queues.name}/messages", "peekonly=true"), 200)
        if inside(peeked, b"MessageText") != text:
            raise RuntimeError(f"{server.name} gave back something else than was put")

    size = " of 64 KiB" if long else ""
    title = f"put, get, delete a queue message{size}{f', {backlog:,} in another queue' if backlog else ''}"

    def work(site: Site, queue: str, _series: str) -> LaneWork | Plan:
        return (long_cycles if long else cycles)(site, queue, text)

    return row_of("queue", f"cycle{kind}/{lanes}", title, queues, work, check, requests_per_operation=3)


def queue_rows(backlog: int) -> list[Row]:
    return [
        _cycle_row(1),
        _cycle_row(32),
        _cycle_row(1, long=True),
        _cycle_row(32, long=True),
        _cycle_row(1, backlog=backlog),
        _cycle_row(32, backlog=backlog),
    ]
