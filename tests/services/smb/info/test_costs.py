"""What information and listings cost, in rows and in calls, however large a directory is."""

import struct
import sys
from types import FrameType

import pytest

from kyanite.services.smb.info.query_directory import query_directory
from kyanite.services.smb.info.query_info import query_info
from kyanite.services.smb.state import Open
from tests.services.smb.requests import Handler, SmbShare

SMALL, LARGE = 150, 2000


def filled(entries: int) -> SmbShare:
    share = SmbShare()
    share.files.make_directory("d")
    for number in range(entries):
        share.files.make_file(f"d/File-{number:05}")
    return share


@pytest.fixture(scope="module")
def small() -> SmbShare:
    return filled(SMALL)


@pytest.fixture(scope="module")
def large() -> SmbShare:
    return filled(LARGE)


def rows(share: SmbShare, handler: Handler, opened: Open, body: bytes) -> int:
    share.engine.costs.clear()
    share.call(handler, opened, body)
    return sum(share.engine.costs)


def query(information_class: int) -> bytes:
    return struct.pack("<HBBIHHIIIQQ", 41, 1, information_class, 65536, 0, 0, 0, 0, 0, 0, 0)


def scan(pattern: str, size: int, flags: int = 0) -> bytes:
    name = pattern.encode("utf-16-le")
    return struct.pack("<HBBIQQHHI", 33, 37, flags, 0, 0, 0, 96, len(name), size) + name


def calls(share: SmbShare, handler: Handler, opened: Open, body: bytes) -> int:
    """How many Python functions are called."""
    count = 0

    def counting(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    request = share.request(opened, body)
    sys.setprofile(counting)
    try:
        share.call(handler, opened, request.message[64:].tobytes())
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("information_class", [4, 5, 18, 34])
def test_information_is_four_rows(large: SmbShare, information_class: int) -> None:
    """The share, the open file, the handle and the entry."""
    assert rows(large, query_info, large.open("d/File-00007"), query(information_class)) == 4


@pytest.mark.parametrize(
    ("pattern", "size"), [("*", 4096), ("*", 65536), ("File-00007", 65536), ("File-0001*", 65536)]
)
def test_a_buffer_costs_what_it_holds(small: SmbShare, large: SmbShare, pattern: str, size: int) -> None:
    cost = rows(small, query_directory, small.open("d"), scan(pattern, size))
    if (pattern, size) != ("*", 65536):
        assert rows(large, query_directory, large.open("d"), scan(pattern, size)) == cost
    assert cost <= size // 104 + 10
    if pattern != "*":
        assert cost <= 20


def test_an_entry_of_a_listing_is_few_calls(large: SmbShare) -> None:
    opened = large.open("d")
    first = calls(large, query_directory, opened, scan("*", 128 * 100))
    second = calls(large, query_directory, opened, scan("*", 128 * 600))
    assert (second - first) / 500 < 8  # Half of them are those of the engine that counts.


def test_a_pattern_that_matches_nothing_reads_a_bounded_number_of_rows_at_once(large: SmbShare) -> None:
    large.engine.costs.clear()
    large.status_of(query_directory, large.open("d"), scan("*x?", 65536))
    assert max(large.engine.costs) <= 520
