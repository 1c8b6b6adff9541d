"""SET_INFO: what clients set is stored, and what they cannot set is refused with the right status."""

import struct

import pytest
from msgspec.structs import replace

from kyanite.model.files import share as file_share
from kyanite.model.files import tree
from kyanite.model.files.entry import Entry
from kyanite.services.smb.info.query_directory import query_directory
from kyanite.services.smb.info.query_info import query_info
from kyanite.services.smb.info.set_info import set_info
from kyanite.services.smb.state import Open
from kyanite.values import Instant
from kyanite.wire import security_descriptor
from kyanite.wire.malformed import Malformed
from tests.model.content.world import outcome
from tests.model.files.builders import SHARE
from tests.services.smb.requests import ALL, SmbShare

FILE, FILE_SYSTEM, SECURITY, QUOTA = 1, 2, 3, 4
BASIC, POSITION, MODE, ALLOCATION, END_OF_FILE = 4, 14, 16, 19, 20
LENGTH = 5000
OFFSET = 504_911_232_000_000_000
YEAR_2024 = 133_485_408_000_000_000


@pytest.fixture
def share() -> SmbShare:
    made = SmbShare()
    made.files.make_directory("d")
    made.files.make_file("f", LENGTH)
    return made


def body(kind: int, information_class: int, data: bytes, additional: int = 0) -> bytes:
    fixed = struct.pack("<HBBIHHIQQ", 33, kind, information_class, len(data), 96, 0, additional, 0, 0)
    return fixed + (data or b"\0")


def put(share: SmbShare, opened: Open, information_class: int, data: bytes, kind: int = FILE) -> str:
    return call(share, opened, body(kind, information_class, data))


def call(share: SmbShare, opened: Open, request: bytes) -> str:
    try:
        if reason := share.refusal_of(set_info, opened, request):
            return reason
    except Malformed as malformed:
        return malformed.code
    return share.last_status


def basic(creation: int = 0, last_write: int = 0, change: int = 0, attributes: int = 0) -> bytes:
    return struct.pack("<qqqqII", creation, 0, last_write, change, attributes, 0)


def size(value: int) -> bytes:
    return struct.pack("<q", value)


def entry_of(share: SmbShare, path: str) -> Entry:
    return outcome(share.engine.read(lambda snap: tree.load(snap, share.files.path(path), None).entry))


def test_times(share: SmbShare) -> None:
    opened = share.open("f")
    assert put(share, opened, BASIC, basic(YEAR_2024, YEAR_2024 + 1, YEAR_2024 + 2)) == "SUCCESS"
    entry = entry_of(share, "f")
    assert [
        each - OFFSET - YEAR_2024 for each in (entry.created_at, entry.last_write_at, entry.changed_at)
    ] == [0, 1, 2]
    before = entry.modified_at
    assert put(share, opened, BASIC, basic()) == "SUCCESS"
    assert entry_of(share, "f").modified_at == before
    assert put(share, opened, BASIC, basic(creation=YEAR_2024 + 5)) == "SUCCESS"
    assert entry_of(share, "f").created_at - OFFSET == YEAR_2024 + 5
    assert entry_of(share, "f").last_write_at - OFFSET == YEAR_2024 + 1


def test_the_time_of_the_last_access(share: SmbShare) -> None:
    opened = share.open("f")
    assert times_of(share, opened)[1] == times_of(share, opened)[2]
    data = struct.pack("<qqqqII", 0, YEAR_2024, 0, 0, 0, 0)
    assert put(share, opened, BASIC, data) == "SUCCESS"
    assert times_of(share, opened)[1] == YEAR_2024
    assert put(share, opened, END_OF_FILE, size(3)) == "SUCCESS"
    assert times_of(share, opened)[1] == YEAR_2024
    pattern = "f".encode("utf-16-le")
    query = struct.pack("<HBBIQQHHI", 33, 37, 0, 0, 0, 0, 96, len(pattern), 4096) + pattern
    listed = share.call(query_directory, share.open(""), query).body
    assert isinstance(listed, bytes)
    assert struct.unpack_from("<QQQQ", listed, 16) == times_of(share, opened)


def times_of(share: SmbShare, opened: Open) -> tuple[int, ...]:
    query = struct.pack("<HBBIHHIIIQQ", 41, FILE, BASIC, 100, 0, 0, 0, 0, 0, 0, 0)
    answer = share.call(query_info, opened, query).body
    assert isinstance(answer, bytes)
    return struct.unpack_from("<QQQQ", answer, 8)


def test_the_latest_time_that_rest_can_show(share: SmbShare) -> None:
    assert put(share, share.open("f"), BASIC, basic(creation=(1 << 63) - 1)) == "SUCCESS"
    assert entry_of(share, "f").created_at == Instant(3_155_378_975_999_999_999)


@pytest.mark.parametrize("time", [-3, -(1 << 63)])
def test_times_that_mean_nothing(share: SmbShare, time: int) -> None:
    assert put(share, share.open("f"), BASIC, basic(last_write=time)) == "INVALID_PARAMETER"


@pytest.mark.parametrize(
    ("times", "keeps_last_write", "keeps_change"),
    [
        ([(0, 0)], False, False),
        ([(-1, 0)], True, False),
        ([(0, -1)], False, True),
        ([(YEAR_2024, YEAR_2024)], True, True),
        ([(-1, -1), (0, 0)], True, True),
        ([(-1, -1), (-2, 0)], False, True),
        ([(YEAR_2024, YEAR_2024), (-2, -2)], False, False),
    ],
)
def test_times_that_a_client_keeps(
    share: SmbShare, times: list[tuple[int, int]], keeps_last_write: bool, keeps_change: bool
) -> None:
    opened = share.open("f")
    for last_write, change in times:
        assert put(share, opened, BASIC, basic(last_write=last_write, change=change)) == "SUCCESS"
    before = entry_of(share, "f")
    assert put(share, opened, END_OF_FILE, size(10)) == "SUCCESS"
    after = entry_of(share, "f")
    assert (after.last_write_at == before.last_write_at) == keeps_last_write
    assert (after.changed_at == before.changed_at) == keeps_change
    assert put(share, share.open("f"), END_OF_FILE, size(20)) == "SUCCESS"
    other = entry_of(share, "f")
    assert other.last_write_at != after.last_write_at
    assert other.changed_at != after.changed_at


@pytest.mark.parametrize(
    ("path", "wanted", "found"),
    [
        ("f", 0x80, 0x80),
        ("f", 0x1, 0x1),
        ("f", 0x27 | 0x80, 0x27),
        ("d", 0x80, 0x10),
        ("d", 0x2, 0x12),
        ("d", 0x10, 0x10),
    ],
)
def test_attributes(share: SmbShare, path: str, wanted: int, found: int) -> None:
    opened = share.open(path)
    assert put(share, opened, BASIC, basic(attributes=wanted)) == "SUCCESS"
    assert entry_of(share, path).attributes == found
    assert put(share, opened, BASIC, basic(creation=YEAR_2024)) == "SUCCESS"
    assert entry_of(share, path).attributes == found


@pytest.mark.parametrize(("path", "wanted"), [("f", 0x10), ("d", 0x100)])
def test_attributes_of_the_other_kind(share: SmbShare, path: str, wanted: int) -> None:
    assert put(share, share.open(path), BASIC, basic(attributes=wanted)) == "INVALID_PARAMETER"


def test_a_file_becomes_shorter_and_longer(share: SmbShare) -> None:
    opened = share.open("f")
    for length in (0, 37, 1 << 30):
        assert put(share, opened, END_OF_FILE, size(length)) == "SUCCESS"
        assert entry_of(share, "f").length == length
    assert put(share, opened, END_OF_FILE, size(-1)) == "INVALID_PARAMETER"
    assert put(share, opened, END_OF_FILE, size((4 << 40) + 1)) == "SHARE_SIZE_LIMIT_REACHED"
    assert entry_of(share, "f").length == 1 << 30


def test_the_same_length_changes_nothing(share: SmbShare) -> None:
    before = entry_of(share, "f")
    assert put(share, share.open("f"), END_OF_FILE, size(LENGTH)) == "SUCCESS"
    assert entry_of(share, "f") == before


def test_a_client_may_go_on_with_what_it_has_made_read_only(share: SmbShare) -> None:
    opened = share.open("f")
    assert put(share, opened, BASIC, basic(attributes=0x1)) == "SUCCESS"
    assert put(share, opened, END_OF_FILE, size(3)) == "SUCCESS"
    assert entry_of(share, "f").length == 3


def test_other_clients_locks(share: SmbShare) -> None:
    opened, other = share.open("f"), share.open("f")
    share.files.lock(other.file_id, other.handle_id, (10, 5, True))
    assert put(share, opened, END_OF_FILE, size(12)) == "FILE_LOCK_CONFLICT"
    assert put(share, other, END_OF_FILE, size(12)) == "SUCCESS"


def test_allocation(share: SmbShare) -> None:
    opened = share.open("f")
    assert put(share, opened, ALLOCATION, size(1_000_000)) == "SUCCESS"
    assert entry_of(share, "f").length == LENGTH
    assert allocated(share, opened) == 1_003_520
    assert allocated(share, share.open("f")) == 8192
    assert put(share, opened, ALLOCATION, size(4096)) == "SUCCESS"
    assert (entry_of(share, "f").length, allocated(share, opened)) == (4096, 4096)
    assert put(share, opened, ALLOCATION, size(0)) == "SUCCESS"
    assert (entry_of(share, "f").length, allocated(share, opened)) == (0, 0)


def allocated(share: SmbShare, opened: Open) -> int:
    query = struct.pack("<HBBIHHIIIQQ", 41, FILE, 5, 100, 0, 0, 0, 0, 0, 0, 0)
    answer = share.call(query_info, opened, query).body
    assert isinstance(answer, bytes)
    return int.from_bytes(answer[8:16], "little")


@pytest.mark.parametrize(
    ("information_class", "length"), [(ALLOCATION, 9000), (ALLOCATION, 1), (END_OF_FILE, LENGTH)]
)
def test_a_handle_that_was_closed_from_outside(share: SmbShare, information_class: int, length: int) -> None:
    opened = share.open("f")
    share.open("f")
    share.files.close(opened.file_id, opened.handle_id)
    assert put(share, opened, information_class, size(length)) == "HANDLE_CLOSED"


def test_the_quota(share: SmbShare) -> None:
    outcome(
        file_share.change(
            share.engine,
            SHARE,
            None,
            lambda old, _: replace(old, settings=replace(old.settings, quota_gib=1)),
        )
    )
    opened = share.open("f")
    assert put(share, opened, ALLOCATION, size(1 << 30)) == "SUCCESS"
    assert put(share, opened, ALLOCATION, size((1 << 30) + 1)) == "SHARE_SIZE_LIMIT_REACHED"
    assert put(share, opened, END_OF_FILE, size((1 << 30) + 1)) == "SHARE_SIZE_LIMIT_REACHED"


def test_position_and_mode(share: SmbShare) -> None:
    opened = share.open("f", options=0x1002)
    assert put(share, opened, POSITION, size(123456)) == "SUCCESS"
    assert put(share, opened, POSITION, size(-1)) == "INVALID_PARAMETER"
    assert opened.position == 123456
    for mode, status in (
        (0x6, "SUCCESS"),
        (1, "INVALID_PARAMETER"),
        (0x30, "INVALID_PARAMETER"),
        (0, "SUCCESS"),
    ):
        assert put(share, opened, MODE, struct.pack("<I", mode)) == status
    assert opened.options == 0x1000


@pytest.mark.parametrize(
    ("information_class", "data", "needed"),
    [
        (BASIC, basic(attributes=0x2), 0x100),
        (END_OF_FILE, size(1), 0x2),
        (ALLOCATION, size(1), 0x2),
        (15, bytes(16), 0x10),
    ],
)
def test_access_that_a_class_needs(share: SmbShare, information_class: int, data: bytes, needed: int) -> None:
    assert put(share, share.open("f", ALL & ~needed), information_class, data) == "ACCESS_DENIED"
    assert put(share, share.open("f", needed), information_class, data) != "ACCESS_DENIED"


@pytest.mark.parametrize(
    ("kind", "information_class", "status"),
    [
        (FILE, 15, "EAS_NOT_SUPPORTED"),
        (FILE, 11, "NOT_SUPPORTED"),
        (FILE, 39, "NOT_SUPPORTED"),
        (FILE, 40, "NOT_SUPPORTED"),
        (FILE, 18, "INVALID_INFO_CLASS"),
        (FILE, 99, "INVALID_INFO_CLASS"),
        (FILE_SYSTEM, 6, "ACCESS_DENIED"),
        (FILE_SYSTEM, 2, "INVALID_INFO_CLASS"),
        (QUOTA, 0, "NOT_SUPPORTED"),
        (7, 4, "INVALID_PARAMETER"),
    ],
)
def test_what_cannot_be_set(share: SmbShare, kind: int, information_class: int, status: str) -> None:
    assert put(share, share.open("f"), information_class, bytes(100), kind) == status


@pytest.mark.parametrize(("information_class", "fixed"), [(4, 40), (14, 8), (16, 4), (19, 8), (20, 8)])
def test_buffers_that_are_too_short(share: SmbShare, information_class: int, fixed: int) -> None:
    assert put(share, share.open("f"), information_class, bytes(fixed - 1)) == "INFO_LENGTH_MISMATCH"


@pytest.mark.parametrize("information_class", [ALLOCATION, END_OF_FILE])
def test_a_directory_has_no_size(share: SmbShare, information_class: int) -> None:
    assert put(share, share.open("d"), information_class, size(0)) == "INVALID_PARAMETER"


def test_snapshots_do_not_change(share: SmbShare) -> None:
    at = share.take_snapshot()
    opened = share.open_snapshot("f", at, is_directory=False)
    for information_class, data in (
        (BASIC, basic(attributes=2)),
        (END_OF_FILE, size(1)),
        (ALLOCATION, size(1)),
    ):
        assert put(share, opened, information_class, data) == "MEDIA_WRITE_PROTECTED"
    descriptor = security_descriptor.encode("O:SYG:SYD:(A;;FA;;;WD)")
    assert call(share, opened, body(SECURITY, 0, descriptor, 4)) == "MEDIA_WRITE_PROTECTED"


def test_what_a_snapshot_has_is_kept(share: SmbShare) -> None:
    at = share.take_snapshot()
    opened = share.open("f")
    assert put(share, opened, END_OF_FILE, size(1)) == "SUCCESS"
    old = share.open_snapshot("f", at, is_directory=False)
    assert outcome(share.engine.read(old.find)).entry.length == LENGTH


# --- Security descriptors

OWNER, GROUP, DACL, SACL = 1, 2, 4, 8


def descriptor_of(share: SmbShare, opened: Open, parts: int, room: int = 65536) -> bytes:
    query = struct.pack("<HBBIHHIIIQQ", 41, SECURITY, 0, room, 0, 0, 0, parts, 0, 0, 0)
    answer = share.call(query_info, opened, query).body
    assert isinstance(answer, bytes)
    return answer[8:]


@pytest.mark.parametrize("path", ["f", "d", ""])
def test_descriptors_are_replaced_part_by_part(share: SmbShare, path: str) -> None:
    opened = share.open(path)
    new = security_descriptor.encode("O:BAG:BUD:P(A;OICI;FA;;;WD)")
    for parts in (OWNER, GROUP, DACL):
        assert call(share, opened, body(SECURITY, 0, new, parts)) == "SUCCESS"
    text = security_descriptor.decode(descriptor_of(share, opened, OWNER | GROUP | DACL))
    assert text == "O:BAG:BUD:P(A;OICI;FA;;;WD)"


@pytest.mark.parametrize(
    ("sent", "stored"), [("D:", "D:"), ("D:AI", "D:"), ("D:AR", "D:"), ("D:ARAI", "D:AI"), ("D:PAI", "D:P")]
)
def test_when_a_list_counts_as_inherited(share: SmbShare, sent: str, stored: str) -> None:
    opened = share.open("f")
    new = security_descriptor.encode(f"O:BAG:BU{sent}(A;;FA;;;WD)")
    assert call(share, opened, body(SECURITY, 0, new, OWNER | GROUP | DACL)) == "SUCCESS"
    text = security_descriptor.decode(descriptor_of(share, opened, OWNER | GROUP | DACL))
    assert text == f"O:BAG:BU{stored}(A;;FA;;;WD)"


def test_one_part_leaves_the_others(share: SmbShare) -> None:
    opened = share.open("f")
    before = security_descriptor.decode(descriptor_of(share, opened, OWNER | GROUP | DACL))
    assert (
        call(share, opened, body(SECURITY, 0, security_descriptor.encode("O:BAG:BUD:"), OWNER)) == "SUCCESS"
    )
    after = security_descriptor.decode(descriptor_of(share, opened, OWNER | GROUP | DACL))
    assert after == before.replace("O:SY", "O:BA", 1)
    assert len(descriptor_of(share, opened, OWNER)) == 20 + 16
    assert descriptor_of(share, opened, 0)[:4] == b"\1\0\0\x80"


def test_a_descriptor_is_inherited_by_what_is_made_later(share: SmbShare) -> None:
    new = security_descriptor.encode("O:BAG:BUD:(A;OICI;FA;;;WD)")
    assert call(share, share.open("d"), body(SECURITY, 0, new, OWNER | GROUP | DACL)) == "SUCCESS"
    share.files.make_file("d/g")
    text = security_descriptor.decode(descriptor_of(share, share.open("d/g"), OWNER | GROUP | DACL))
    assert text == "O:BAG:BUD:AI(A;ID;FA;;;WD)"


@pytest.mark.parametrize(
    ("parts", "needed"), [(OWNER, 0x80000), (GROUP, 0x80000), (DACL, 0x40000), (SACL, 0x1000000)]
)
def test_access_to_set_a_part(share: SmbShare, parts: int, needed: int) -> None:
    new = security_descriptor.encode("O:BAG:BUD:")
    assert call(share, share.open("f", ALL & ~needed), body(SECURITY, 0, new, parts)) == "ACCESS_DENIED"
    assert call(share, share.open("f", needed), body(SECURITY, 0, new, parts)) == "SUCCESS"


def test_access_to_read_a_descriptor(share: SmbShare) -> None:
    query = struct.pack("<HBBIHHIIIQQ", 41, SECURITY, 0, 65536, 0, 0, 0, DACL, 0, 0, 0)
    assert share.status_of(query_info, share.open("f", ALL & ~0x20000), query).name == "ACCESS_DENIED"
    assert len(descriptor_of(share, share.open("f", 0x80), 0)) == 20
    system = struct.pack("<HBBIHHIIIQQ", 41, SECURITY, 0, 65536, 0, 0, 0, SACL, 0, 0, 0)
    assert share.status_of(query_info, share.open("f"), system).name == "ACCESS_DENIED"


def test_a_buffer_too_small_for_a_descriptor(share: SmbShare) -> None:
    opened = share.open("f")
    needed = len(descriptor_of(share, opened, OWNER))
    assert len(descriptor_of(share, opened, OWNER, needed)) == needed
    failed = share.failure_of(query_info, opened, _owner_query(needed - 1))
    assert failed.status.name == "BUFFER_TOO_SMALL"
    assert failed.body[8:] == struct.pack("<III", 4, 0, needed)
    older = SmbShare(share.client.dialect.SMB_3_0_2)
    failed = older.failure_of(query_info, older.open(""), _owner_query(0))
    assert failed.body == struct.pack("<HBBII", 9, 0, 0, 4, needed)


def _owner_query(room: int) -> bytes:
    return struct.pack("<HBBIHHIIIQQ", 41, SECURITY, 0, room, 0, 0, 0, OWNER, 0, 0, 0)


@pytest.mark.parametrize("data", [b"", b"\1\0\0\x80", bytes(20), b"\1\0\0\x80" + b"\xff" * 16])
def test_what_is_no_descriptor(share: SmbShare, data: bytes) -> None:
    assert call(share, share.open("f"), body(SECURITY, 0, data, DACL)) == "INVALID_PARAMETER"
