"""Control codes: which are answered, what they need, and how the others are refused."""

import struct

import pytest

from kyanite.services.smb.controls.ioctl import control
from kyanite.services.smb.request import Answer, Request
from kyanite.services.smb.state import Open
from kyanite.values import TICKS_PER_SECOND, Instant
from kyanite.wire.malformed import Malformed
from kyanite.wire.smb2 import ioctl
from kyanite.wire.smb2.fsctl import Fsctl
from tests.services.smb.requests import ALL, SmbShare


@pytest.fixture
def share() -> SmbShare:
    made = SmbShare()
    made.files.make_directory("d")
    made.files.make_file("f", 20_000)
    return made


async def handler(request: Request) -> Answer:
    return await control(request, ioctl.decode(request.message))


def body(code: int, data: bytes = b"", room: int = 65536, flags: int = 1) -> bytes:
    fixed = struct.pack("<HHIQQIIIIIIII", 57, 0, code, 1, 2, 120, len(data), 0, 120, 0, room, flags, 0)
    return fixed + data


def output(answer: Answer) -> bytes:
    assert isinstance(answer.body, bytes)
    fields = struct.unpack_from("<HHIQQIIIIII", answer.body)
    assert (fields[0], fields[5:9]) == (49, (112, 0, 112, len(answer.body) - 48))
    return answer.body[48:]


def status_of(share: SmbShare, opened: Open | None, request: bytes) -> str:
    try:
        return share.refusal_of(handler, opened, request) or share.last_status
    except Malformed as malformed:
        return malformed.code


def test_flags_that_are_no_fsctl(share: SmbShare) -> None:
    assert status_of(share, share.open("f"), body(Fsctl.GET_COMPRESSION, flags=0)) == "NOT_SUPPORTED"


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (Fsctl.DFS_GET_REFERRALS, "NOT_FOUND"),
        (Fsctl.DFS_GET_REFERRALS_EX, "NOT_FOUND"),
        (Fsctl.GET_REPARSE_POINT, "NOT_A_REPARSE_POINT"),
        (Fsctl.SET_REPARSE_POINT, "INVALID_DEVICE_REQUEST"),
        (Fsctl.SET_SPARSE, "INVALID_DEVICE_REQUEST"),
        (Fsctl.CREATE_OR_GET_OBJECT_ID, "INVALID_DEVICE_REQUEST"),
        (Fsctl.QUERY_NETWORK_INTERFACE_INFO, "INVALID_DEVICE_REQUEST"),
        (Fsctl.LMR_REQUEST_RESILIENCY, "INVALID_DEVICE_REQUEST"),
        (Fsctl.DUPLICATE_EXTENTS_TO_FILE, "INVALID_DEVICE_REQUEST"),
        (Fsctl.FILE_LEVEL_TRIM, "INVALID_DEVICE_REQUEST"),
        (Fsctl.SRV_READ_HASH, "INVALID_DEVICE_REQUEST"),
        (Fsctl.PIPE_TRANSCEIVE, "INVALID_DEVICE_REQUEST"),
        (Fsctl.PIPE_PEEK, "INVALID_DEVICE_REQUEST"),
        (Fsctl.PIPE_WAIT, "NOT_SUPPORTED"),
        (0x12345678, "INVALID_DEVICE_REQUEST"),
    ],
)
@pytest.mark.parametrize("names_a_file", [True, False])
def test_codes_that_are_refused(share: SmbShare, code: int, status: str, names_a_file: bool) -> None:
    assert status_of(share, share.open("f") if names_a_file else None, body(code, bytes(32))) == status


def test_a_code_that_needs_a_file(share: SmbShare) -> None:
    assert status_of(share, None, body(Fsctl.SRV_REQUEST_RESUME_KEY)) == "FILE_CLOSED"


def test_sizes_that_were_not_paid_for(share: SmbShare) -> None:
    request = body(Fsctl.GET_COMPRESSION, room=8 * 1024 * 1024 + 1)
    assert status_of(share, share.open("f"), request) == "INVALID_PARAMETER"


def test_no_file_is_compressed(share: SmbShare) -> None:
    opened = share.open("f")
    assert output(share.call(handler, opened, body(Fsctl.GET_COMPRESSION))) == b"\0\0"
    assert status_of(share, opened, body(Fsctl.GET_COMPRESSION, room=1)) == "BUFFER_TOO_SMALL"
    assert status_of(share, opened, body(Fsctl.SET_COMPRESSION, b"\0\0")) == "SUCCESS"
    assert status_of(share, opened, body(Fsctl.SET_COMPRESSION, b"\1\0")) == "NOT_SUPPORTED"
    assert status_of(share, opened, body(Fsctl.SET_COMPRESSION, b"\0")) == "INVALID_PARAMETER"
    assert (
        status_of(share, share.open("f", ALL & ~2), body(Fsctl.SET_COMPRESSION, b"\0\0")) == "ACCESS_DENIED"
    )


# --- Snapshots


def snapshots(share: SmbShare, room: int = 65536) -> bytes:
    return output(share.call(handler, share.open("f"), body(Fsctl.SRV_ENUMERATE_SNAPSHOTS, room=room)))


def test_a_share_without_snapshots(share: SmbShare) -> None:
    assert snapshots(share) == struct.pack("<III", 0, 0, 2) + bytes(2)
    assert snapshots(share, 16) == struct.pack("<III", 0, 0, 2) + bytes(2)
    request = body(Fsctl.SRV_ENUMERATE_SNAPSHOTS, room=15)
    assert status_of(share, share.open("f"), request) == "INVALID_PARAMETER"


def test_snapshots_are_listed_from_the_newest(share: SmbShare) -> None:
    share.now = Instant(638_500_000_000_000_000)
    for seconds in (0, 0.5, 1, 90):
        share.now = Instant(638_500_000_000_000_000 + int(seconds * TICKS_PER_SECOND))
        share.take_snapshot()
    tokens = ["@GMT-2024.04.29-15.08.10", "@GMT-2024.04.29-15.06.41", "@GMT-2024.04.29-15.06.40"]
    listed = "".join(token + "\0" for token in tokens).encode("utf-16-le") + bytes(2)
    assert snapshots(share) == struct.pack("<III", 3, 3, len(listed)) + listed
    assert snapshots(share, 12 + len(listed)) == struct.pack("<III", 3, 3, len(listed)) + listed
    assert snapshots(share, 11 + len(listed)) == struct.pack("<III", 3, 0, len(listed)) + bytes(4)


# --- Ranges


def zero(share: SmbShare, opened: Open, start: int, beyond: int) -> str:
    return status_of(share, opened, body(Fsctl.SET_ZERO_DATA, struct.pack("<qq", start, beyond)))


def test_data_becomes_zeros(share: SmbShare) -> None:
    opened = share.open("f")
    share.write("f", 0, b"x" * 16_000)
    assert zero(share, opened, 100, 9000) == "SUCCESS"
    assert share.read(opened) == b"x" * 100 + bytes(8900) + b"x" * 7000 + bytes(4000)
    assert zero(share, opened, 15_000, 1 << 40) == "SUCCESS"
    assert share.read(opened) == b"x" * 100 + bytes(8900) + b"x" * 6000 + bytes(5000)
    assert zero(share, opened, 1 << 40, 1 << 41) == "SUCCESS"
    assert zero(share, opened, 50, 50) == "SUCCESS"
    assert len(share.read(opened)) == 20_000


def test_zeros_that_are_refused(share: SmbShare) -> None:
    assert zero(share, share.open("f"), 5, 4) == "INVALID_PARAMETER"
    assert zero(share, share.open("f"), -1, 4) == "INVALID_PARAMETER"
    assert zero(share, share.open("d"), 0, 4) == "INVALID_PARAMETER"
    assert zero(share, share.open("f", ALL & ~2), 0, 4) == "ACCESS_DENIED"
    locking = share.open("f")
    share.files.lock(locking.file_id, locking.handle_id, (2, 1, True))
    assert zero(share, share.open("f"), 0, 4) == "FILE_LOCK_CONFLICT"
    assert zero(share, share.open("f"), 0, 2) == "SUCCESS"
    old = share.open_snapshot("f", share.take_snapshot(), is_directory=False)
    assert zero(share, old, 0, 4) == "MEDIA_WRITE_PROTECTED"


def allocated(
    share: SmbShare, opened: Open, start: int, length: int, room: int = 4096
) -> list[tuple[int, int]]:
    request = body(Fsctl.QUERY_ALLOCATED_RANGES, struct.pack("<qq", start, length), room)
    answer = share.call(handler, opened, request)
    share.last_status = answer.status.name
    return list(struct.iter_unpack("<QQ", output(answer)))


def test_which_ranges_are_stored(share: SmbShare) -> None:
    opened = share.open("f")
    assert allocated(share, opened, 0, 20_000) == []
    share.write("f", 5000, b"x" * 10)
    share.write("f", 19_000, b"x" * 10)
    assert allocated(share, opened, 0, 20_000) == [(4096, 4096), (16384, 20_000 - 16384)]
    assert allocated(share, opened, 5000, 3) == [(5000, 3)]
    assert allocated(share, opened, 0, 4096) == []
    assert allocated(share, opened, 30_000, 10) == []
    assert allocated(share, opened, 0, 20_000, 31) == [(4096, 4096)]
    assert share.last_status == "BUFFER_OVERFLOW"
    request = body(Fsctl.QUERY_ALLOCATED_RANGES, struct.pack("<qq", 0, 20_000), 15)
    assert status_of(share, opened, request) == "BUFFER_TOO_SMALL"


@pytest.mark.parametrize(("start", "length"), [(-1, 1), (0, -1), (1, (1 << 63) - 1)])
def test_ranges_that_are_none(share: SmbShare, start: int, length: int) -> None:
    request = body(Fsctl.QUERY_ALLOCATED_RANGES, struct.pack("<qq", start, length))
    assert status_of(share, share.open("f"), request) == "INVALID_PARAMETER"


def test_reading_ranges_needs_access(share: SmbShare) -> None:
    request = body(Fsctl.QUERY_ALLOCATED_RANGES, struct.pack("<qq", 0, 1))
    assert status_of(share, share.open("f", ALL & ~1), request) == "ACCESS_DENIED"
    assert status_of(share, share.open("d"), request) == "INVALID_PARAMETER"
