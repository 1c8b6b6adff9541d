"""FILETIME (MS-DTYP §2.3.3): 100 ns ticks since 1601-01-01 UTC. Instants have the same ticks since the year 1."""

from typing import NamedTuple

from kyanite.values import Instant

TICKS_TO_1601 = 504_911_232_000_000_000
_LAST = 3_155_378_975_999_999_999 - TICKS_TO_1601
"""The last tick of the year 9999, the last that dates of REST can express."""


def encode(instant: Instant) -> int:
    """The FILETIME of an instant. What lies before 1601 becomes 0, which clients show as no time at all."""
    return max(instant - TICKS_TO_1601, 0)


def decode(filetime: int) -> Instant:
    """The instant of a FILETIME; values that are no time (0, −1, −2) have a meaning of their own in each message.

    What lies behind the year 9999 becomes its end.
    """
    return Instant(min(max(filetime, 0), _LAST) + TICKS_TO_1601)


class FileTimes(NamedTuple):
    """The four times of a file as FILETIME, in the order in which all messages and information classes have them."""

    creation: int
    last_access: int
    last_write: int
    change: int


NO_TIMES = FileTimes(0, 0, 0, 0)
