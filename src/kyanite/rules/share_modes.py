"""Share modes: what an open handle does with a file, and what it lets others do meanwhile.

Two opens conflict when one of them wants what the other does not share, whichever came first. An open that wants
none of the three rights looks at attributes only and meets nobody. A REST operation is an open that shares everything
and is closed again when it is done.
"""

from collections.abc import Iterable
from enum import Flag
from typing import NamedTuple


class Rights(Flag):
    NONE = 0
    READ = 1
    WRITE = 2
    DELETE = 4


EVERYTHING = Rights.READ | Rights.WRITE | Rights.DELETE


class Open(NamedTuple):
    access: Rights
    share: Rights


def conflict(held: Iterable[Open], new: Open) -> Open | None:
    """The first of the held opens that stands against the new one."""
    if not new.access:
        return None
    for each in held:
        if each.access and (new.access & ~each.share or each.access & ~new.share):
            return each
    return None
