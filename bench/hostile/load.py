"""What a load is: who does it, and what must be there before."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bench.hostile.crowd import Member
from bench.load.lane import Lane, Request, Work, expecting
from bench.load.site import Site

Sites = Mapping[str, Site]
CONTAINER = "polite"
SHARE = "polite"


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much the hostile ask for. These are the limits of the protocols, or more than any client has use for."""

    listed: int = 5_000
    unknown: int = 50_000
    committed: int = 49_900
    staged: int = 100_000
    ranges: int = 5_000
    entities: int = 20_000
    messages: int = 500
    files: int = 10_000
    handles: int = 2_000
    crowd: int = 300
    idle: int = 10_000


SHORT = Sizes(
    listed=1_000,
    unknown=5_000,
    committed=1_000,
    staged=2_000,
    ranges=200,
    entities=1_000,
    messages=50,
    files=600,
    handles=300,
    crowd=60,
    idle=500,
)
"""For a test of seconds."""

Fill = Callable[[Sites, Sizes], Iterator[tuple[str, Request]]]
"""Services and what to send to them, in any order."""


class Load(NamedTuple):
    name: str
    lanes: int
    work: Callable[[Sites, Sizes, int], Work] | None = None
    """What each lane does."""
    crowd: Callable[[Sites, Sizes], Sequence[Member]] | None = None
    """Or the connections of a crowd."""
    fill: Fill | None = None
    service: str = "blob"
    lane: type[Lane] = Lane
    expects: int = 0
    """How many answers the polite client must get, at least, for one that a hostile lane gets meanwhile."""


def put(site: Site, path: str, query: str = "", headers: str = "", body: bytes = b"") -> Request:
    head = site.head("PUT", path, query, f"{headers}Content-Length: {len(body)}\r\n")
    return Request(head + body, expecting(201))


def get(site: Site, path: str, query: str = "", status: int = 200) -> Request:
    return Request(site.head("GET", path, query), expecting(status))
