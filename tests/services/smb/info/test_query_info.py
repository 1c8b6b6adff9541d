"""QUERY_INFO: every class that clients ask for, the access that it needs, and buffers that are too small."""

import struct

import pytest

from kyanite.services.smb.info.query_info import query_info
from kyanite.services.smb.state import Open
from kyanite.wire.malformed import Malformed
from kyanite.wire.smb2.negotiate import Dialect
from kyanite.wire.smb2.status import Status
from tests.services.smb.requests import ALL, SmbShare

FILE, FILE_SYSTEM, SECURITY, QUOTA = 1, 2, 3, 4
LENGTH = 5000


@pytest.fixture
def share() -> SmbShare:
    made = SmbShare()
    made.files.make_directory("d")
    made.files.make_file("d/File.txt", LENGTH)
    return made


def body(kind: int, information_class: int, size: int = 65536, additional: int = 0) -> bytes:
    return struct.pack("<HBBIHHIIIQQ", 41, kind, information_class, size, 0, 0, 0, additional, 0, 0, 0)


def query(share: SmbShare, opened: Open, kind: int, information_class: int, additional: int = 0) -> bytes:
    answer = share.call(query_info, opened, body(kind, information_class, additional=additional))
    assert answer.status == Status.SUCCESS
    return data_of(answer.body)


def data_of(encoded: object) -> bytes:
    assert isinstance(encoded, bytes)
    size, offset, length = struct.unpack_from("<HHI", encoded)
    assert (size, offset, length) == (9, 72, len(encoded) - 8)
    return encoded[8:]


def status_of(share: SmbShare, opened: Open, kind: int, information_class: int, size: int = 65536) -> str:
    try:
        return share.status_of(query_info, opened, body(kind, information_class, size)).name
    except Malformed as malformed:
        return malformed.code


def test_a_file(share: SmbShare) -> None:
    opened = share.open("d/File.txt", options=0x2 | 0x40)
    opened.position = 17
    entry_id = share.files.find_id("d/File.txt")
    basic = query(share, opened, FILE, 4)
    times = struct.unpack_from("<QQQQ", basic)
    assert times[1] == times[2]
    assert struct.unpack_from("<II", basic, 32) == (0x20, 0)
    standard = query(share, opened, FILE, 5)
    assert struct.unpack("<QQIBBH", standard) == (8192, LENGTH, 1, 0, 0, 0)
    internal = query(share, opened, FILE, 6)
    assert struct.unpack("<Q", internal) == (entry_id,)
    name = "\\d\\File.txt".encode("utf-16-le")
    rest = struct.pack("<IIQIII", 0, ALL, 17, 0x2, 0, len(name)) + name
    assert query(share, opened, FILE, 18) == basic + standard + internal + rest
    assert query(share, opened, FILE, 34) == basic[:32] + standard[:16] + struct.pack("<II", 0x20, 0)
    assert query(share, opened, FILE, 35) == struct.pack("<II", 0x20, 0)
    assert query(share, opened, FILE, 8) == struct.pack("<I", ALL)
    assert query(share, opened, FILE, 14) == struct.pack("<Q", 17)
    assert query(share, opened, FILE, 16) == struct.pack("<I", 2)
    assert query(share, opened, FILE, 22)[24:] == "::$DATA".encode("utf-16-le")
    assert query(share, opened, FILE, 48)[4:] == "d\\File.txt".encode("utf-16-le")
    assert query(share, opened, FILE, 59)[:16] == struct.pack("<QQ", share.files.id, entry_id)


@pytest.mark.parametrize(
    ("name", "is_short"),
    [
        ("File.txt", True),
        ("README", True),
        ("a~1.b", True),
        ("longer-name.txt", False),
        ("a.html", False),
        (".x", False),
    ],
)
def test_a_name_that_is_short_is_its_own_alternate(share: SmbShare, name: str, is_short: bool) -> None:
    share.files.make_file(f"d/{name}")
    opened = share.open(f"d/{name}")
    if is_short:
        encoded = name.encode("utf-16-le")
        assert query(share, opened, FILE, 21) == struct.pack("<I", len(encoded)) + encoded
        assert status_of(share, opened, FILE, 21, 7) == "INFO_LENGTH_MISMATCH"
    else:
        assert status_of(share, opened, FILE, 21) == "OBJECT_NAME_NOT_FOUND"


def test_a_directory(share: SmbShare) -> None:
    opened = share.open("d")
    assert query(share, opened, FILE, 4)[32:36] == struct.pack("<I", 0x10)
    assert struct.unpack("<QQIBBH", query(share, opened, FILE, 5)) == (0, 0, 1, 0, 1, 0)
    assert query(share, opened, FILE, 22) == b""


def test_the_root_has_the_id_of_its_share(share: SmbShare) -> None:
    opened = share.open("")
    assert query(share, opened, FILE, 6) == struct.pack("<Q", share.files.id)
    assert query(share, opened, FILE, 18)[96:] == struct.pack("<I", 2) + "\\".encode("utf-16-le")


def test_a_file_that_is_to_be_deleted_has_no_links(share: SmbShare) -> None:
    opened = share.open("d/File.txt")
    share.files.mark("d/File.txt")
    assert struct.unpack("<QQIBBH", query(share, opened, FILE, 5))[2:4] == (0, 1)


def test_a_file_of_a_snapshot(share: SmbShare) -> None:
    at = share.take_snapshot()
    share.files.make_file("d/File.txt", 1)
    old = share.open_snapshot("d/File.txt", at, is_directory=False)
    assert query(share, old, FILE, 5)[8:16] == struct.pack("<Q", LENGTH)
    assert query(share, share.open("d/File.txt"), FILE, 5)[8:16] == struct.pack("<Q", 1)


def test_a_handle_that_was_closed_from_outside(share: SmbShare) -> None:
    opened = share.open("d/File.txt")
    share.open("d/File.txt")
    share.files.close(opened.file_id, opened.handle_id)
    assert share.refusal_of(query_info, opened, body(FILE, 5)) == "HANDLE_CLOSED"


@pytest.mark.parametrize(
    ("information_class", "status"),
    [
        (15, "NO_EAS_ON_FILE"),
        *(
            (each, "INVALID_INFO_CLASS")
            for each in (1, 9, 10, 11, 12, 13, 19, 20, 23, 36, 39, 40, 64, 65, 99)
        ),
    ],
)
def test_classes_without_an_answer(share: SmbShare, information_class: int, status: str) -> None:
    assert status_of(share, share.open("d/File.txt"), FILE, information_class) == status


@pytest.mark.parametrize(
    ("information_class", "needed"), [(4, 0x80), (18, 0x80), (34, 0x80), (35, 0x80), (15, 0x8)]
)
def test_access_that_a_class_needs(share: SmbShare, information_class: int, needed: int) -> None:
    without = share.open("d/File.txt", ALL & ~needed)
    assert status_of(share, without, FILE, information_class) == "ACCESS_DENIED"
    assert status_of(share, share.open("d/File.txt", needed), FILE, information_class) != "ACCESS_DENIED"


@pytest.mark.parametrize("information_class", [5, 6, 7, 8, 14, 16, 17, 22, 59])
def test_classes_that_need_no_access(share: SmbShare, information_class: int) -> None:
    assert status_of(share, share.open("d/File.txt", 0x100000), FILE, information_class) == "SUCCESS"


FIXED = {4: 40, 5: 24, 6: 8, 7: 4, 8: 4, 14: 8, 16: 4, 17: 4, 18: 104, 22: 32, 28: 16, 34: 56, 35: 8, 59: 24}


@pytest.mark.parametrize(("information_class", "fixed"), FIXED.items())
def test_buffers_that_are_too_small(share: SmbShare, information_class: int, fixed: int) -> None:
    opened = share.open("d/File.txt")
    whole = len(query(share, opened, FILE, information_class))
    assert status_of(share, opened, FILE, information_class, fixed - 1) == "INFO_LENGTH_MISMATCH"
    expected = "BUFFER_OVERFLOW" if whole > fixed else "SUCCESS"
    assert status_of(share, opened, FILE, information_class, fixed) == expected
    answer = share.call(query_info, opened, body(FILE, information_class, fixed))
    assert len(data_of(answer.body)) == min(whole, fixed)


def test_normalized_names_are_of_3_1_1() -> None:
    share = SmbShare(Dialect.SMB_3_0)
    assert status_of(share, share.open(""), FILE, 48) == "NOT_SUPPORTED"


def test_the_volume(share: SmbShare) -> None:
    opened = share.open("")
    total = 5120 << 18
    free = ((5120 << 30) - LENGTH) // 4096
    assert query(share, opened, FILE_SYSTEM, 3) == struct.pack("<QQII", total, free, 8, 512)
    assert query(share, opened, FILE_SYSTEM, 7) == struct.pack("<QQQII", total, free, free, 8, 512)
    assert query(share, opened, FILE_SYSTEM, 1)[18:] == "share".encode("utf-16-le")
    assert query(share, opened, FILE_SYSTEM, 4) == struct.pack("<II", 7, 0x20)
    assert query(share, opened, FILE_SYSTEM, 5)[12:] == "NTFS".encode("utf-16-le")
    assert len(query(share, opened, FILE_SYSTEM, 11)) == 28
    for other in (2, 6, 8, 9, 99):
        assert status_of(share, opened, FILE_SYSTEM, other) == "INVALID_INFO_CLASS"
    assert status_of(share, opened, FILE_SYSTEM, 3, 23) == "INFO_LENGTH_MISMATCH"
    assert status_of(share, opened, FILE_SYSTEM, 5, 18) == "BUFFER_OVERFLOW"


def test_other_types(share: SmbShare) -> None:
    opened = share.open("")
    assert status_of(share, opened, QUOTA, 0) == "NOT_SUPPORTED"
    assert status_of(share, opened, 5, 4) == "INVALID_PARAMETER"


def test_a_size_that_was_not_paid_for(share: SmbShare) -> None:
    opened = share.open("")
    assert status_of(share, opened, FILE, 4, 128 * 65536) == "SUCCESS"
    assert status_of(share, opened, FILE, 4, 128 * 65536 + 1) == "INVALID_PARAMETER"
