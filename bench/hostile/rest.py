"""The hostile loads over HTTP."""

import json
from base64 import b64encode
from collections.abc import Iterator, Sequence

from bench.hostile.crowd import Member, connected_to, send_some
from bench.hostile.load import CONTAINER, SHARE, Load, Sites, Sizes, get, put
from bench.load.answers import length_of
from bench.load.lane import RECEIVE_BYTES, Lane, Request, Work, expecting
from bench.load.site import Site

BLOB = "x-ms-blob-type: BlockBlob\r\n"
LONG_LISTS = 4
PIPELINED = 100
_MIB = 1024 * 1024
_JSON = "Content-Type: application/json\r\nAccept: application/json;odata=nometadata\r\n"


# Lists


def fill_listed(sites: Sites, sizes: Sizes) -> Iterator[tuple[str, Request]]:
    for number in range(sizes.listed):
        yield "blob", put(sites["blob"], f"/{CONTAINER}/listed-{number:08d}", headers=BLOB)


def listing(sites: Sites, sizes: Sizes, number: int) -> Work:
    while True:
        yield get(sites["blob"], f"/{CONTAINER}", "restype=container&comp=list&prefix=listed")


def fill_files(sites: Sites, sizes: Sizes) -> Iterator[tuple[str, Request]]:
    site = sites["file"]
    for number in range(sizes.files):
        headers = "x-ms-type: file\r\nx-ms-content-length: 0\r\n"
        yield "file", put(site, f"/{SHARE}/many/file-{number:08d}.txt", headers=headers)


def list_files(sites: Sites, sizes: Sizes, number: int) -> Work:
    query = "restype=directory&comp=list&maxresults=5000&include=Timestamps,ETag,Attributes,PermissionKey"
    while True:
        yield get(sites["file"], f"/{SHARE}/many", query)


# Block lists


def block_id(number: int, word: bytes = b"block") -> bytes:
    return b64encode(word + b"-%08d" % number)


def block_list(length: int, word: bytes = b"block") -> bytes:
    items = b"".join(b"<Latest>%b</Latest>" % block_id(number, word) for number in range(length))
    return b'<?xml version="1.0" encoding="utf-8"?><BlockList>%b</BlockList>' % items


def fill_long(sites: Sites, sizes: Sizes) -> Iterator[tuple[str, Request]]:
    for number in range(sizes.committed):
        for name in range(LONG_LISTS):
            yield "blob", _staged(sites["blob"], f"long-{name}", number)


def fill_staged(sites: Sites, sizes: Sizes) -> Iterator[tuple[str, Request]]:
    for number in range(sizes.staged):
        yield "blob", _staged(sites["blob"], "staged", number)


def _staged(site: Site, name: str, number: int) -> Request:
    staged = block_id(number).decode().replace("=", "%3D")
    return put(site, f"/{CONTAINER}/{name}", f"comp=block&blockid={staged}", body=b"1")


def unknown_ids(sites: Sites, sizes: Sizes, number: int) -> Work:
    body = block_list(sizes.unknown, b"unknown")
    request = put(sites["blob"], f"/{CONTAINER}/unknown-{number}", "comp=blocklist", body=body)
    while True:
        yield request._replace(expected=expecting(400))


def put_long_list(sites: Sites, sizes: Sizes, number: int) -> Work:
    """Commits the same blocks again and again: they are committed already."""
    path = f"/{CONTAINER}/long-{number % LONG_LISTS}"
    request = put(sites["blob"], path, "comp=blocklist", body=block_list(sizes.committed))
    while True:
        yield request


def get_long_list(sites: Sites, sizes: Sizes, number: int) -> Work:
    while True:
        yield get(sites["blob"], f"/{CONTAINER}/staged", "comp=blocklist&blocklisttype=all")


# Pages, entities, messages


def fill_pages(sites: Sites, sizes: Sizes) -> Iterator[tuple[str, Request]]:
    """Every second page, so that each is a range of its own. Two lanes may begin before the blob is there."""
    for number in range(sizes.ranges):
        headers = f"x-ms-page-write: update\r\nx-ms-range: bytes={number * 1024}-{number * 1024 + 511}\r\n"
        yield "blob", put(sites["blob"], f"/{CONTAINER}/pages", "comp=page", headers, bytes(512))


def page_ranges(sites: Sites, sizes: Sizes, number: int) -> Work:
    while True:
        yield get(sites["blob"], f"/{CONTAINER}/pages", "comp=pagelist")


def fill_entities(sites: Sites, sizes: Sizes) -> Iterator[tuple[str, Request]]:
    for number in range(sizes.entities):
        body = json.dumps({"PartitionKey": "p", "RowKey": f"{number:08}", "n": number}).encode()
        head = sites["table"].head("POST", "/polite", "", f"{_JSON}Content-Length: {len(body)}\r\n")
        yield "table", Request(head + body, expecting(201))


def query_nothing(sites: Sites, sizes: Sizes, number: int) -> Work:
    while True:
        head = sites["table"].head("GET", "/polite()", "$filter=n%20eq%20-1", _JSON)
        yield Request(head, expecting(200))


def fill_messages(sites: Sites, sizes: Sizes) -> Iterator[tuple[str, Request]]:
    text = b"<QueueMessage><MessageText>%b</MessageText></QueueMessage>" % (b"x" * 64_000)
    head = sites["queue"].head("POST", "/polite/messages", "", f"Content-Length: {len(text)}\r\n")
    for _ in range(sizes.messages):
        yield "queue", Request(head + text, expecting(201))


def peek_messages(sites: Sites, sizes: Sizes, number: int) -> Work:
    while True:
        yield get(sites["queue"], "/polite/messages", "peekonly=true&numofmessages=32")


# Connections


class PipelineLane(Lane):
    """Sends a request many times at once. All answers are equally long: ``missing`` is what is left of them."""

    __slots__ = ()

    def receive(self) -> bool:
        data = self.socket.recv(RECEIVE_BYTES)
        if not data:
            raise ConnectionError("the server closed the connection")
        if not self.missing:
            self.start += data
            if length_of(self.start) < 0:
                return False
            self.missing = PIPELINED * length_of(self.start) - len(self.start)
        else:
            self.missing -= len(data)
        return self.missing == 0


def pipeline(sites: Sites, sizes: Sizes, number: int) -> Work:
    request = get(sites["blob"], f"/{CONTAINER}/small")
    while True:
        yield request._replace(data=request.data * PIPELINED)


def half_sent_batches(sites: Sites, sizes: Sizes) -> Sequence[Member]:
    headers = f"Content-Type: multipart/mixed; boundary=b\r\nContent-Length: {4 * _MIB}\r\n"
    head = sites["blob"].head("POST", "/", "comp=batch", headers)
    return _crowd(sites["blob"], sizes.crowd, head + bytes(3 * _MIB), poke=bytes(16 * 1024))


def slow_heads(sites: Sites, sizes: Sizes) -> Sequence[Member]:
    return _crowd(sites["blob"], sizes.crowd, b"GET / HT", poke=b"x")


def slow_bodies(sites: Sites, sizes: Sizes) -> Sequence[Member]:
    head = sites["blob"].head("PUT", f"/{CONTAINER}/slow", "", f"{BLOB}Content-Length: {_MIB}\r\n")
    return _crowd(sites["blob"], sizes.crowd, head, poke=b"x")


def never_read(sites: Sites, sizes: Sizes) -> Sequence[Member]:
    lists = get(sites["blob"], f"/{CONTAINER}", "restype=container&comp=list&prefix=listed").data
    return _crowd(sites["blob"], sizes.crowd, lists * 20)


def idle(sites: Sites, sizes: Sizes) -> Sequence[Member]:
    return _crowd(sites["blob"], sizes.idle, b"")


def _crowd(site: Site, count: int, first: bytes, poke: bytes = b"") -> Sequence[Member]:
    members = []
    for _ in range(count):
        connected = connected_to(site)
        connected.setblocking(False)
        send_some(connected, first)
        members.append(Member(connected, poke))
    return members


LOADS = (
    Load("list 5,000 blobs", 4, listing, fill=fill_listed, expects=3),
    Load("list 5,000 blobs", 24, listing, fill=fill_listed, expects=3),
    Load("Put Block List, 50,000 unknown ids", 4, unknown_ids, expects=3),
    Load("Put Block List, 49,900 blocks", 4, put_long_list, fill=fill_long, expects=3),
    Load("Get Block List, 100,000 staged", 4, get_long_list, fill=fill_staged, expects=3),
    Load("List Files, 5,000 with everything", 4, list_files, fill=fill_files, service="file", expects=3),
    Load("List Files, 5,000 with everything", 24, list_files, fill=fill_files, service="file", expects=3),
    Load("Get Page Ranges, 5,000 ranges", 4, page_ranges, fill=fill_pages),
    Load("query that matches nothing", 24, query_nothing, fill=fill_entities, service="table"),
    Load("peek at 32 messages of 64,000 bytes", 24, peek_messages, fill=fill_messages, service="queue"),
    Load("pipelines of 100 requests", 24, pipeline, lane=PipelineLane),
    Load("300 half-sent batches", 24, crowd=half_sent_batches),
    Load("300 that send a head slowly", 24, crowd=slow_heads),
    Load("300 that send a body slowly", 24, crowd=slow_bodies),
    Load("300 that never read 20 lists each", 24, crowd=never_read, fill=fill_listed),
    Load("10,000 idle connections", 24, crowd=idle),
)
