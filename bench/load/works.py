"""What the lanes of a row do: generators of requests, built from prepared bytes.

Each function here returns a ``LaneWork``, the maker of one lane's work, or a ``Plan`` where bodies are small, which wrk
can send as well.
"""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count, cycle

from bench.load.client import LaneWork
from bench.load.lane import Body, Request, Work, expecting
from bench.load.plan import Plan, Step, fixed
from bench.load.site import Site

KIB = 1024
MIB = 1024 * KIB

FIRST_PUT = "0-00-00000000"
"""The name of the blob that ``puts`` of the first round puts first."""

_GLUED_BYTES = 16 * KIB
"""A body up to this size travels in one piece with its head, as clients send it too."""


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a blob: a piece of noise, some number of times."""

    piece: bytes
    times: int

    @classmethod
    def of(cls, size: int) -> "Content":
        piece = min(size, MIB)
        assert size % piece == 0, "content is made of whole pieces"
        return cls(random.Random(size).randbytes(piece), size // piece)

    @property
    def size(self) -> int:
        return len(self.piece) * self.times


def put_blob(site: Site, container: str, name: str, content: Content) -> Request:
    """A Put Blob of a block blob."""
    headers = f"x-ms-blob-type: BlockBlob\r\nContent-Length: {content.size}\r\n"
    head = site.head("PUT", f"/{container}/{name}", headers=headers)
    if content.size <= _GLUED_BYTES:
        return Request(head + content.piece, expecting(201))
    return Request(head, expecting(201), Body(memoryview(content.piece), content.times))


def get_blob(site: Site, container: str, name: str, *, signed: bool = False) -> Request:
    """A Get Blob with the site's SAS or, if signed, with a Shared Key signature made for it alone."""
    path = f"/{container}/{name}"
    return Request(site.signed_head("GET", path) if signed else site.head("GET", path), expecting(200))


def puts(site: Site, container: str, content: Content, series: str) -> LaneWork | Plan:
    """New blobs without end. The series keeps the names of one measurement apart from those of another."""
    request, expected, body = put_blob(site, container, f"{series}-@lane@-@number@", content)
    if body is None:
        head, _, small = request.partition(b"\r\n\r\n")
        return Plan([Step.of(head + b"\r\n\r\n", 201, body=small)], is_independent=True)
    before, between, after = re.split(b"@lane@|@number@", request)

    def work(lane: int) -> Work:
        for number in count():
            yield Request(b"%b%02d%b%08d%b" % (before, lane, between, number, after), expected, body)

    return work


def gets(
    site: Site, container: str, names: Sequence[str], *, signed: bool = False, small: bool = False
) -> LaneWork | Plan:
    """The blobs of these names over and over, every lane beginning elsewhere."""
    requests = [get_blob(site, container, name, signed=signed) for name in names]
    return fixed(requests) if small else over_and_over(requests)


def over_and_over(requests: list[Request]) -> LaneWork:
    """These requests over and over, every lane beginning elsewhere."""

    def work(lane: int) -> Work:
        start = lane * 37 % len(requests)
        endless = cycle(requests[start:] + requests[:start])
        while True:
            yield next(endless)

    return work


def lists(site: Site, container: str, query: str) -> LaneWork:
    """The first page of the same listing over and over."""
    head = site.head("GET", f"/{container}", f"restype=container&comp=list&{query}")
    return over_and_over([Request(head, expecting(200))])
