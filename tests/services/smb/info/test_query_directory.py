"""QUERY_DIRECTORY: patterns, positions, buffers that end in the middle, and what changes meanwhile."""

import struct
from collections.abc import Iterator

import pytest

from kyanite.model.files import scan
from kyanite.model.files.entry import Entry
from kyanite.model.files.scan import ScannedEntry
from kyanite.services.smb.info.query_directory import query_directory
from kyanite.services.smb.state import Open
from kyanite.wire.malformed import Malformed
from kyanite.wire.smb2.status import Status
from tests.services.smb.requests import ALL, SmbShare

RESTART, SINGLE, INDEX, REOPEN = 1, 2, 4, 0x10
ID_BOTH, NAMES = 37, 12


@pytest.fixture
def share() -> SmbShare:
    made = SmbShare()
    made.files.make_directory("d")
    for name in ("b.txt", "A.txt", "c", "Größe.doc"):
        made.files.make_file(f"d/{name}", 10)
    return made


def body(pattern: str, flags: int = 0, size: int = 65536, information_class: int = ID_BOTH) -> bytes:
    name = pattern.encode("utf-16-le")
    fixed = struct.pack("<HBBIQQHHI", 33, information_class, flags, 0, 0, 0, 96, len(name), size)
    return fixed + (name or b"\0")


def entries_of(data: bytes, name_at: int, length_at: int) -> Iterator[tuple[str, bytes]]:
    at = 0
    while True:
        (step,) = struct.unpack_from("<I", data, at)
        (length,) = struct.unpack_from("<I", data, at + length_at)
        start = at + name_at
        yield data[start : start + length].decode("utf-16-le"), data[at:start]
        if not step:
            assert start + length == len(data)
            return
        assert step % 8 == 0
        at += step


def listed(
    share: SmbShare,
    opened: Open,
    pattern: str,
    flags: int = 0,
    size: int = 65536,
    information_class: int = ID_BOTH,
) -> list[str]:
    encoded = share.call(query_directory, opened, body(pattern, flags, size, information_class)).body
    assert isinstance(encoded, bytes)
    name_at, length_at = (104, 60) if information_class == ID_BOTH else (12, 8)
    return [name for name, _ in entries_of(encoded[8:], name_at, length_at)]


def status_of(
    share: SmbShare,
    opened: Open,
    pattern: str,
    flags: int = 0,
    size: int = 65536,
    information_class: int = ID_BOTH,
) -> str:
    try:
        return share.status_of(query_directory, opened, body(pattern, flags, size, information_class)).name
    except Malformed as malformed:
        return malformed.code


def test_a_scanned_entry_has_the_fields_of_an_entry() -> None:
    assert ScannedEntry.__struct_fields__ == Entry.__struct_fields__


def test_all_entries_in_one_buffer(share: SmbShare) -> None:
    opened = share.open("d")
    assert listed(share, opened, "*") == [".", "..", "A.txt", "b.txt", "c", "Größe.doc"]
    assert status_of(share, opened, "*") == "NO_MORE_FILES"
    assert status_of(share, opened, "") == "NO_MORE_FILES"


def test_what_an_entry_says(share: SmbShare) -> None:
    encoded = share.call(query_directory, share.open("d"), body("b.txt")).body
    assert isinstance(encoded, bytes)
    ((name, fixed),) = entries_of(encoded[8:], 104, 60)
    assert name == "b.txt"
    assert struct.unpack_from("<QQI", fixed, 40) == (10, 4096, 0x20)
    assert struct.unpack_from("<Q", fixed, 96) == (share.files.find_id("d/b.txt"),)
    assert struct.unpack_from("<Q", fixed, 16) == struct.unpack_from("<Q", fixed, 24)


@pytest.mark.parametrize(("path", "ids"), [("", (None, None)), ("d", ("d", None)), ("d/e", ("d/e", "d"))])
def test_the_two_dots(share: SmbShare, path: str, ids: tuple[str | None, str | None]) -> None:
    share.files.make_directory("d/e")
    encoded = share.call(query_directory, share.open(path), body("*")).body
    assert isinstance(encoded, bytes)
    dots = list(entries_of(encoded[8:], 104, 60))[:2]
    found = [struct.unpack_from("<Q", fixed, 96)[0] for _, fixed in dots]
    assert [name for name, _ in dots] == [".", ".."]
    assert found == [share.files.id if each is None else share.files.find_id(each) for each in ids]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.txt", ["A.txt", "b.txt"]),
        ("a.TXT", ["A.txt"]),
        ("GRÖSSE*", []),
        ("grö*", ["Größe.doc"]),
        ("?", [".", "c"]),
        ("*.*", [".", "..", "A.txt", "b.txt", "Größe.doc"]),
        ('<"*', [".", "..", "A.txt", "b.txt", "c", "Größe.doc"]),
        ("<.txt", ["A.txt", "b.txt"]),
        (".", ["."]),
        ("..", [".."]),
        ("b*", ["b.txt"]),
    ],
)
def test_patterns(share: SmbShare, pattern: str, names: list[str]) -> None:
    opened = share.open("d")
    if names:
        assert listed(share, opened, pattern) == names
    else:
        assert status_of(share, opened, pattern) == "NO_SUCH_FILE"
    assert status_of(share, opened, pattern) == "NO_MORE_FILES"
    assert (status_of(share, opened, pattern, RESTART) == "SUCCESS") == bool(names)


def test_nothing_matches(share: SmbShare) -> None:
    opened = share.open("d")
    assert status_of(share, opened, "x*") == "NO_SUCH_FILE"
    assert status_of(share, opened, "x*") == "NO_MORE_FILES"
    assert status_of(share, opened, "x*", RESTART) == "NO_MORE_FILES"
    assert status_of(share, opened, "x*", REOPEN) == "NO_SUCH_FILE"


def test_the_first_pattern_stays(share: SmbShare) -> None:
    opened = share.open("d")
    assert listed(share, opened, "*.txt", SINGLE) == ["A.txt"]
    assert listed(share, opened, "c") == ["b.txt"]
    assert listed(share, opened, "c", RESTART) == ["A.txt", "b.txt"]
    assert listed(share, opened, "c", REOPEN) == ["c"]
    assert listed(share, opened, "", REOPEN) == ["c"]


def test_one_at_a_time(share: SmbShare) -> None:
    opened = share.open("d")
    found = []
    while status_of(share, opened, "*", 0, 100) == "INFO_LENGTH_MISMATCH":
        found += listed(share, opened, "*", SINGLE)
        if found[-1] == "Größe.doc":
            break
    assert found == [".", "..", "A.txt", "b.txt", "c", "Größe.doc"]
    assert status_of(share, opened, "*", SINGLE) == "NO_MORE_FILES"


@pytest.mark.parametrize("size", range(12 + 18, 200, 7))
def test_buffers_of_any_size(share: SmbShare, size: int) -> None:
    opened = share.open("d")
    found: list[str] = []
    while status_of(share, opened, "*", 0, 13, NAMES) == "INFO_LENGTH_MISMATCH" and len(found) < 6:
        found += listed(share, opened, "*", 0, size, NAMES)
    assert found == [".", "..", "A.txt", "b.txt", "c", "Größe.doc"]


def test_an_entry_that_does_not_fit_is_not_lost(share: SmbShare) -> None:
    opened = share.open("d")
    assert status_of(share, opened, "*", 0, 105) == "INFO_LENGTH_MISMATCH"
    assert status_of(share, opened, "*", 0, 104) == "INFO_LENGTH_MISMATCH"
    assert listed(share, opened, "*", 0, 106) == ["."]
    assert status_of(share, opened, "*", 0, 106) == "INFO_LENGTH_MISMATCH"
    assert listed(share, opened, "*", 0, 108) == [".."]


def test_changes_between_two_buffers(share: SmbShare) -> None:
    opened = share.open("d")
    assert listed(share, opened, "*", 0, 34 + 22, NAMES) == [".", "..", "A.txt"]
    for name in ("A!", "B", "aa"):
        share.files.make_file(f"d/{name}")
    share.remove("d/b.txt")
    assert listed(share, opened, "*") == ["aa", "B", "c", "Größe.doc"]


def test_what_is_to_be_deleted_is_listed(share: SmbShare) -> None:
    share.open("d/c")
    share.files.mark("d/c")
    assert listed(share, share.open("d"), "c") == ["c"]
    assert "c" in listed(share, share.open("d"), "*")


@pytest.mark.parametrize("pattern", ["*", "?*"])
def test_a_directory_of_many_rows(share: SmbShare, pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "ROWS_MAX", 7)
    monkeypatch.setattr(scan, "_HARD_ROWS_MAX", 3)
    monkeypatch.setattr(scan, "_HARD_CHARACTERS_MAX", 12)
    share.files.make_directory("many")
    names = [f"F{number:03}" for number in range(70)]
    for name in names:
        share.files.make_file(f"many/{name}")
    opened = share.open("many")
    found: list[str] = []
    for _ in range(100):
        if status_of(share, opened, pattern, 0, 9) == "NO_MORE_FILES":
            break
        found += listed(share, opened, pattern)
    assert found == [".", "..", *names]
    assert listed(share, share.open("many"), "*69") == ["F069"]
    assert listed(share, share.open("many"), "*6?") == names[60:63]
    assert status_of(share, share.open("many"), "*7?") == "NO_SUCH_FILE"


def test_a_directory_of_a_snapshot(share: SmbShare) -> None:
    at = share.take_snapshot()
    share.files.make_file("d/new")
    share.remove("d/c")
    share.files.make_file("d/b.txt", 1)
    opened = share.open_snapshot("d", at, is_directory=True)
    assert listed(share, opened, "*", SINGLE) == ["."]
    assert listed(share, opened, "*", SINGLE) == [".."]
    assert listed(share, opened, "*", SINGLE) == ["A.txt"]
    assert listed(share, opened, "*", SINGLE) == ["b.txt"]
    assert listed(share, opened, "*") == ["c", "Größe.doc"]
    assert status_of(share, opened, "*") == "NO_MORE_FILES"
    assert listed(share, share.open_snapshot("d", at, is_directory=True), "C") == ["c"]
    assert listed(share, share.open_snapshot("", at, is_directory=True), "d") == ["d"]


@pytest.mark.parametrize(
    ("pattern", "size", "information_class", "status"),
    [
        ("*", 8, ID_BOTH, Status.INVALID_PARAMETER),
        ("*", 8 * 1024 * 1024 + 1, ID_BOTH, Status.INVALID_PARAMETER),
        ("*", 65536, 36, Status.INVALID_INFO_CLASS),
        ("", 65536, ID_BOTH, Status.OBJECT_NAME_INVALID),
        ("a\\b", 65536, ID_BOTH, Status.OBJECT_NAME_INVALID),
        ("a/b", 65536, ID_BOTH, Status.OBJECT_NAME_INVALID),
        ("a" * 256, 65536, ID_BOTH, Status.OBJECT_NAME_INVALID),
    ],
)
def test_refused_requests(
    share: SmbShare, pattern: str, size: int, information_class: int, status: Status
) -> None:
    assert status_of(share, share.open("d"), pattern, 0, size, information_class) == status.name


def test_what_cannot_be_listed(share: SmbShare) -> None:
    assert status_of(share, share.open("d/c"), "*") == "INVALID_PARAMETER"
    assert status_of(share, share.open("d", ALL & ~1), "*") == "ACCESS_DENIED"
