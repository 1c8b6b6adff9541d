"""Table rows: inserting entities, finding one, reading a partition, and groups of a hundred changes."""

import json
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from itertools import count
from random import Random
from urllib.parse import quote

from bench.load.client import LaneWork
from bench.load.lane import Request, Work, expecting
from bench.load.plan import Plan, Step, fixed
from bench.load.single_request import send_request
from bench.load.site import Site
from bench.load.works import over_and_over
from bench.rows.row import Row, row_of
from bench.servers.peers import Server

PARTITION = "measured"
PARTITION_SIZE = 1000
FEW = 32
"""Entities of the larger sizes."""
GROUP_SIZE = 100

_JSON = "Accept: application/json;odata=minimalmetadata\r\nContent-Type: application/json\r\n"
_NO_ECHO = "Prefer: return-no-content\r\n"


@dataclass(frozen=True, slots=True)
class Tables:
    """A table for a row to write to, or one with a partition to be read."""

    name: str
    size: int = 0
    binary_bytes: int = 0
    """Of each entity, beside the usual properties."""

    def __str__(self) -> str:
        return f"a table of {self.size:,} entities"

    def fill(self, server: Server) -> None:
        site = server.sites["table"]
        body = json.dumps({"TableName": self.name}).encode()
        send_request(site, site.head("POST", "/Tables", headers=_headers(body)) + body, 201)
        group_size = 1 if self.binary_bytes else GROUP_SIZE
        for first in range(0, self.size, group_size):
            numbers = range(first, first + group_size)
            group = (entity(PARTITION, f"{number:06}", self.binary_bytes) for number in numbers)
            send_request(site, batch(site, self.name, group), 202)


READ = Tables("read", PARTITION_SIZE)
SIZES = {"64k": ("64 KiB", 60 * 1024), "1m": ("960 KiB", 960 * 1024)}
"""How sizes of entities are called, and the bytes of their binary properties. No entity may be larger than 1 MiB."""
_BINARY_BYTES = 60 * 1024
_NOISE = Random(1).randbytes(_BINARY_BYTES)


def entity(partition_key: str, row_key: str, binary_bytes: int = 0) -> bytes:
    """An entity with a property of most types, some 250 bytes of JSON, and as many binary ones as asked for."""
    binary: dict[str, str] = {}
    for number in range(-(-binary_bytes // _BINARY_BYTES)):
        length = min(_BINARY_BYTES, binary_bytes - number * _BINARY_BYTES)
        binary[f"Bytes{number}@odata.type"] = "Edm.Binary"
        binary[f"Bytes{number}"] = b64encode(_NOISE[:length]).decode()
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
            **binary,
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


def inserts(site: Site, table: str, series: str, binary_bytes: int = 0) -> LaneWork | Plan:
    """New entities without end, every lane in a partition of its own."""
    body = entity(f"{series}-@lane@", "@number@", binary_bytes)
    sent = body.replace(b"@lane@", b"00").replace(b"@number@", b"00000000")
    head = site.head("POST", f"/{table}", headers=_headers(sent, _NO_ECHO))
    plan = Plan([Step.of(head + body, 204)], is_independent=True)
    return plan.lane_work() if binary_bytes else plan


def points(site: Site, table: str, size: int) -> list[Request]:
    """One entity after the other by its keys."""
    paths = (f"/{table}(PartitionKey='{PARTITION}',RowKey='{number:06}')" for number in range(size))
    return [Request(site.head("GET", path, headers=_JSON), expecting(200)) for path in paths]


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


def _check_entity(server: Server, table: str, keys: tuple[str, str], binary_bytes: int = 0) -> None:
    site = server.sites["table"]
    path = f"/{table}(PartitionKey='{keys[0]}',RowKey='{keys[1]}')"
    found = json.loads(send_request(site, site.head("GET", path, headers=_JSON), 200))
    sent = json.loads(entity(*keys, binary_bytes))
    if {name: found.get(name) for name in sent} != sent:
        raise RuntimeError(f"{server.name} gave back something else than was inserted")


def _insert_row(lanes: int, size: str = "") -> Row:
    words, binary_bytes = SIZES.get(size, ("", 0))
    table = Tables(f"insert{size}x{lanes}")
    made = ("0-00", "00000000")

    def work(site: Site, name: str, series: str) -> LaneWork | Plan:
        return inserts(site, name, series, binary_bytes)

    check = partial(_check_entity, table=table.name, keys=made, binary_bytes=binary_bytes)
    title = f"insert a table entity{f' of {words}' if words else ''}"
    return row_of("table", f"insert{_label(size)}/{lanes}", title, table, work, check)


def _point_row(lanes: int, size: str = "") -> Row:
    words, binary_bytes = SIZES.get(size, ("", 0))
    table = Tables(f"read{size}", FEW, binary_bytes) if size else READ

    def work(site: Site, name: str, _series: str) -> LaneWork | Plan:
        requests = points(site, name, table.size)
        return over_and_over(requests) if size else fixed(requests)

    last = (PARTITION, f"{table.size - 1:06}")
    check = partial(_check_entity, table=table.name, keys=last, binary_bytes=binary_bytes)
    title = f"query a table entity{f' of {words}' if words else ''} by its keys"
    return row_of("table", f"point{_label(size)}/{lanes}", title, table, work, check)


def _label(size: str) -> str:
    return f"-{size}" if size else ""


def _partition_row(lanes: int) -> Row:
    def check(server: Server) -> None:
        site = server.sites["table"]
        found = json.loads(send_request(site, partition_query(site, READ.name), 200))["value"]
        if [one["RowKey"] for one in found] != [f"{number:06}" for number in range(PARTITION_SIZE)]:
            raise RuntimeError(f"{server.name} did not give back the partition")

    title = f"query {PARTITION_SIZE:,} entities of a table partition"
    return row_of("table", f"partition/{lanes}", title, READ, partitions, check)


def _batch_row(lanes: int) -> Row:
    table = Tables(f"batch{lanes}")
    check = partial(_check_entity, table=table.name, keys=("0-0-00000000", "099"))
    return row_of("table", f"batch/{lanes}", f"batch of {GROUP_SIZE} table inserts", table, groups, check)


TABLE_ROWS: tuple[Row, ...] = (
    _point_row(1),
    _point_row(32),
    _partition_row(1),
    _partition_row(32),
    _insert_row(1),
    _insert_row(32),
    _batch_row(1),
    _batch_row(32),
    _point_row(1, "64k"),
    _point_row(32, "64k"),
    _point_row(1, "1m"),
    _point_row(32, "1m"),
    _insert_row(1, "64k"),
    _insert_row(32, "64k"),
    _insert_row(1, "1m"),
    _insert_row(32, "1m"),
)
