"""Table rows: inserting entities, finding one, reading a partition, and groups of a hundred changes."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from itertools import count
from urllib.parse import quote

from bench.load.client import LaneWork
from bench.load.lane import Request, Work, expecting
from bench.load.single_request import send_request
from bench.load.site import Site
from bench.load.works import over_and_over
from bench.report.bars import AtLeast
from bench.rows.row import Row, row_of
from bench.servers.peers import Server

PARTITION = "measured"
PARTITION_SIZE = 1000
GROUP_SIZE = 100

_JSON = "Accept: application/json;odata=minimalmetadata\r\nContent-Type: application/json\r\n"
_NO_ECHO = "Prefer: return-no-content\r\n"


@dataclass(frozen=True, slots=True)
class Tables:
    """A table for a row to write to, or one with a partition to be read."""

    name: str
    size: int = 0

    def __str__(self) -> str:
        return f"a table of {self.size:,} entities"

    def fill(self, server: Server) -> None:
        site = server.sites["table"]
        body = json.dumps({"TableName": self.name}).encode()
        send_request(site, site.head("POST", "/Tables", headers=_headers(body)) + body, 201)
        for first in range(0, self.size, GROUP_SIZE):
            group = (entity(PARTITION, f"{number:06}") for number in range(first, first + GROUP_SIZE))
            send_request(site, batch(site, self.name, group), 202)


READ = Tables("read", PARTITION_SIZE)


def entity(partition_key: str, row_key: str) -> bytes:
    """An entity with a property of most types, some 250 bytes of JSON."""
    return json.dumps(
        {
            "PartitionKey": partition_key,
            "RowKey": row_key,
            "Name": "an entity of the benchmark",
            "Count": 123456,
            "Ratio": 0.25,
            "Active": True,
            "Total@odata.type": "Edm.Int64",
            "Total": "12345678901234",
            "When@odata.type": "Edm.DateTime",
            "When": "2024-05-01T12:34:56.1234567Z",
        }
    ).encode()


def _headers(body: bytes, more: str = "") -> str:
    return f"{_JSON}{more}Content-Length: {len(body)}\r\n"


def batch(site: Site, table: str, entities: Iterable[bytes]) -> bytes:
    """A request that inserts all of them in one transaction."""
    parts = "".join(
        "--changeset_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n"
        f"Content-ID: {number}\r\n\r\nPOST http://{site.host}:{site.port}{site.base}/{table} HTTP/1.1\r\n"
        f"{_headers(one, _NO_ECHO)}DataServiceVersion: 3.0\r\n\r\n{one.decode()}\r\n"
        for number, one in enumerate(entities)
    )
    body = (
        "--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_1\r\n\r\n"
        f"{parts}--changeset_1--\r\n--batch_1--\r\n"
    ).encode()
    headers = f"Content-Type: multipart/mixed; boundary=batch_1\r\nContent-Length: {len(body)}\r\n"
    return site.head("POST", "/$batch", headers=headers) + body


def inserts(site: Site, table: str, series: str) -> LaneWork:
    """New entities without end, every lane in a partition of its own."""

    def work(lane: int) -> Work:
        body = entity(f"{series}-{lane}", "@0000000")
        head = site.head("POST", f"/{table}", headers=_headers(body, _NO_ECHO))
        before, after = (head + body).split(b"@0000000")
        for number in count():
            yield Request(b"%b%08d%b" % (before, number, after), expecting(204))

    return work


def points(site: Site, table: str, _series: str) -> LaneWork:
    """One entity after the other by its keys, every lane beginning elsewhere."""
    paths = (f"/{table}(PartitionKey='{PARTITION}',RowKey='{number:06}')" for number in range(PARTITION_SIZE))
    return over_and_over([Request(site.head("GET", path, headers=_JSON), expecting(200)) for path in paths])


def partition_query(site: Site, table: str) -> bytes:
    wanted = quote(f"PartitionKey eq '{PARTITION}'")
    return site.head("GET", f"/{table}()", f"$filter={wanted}", _JSON)


def partitions(site: Site, table: str, _series: str) -> LaneWork:
    """The same partition over and over."""
    return over_and_over([Request(partition_query(site, table), expecting(200))])


def groups(site: Site, table: str, series: str) -> LaneWork:
    """Groups of new entities without end, every group in a partition of its own."""

    def work(lane: int) -> Work:
        mark = f"{series}-{lane}-@0000000"
        pieces = batch(site, table, (entity(mark, f"{n:03}") for n in range(GROUP_SIZE))).split(b"@0000000")
        for number in count():
            yield Request((b"%08d" % number).join(pieces), expecting(202))

    return work


def _check_entity(server: Server, table: str, keys: tuple[str, str]) -> None:
    site = server.sites["table"]
    path = f"/{table}(PartitionKey='{keys[0]}',RowKey='{keys[1]}')"
    found = json.loads(send_request(site, site.head("GET", path, headers=_JSON), 200))
    sent = json.loads(entity(*keys))
    if {name: found.get(name) for name in sent} != sent:
        raise RuntimeError(f"{server.name} gave back something else than was inserted")


def _insert_row(lanes: int, *bars: AtLeast) -> Row:
    table = Tables(f"insert{lanes}")
    made = ("0-0", "00000000")
    check = partial(_check_entity, table=table.name, keys=made)
    return row_of("table", f"insert/{lanes}", "insert an entity", table, inserts, check, bars=bars)


def _point_row(lanes: int, *bars: AtLeast) -> Row:
    check = partial(_check_entity, table=READ.name, keys=(PARTITION, "000999"))
    return row_of("table", f"point/{lanes}", "query an entity by its keys", READ, points, check, bars=bars)


def _partition_row(lanes: int, *bars: AtLeast) -> Row:
    def check(server: Server) -> None:
        site = server.sites["table"]
        found = json.loads(send_request(site, partition_query(site, READ.name), 200))["value"]
        if [one["RowKey"] for one in found] != [f"{number:06}" for number in range(PARTITION_SIZE)]:
            raise RuntimeError(f"{server.name} did not give back the partition")

    title = f"query {PARTITION_SIZE:,} entities of a partition"
    return row_of("table", f"partition/{lanes}", title, READ, partitions, check, bars=bars)


def _batch_row(lanes: int, *bars: AtLeast) -> Row:
    table = Tables(f"batch{lanes}")
    check = partial(_check_entity, table=table.name, keys=("0-0-00000000", "099"))
    return row_of(
        "table", f"batch/{lanes}", f"batch of {GROUP_SIZE} inserts", table, groups, check, bars=bars
    )


TABLE_ROWS: tuple[Row, ...] = (
    _point_row(1),
    _point_row(32, AtLeast(10, "azurite")),
    _partition_row(1),
    _partition_row(32, AtLeast(4, "azurite")),
    _insert_row(1),
    _insert_row(32, AtLeast(4, "azurite")),
    _batch_row(1),
    _batch_row(32, AtLeast(15, "azurite")),
)
