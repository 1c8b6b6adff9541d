"""The names of objects.

segments/<owner>/<number>    a segment
owners/<owner>               which segments of an owner are sealed (``seals.py``)
"""

import re

from kyanite.extents.api import SEGMENT_BYTES
from kyanite.membership.api import OWNER_BYTES

SEGMENTS = "segments/"

_SEGMENT_NAME = re.compile(
    f"segments/([0-9a-f]{{{2 * OWNER_BYTES}}})/([0-9a-f]{{{2 * (SEGMENT_BYTES - OWNER_BYTES)}}})"
)


def segments_of(owner: bytes) -> str:
    return f"{SEGMENTS}{owner.hex()}/"


def name_of(segment: bytes) -> str:
    return f"{SEGMENTS}{segment[:OWNER_BYTES].hex()}/{segment[OWNER_BYTES:].hex()}"


def segment_of(name: str) -> bytes | None:
    """None if the object is no segment."""
    found = _SEGMENT_NAME.fullmatch(name)
    return None if found is None else bytes.fromhex(found[1] + found[2])


def number_of(segment: bytes) -> int:
    return int.from_bytes(segment[OWNER_BYTES:], "big")
