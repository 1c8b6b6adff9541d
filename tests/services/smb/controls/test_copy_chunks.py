"""Server-side copy: bytes are shared, chunks before a refused one stay copied, and limits are named."""

import struct

import pytest

from kyanite.model.files.opens import copying
from kyanite.services.smb.controls.ioctl import control
from kyanite.services.smb.request import Answer, Request
from kyanite.services.smb.state import Open
from kyanite.wire.smb2 import ioctl
from kyanite.wire.smb2.fsctl import Fsctl
from tests.services.smb.controls.test_ioctl import body, output, status_of
from tests.services.smb.requests import ALL, SmbShare

DATA = bytes(range(256)) * 256
"""64 KiB."""
MIB = 1024 * 1024
Chunks = list[tuple[int, int, int]]


@pytest.fixture(params=[True, False], ids=["inline", "extents"])
def share(request: pytest.FixtureRequest) -> SmbShare:
    made = SmbShare()
    made.files.make_directory("d")
    made.files.make_file("from", len(DATA))
    made.files.make_file("to", 0)
    for at in range(0, len(DATA), 8192):
        made.write("from", at, DATA[at : at + 8192], is_inline=request.param)
    return made


async def handler(request: Request) -> Answer:
    return await control(request, ioctl.decode(request.message))


def key_of(share: SmbShare, opened: Open) -> bytes:
    found = output(share.call(handler, opened, body(Fsctl.SRV_REQUEST_RESUME_KEY, room=32)))
    assert found[24:] == bytes(8)
    return found[:24]


def request_of(
    key: bytes, chunks: Chunks, *, code: int = Fsctl.SRV_COPYCHUNK, room: int = 12, count: int | None = None
) -> bytes:
    packed = b"".join(struct.pack("<QQII", *chunk, 0) for chunk in chunks)
    data = key + struct.pack("<II", len(chunks) if count is None else count, 0) + packed
    return body(code, data, room)


def copy(share: SmbShare, source: Open, target: Open, chunks: Chunks) -> tuple[str, tuple[int, ...]]:
    answer = share.call(handler, target, request_of(key_of(share, source), chunks))
    return answer.status.name, struct.unpack("<III", output(answer))


def test_chunks_are_copied_in_their_order(share: SmbShare) -> None:
    source, target = share.open("from"), share.open("to")
    chunks = [(0, 0, 4096), (10_000, 100, 5000), (65_000, 30_000, 536)]
    assert copy(share, source, target, chunks) == ("SUCCESS", (3, 0, 9632))
    expected = bytearray(30_536)
    for start, at, length in chunks:
        expected[at : at + length] = DATA[start : start + length]
    assert share.read(target) == expected
    assert share.read(source) == DATA


def test_no_chunks(share: SmbShare) -> None:
    assert copy(share, share.open("from"), share.open("to"), []) == ("SUCCESS", (0, 0, 0))


def test_within_one_file(share: SmbShare) -> None:
    opened = share.open("from")
    assert copy(share, opened, opened, [(0, 2040, 2048), (2040, 60_000, 8192)]) == ("SUCCESS", (2, 0, 10_240))
    expected = bytearray(DATA)
    expected[2040:4088] = DATA[:2048]
    expected[60_000:68_192] = expected[2040:10_232]
    assert share.read(opened) == expected


def test_what_was_copied_no_longer_depends_on_the_source(share: SmbShare) -> None:
    source, target = share.open("from"), share.open("to")
    assert copy(share, source, target, [(0, 0, len(DATA))])[0] == "SUCCESS"
    share.write("from", 0, b"new")
    assert share.read(target) == DATA
    share.files.close(source.file_id, source.handle_id)
    share.remove("from")
    assert share.read(target) == DATA


def test_a_source_in_a_snapshot_and_a_target_that_a_snapshot_has(share: SmbShare) -> None:
    share.files.make_file("to", 10)
    at = share.take_snapshot()
    share.write("from", 0, b"new")
    old = share.open_snapshot("from", at, is_directory=False)
    assert copy(share, old, share.open("to"), [(0, 0, 100)]) == ("SUCCESS", (1, 0, 100))
    assert share.read(share.open("to")) == DATA[:100]
    assert share.read(share.open_snapshot("to", at, is_directory=False)) == bytes(10)
    refused = request_of(key_of(share, share.open("from")), [(0, 0, 1)])
    assert status_of(share, old, refused) == "MEDIA_WRITE_PROTECTED"


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_a_file_of_many_pieces_takes_several_transactions(
    share: SmbShare, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "INTERVALS_MAX", limit)
    target = share.open("to")
    chunks = [(0, 0, 30_000), (30_000, 30_000, len(DATA) - 30_000)]
    assert copy(share, share.open("from"), target, chunks) == ("SUCCESS", (2, 0, len(DATA)))
    assert share.read(target) == DATA


def test_beyond_the_source(share: SmbShare) -> None:
    source, target = share.open("from"), share.open("to")
    assert copy(share, source, target, [(1024, 0, 65_536)]) == ("INVALID_VIEW_SIZE", (0, 0, 0))
    assert share.read(target) == b""
    several = [(0, 0, 4096), (65_000, 4096, 537), (0, 9000, 10)]
    assert copy(share, source, target, several) == ("INVALID_VIEW_SIZE", (1, 0, 4096))
    assert share.read(target) == DATA[:4096]


@pytest.mark.parametrize(("path", "at"), [("from", 5), ("to", 105)])
def test_locks_of_other_clients(share: SmbShare, path: str, at: int) -> None:
    source, target, other = share.open("from"), share.open("to"), share.open(path)
    share.files.lock(other.file_id, other.handle_id, (at, 1, True))
    assert copy(share, source, target, [(0, 100, 10)]) == ("FILE_LOCK_CONFLICT", (0, 0, 0))
    assert copy(share, source, target, [(10, 0, 10), (0, 100, 10)]) == ("FILE_LOCK_CONFLICT", (1, 0, 10))


def test_the_largest_file(share: SmbShare) -> None:
    source, target = share.open("from"), share.open("to")
    assert copy(share, source, target, [(0, (4 << 40) - 9, 10)]) == ("DISK_FULL", (0, 0, 0))
    assert copy(share, source, target, [(0, (1 << 64) - 1, 10)]) == ("DISK_FULL", (0, 0, 0))


@pytest.mark.parametrize(
    "chunks",
    [
        [(0, 0, 1)] * 257,
        [(0, 0, 0)],
        [(0, 0, 10), (0, 0, 0)],
        [(0, 0, MIB + 1)],
        [(0, 0, MIB)] * 16 + [(0, 0, 1)],
    ],
)
def test_limits_are_named(share: SmbShare, chunks: Chunks) -> None:
    found = copy(share, share.open("from"), share.open("to"), chunks)
    assert found == ("INVALID_PARAMETER", (256, MIB, 16 * MIB))
    assert share.read(share.open("to")) == b""


def test_malformed_requests(share: SmbShare) -> None:
    target, key = share.open("to"), key_of(share, share.open("from"))
    assert status_of(share, target, request_of(key, [(0, 0, 1)], room=11)) == "INVALID_PARAMETER"
    assert status_of(share, target, request_of(key, [(0, 0, 1)], count=2)) == "INVALID_PARAMETER"
    assert status_of(share, target, body(Fsctl.SRV_COPYCHUNK, key)) == "INVALID_PARAMETER"


def test_keys(share: SmbShare) -> None:
    source, target = share.open("from"), share.open("to")
    key = key_of(share, source)
    assert status_of(share, target, request_of(b"deadbeef" * 3, [(0, 0, 1)])) == "OBJECT_NAME_NOT_FOUND"
    assert status_of(share, target, request_of(key, [(0, 0, 1)])) == "SUCCESS"
    del share.tree.opens[source.id.volatile]
    assert status_of(share, target, request_of(key, [(0, 0, 1)])) == "OBJECT_NAME_NOT_FOUND"
    assert status_of(share, target, body(Fsctl.SRV_REQUEST_RESUME_KEY, room=31)) == "BUFFER_TOO_SMALL"


def test_access(share: SmbShare) -> None:
    key, unreadable = key_of(share, share.open("from")), key_of(share, share.open("from", ALL & ~0x21))
    write_only, read_only = share.open("to", ALL & ~1), share.open("to", ALL & ~6)
    write = Fsctl.SRV_COPYCHUNK_WRITE
    executable = key_of(share, share.open("from", 0x20))
    assert status_of(share, share.open("to"), request_of(unreadable, [(0, 0, 1)])) == "ACCESS_DENIED"
    assert status_of(share, share.open("to"), request_of(executable, [(0, 0, 1)])) == "SUCCESS"
    assert status_of(share, read_only, request_of(key, [(0, 0, 1)], code=write)) == "ACCESS_DENIED"
    assert status_of(share, write_only, request_of(key, [(0, 0, 1)])) == "ACCESS_DENIED"
    assert status_of(share, write_only, request_of(key, [(0, 0, 1)], code=write)) == "SUCCESS"
    directory = share.open("d")
    assert status_of(share, directory, request_of(key, [(0, 0, 1)])) == "INVALID_DEVICE_REQUEST"
    of_directory = request_of(key_of(share, directory), [(0, 0, 1)])
    assert status_of(share, share.open("to"), of_directory) == "INVALID_DEVICE_REQUEST"
