"""Share modes: what an open handle does with a file, and what it allows other handles to do at the same time.

Two opens conflict when one of them wants a right that the other does not share, whichever came first. An open that
wants none of the three rights only reads attributes and conflicts with no other. A REST operation is an open that
shares everything and is closed when it ends.
"""

from collections.abc import Iterable
from enum import Flag
from typing import NamedTuple

from kyanite.values import Instant


class Rights(Flag):
    NONE = 0
    READ = 1
    WRITE = 2
    DELETE = 4


EVERYTHING = Rights.READ | Rights.WRITE | Rights.DELETE


class Open(NamedTuple):
    access: Rights
    share: Rights


class HandleFacts(NamedTuple):
    """The open handle that forbids something to others."""

    held: Open
    client: str
    """The address of its client."""
    opened_at: Instant
    wanted: Open | None = None
    """What was forbidden; None if the handle forbids it whatever its share mode."""


class OpenFileFacts(NamedTuple):
    """A file that has open handles, which were not read."""

    path: str
    handles: int


def conflict(opens: Iterable[Open], new: Open) -> Open | None:
    """The first of the opens that conflicts with the new one."""
    if not new.access:
        return None
    for each in opens:
        if each.access and (new.access & ~each.share or each.access & ~new.share):
            return each
    return None
