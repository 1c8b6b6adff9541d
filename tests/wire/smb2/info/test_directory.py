"""QUERY_DIRECTORY and the entries that answer it."""

import struct
from typing import Any

import pytest
from smbprotocol import file_info as oracle_info
from smbprotocol.open import SMB2QueryDirectoryRequest, SMB2QueryDirectoryResponse
from smbprotocol.structure import Structure

from kyanite.wire.malformed import Malformed
from kyanite.wire.smb2 import body, query_directory
from kyanite.wire.smb2.body import FileId
from kyanite.wire.smb2.filetime import FileTimes
from kyanite.wire.smb2.info import directory
from kyanite.wire.smb2.info.directory import DirectoryClass, DirectoryEntry
from tests.wire.smb2 import oracle

FILE_ID = FileId(0x0102030405060708, 0x1112131415161718)
ID = struct.pack("<QQ", *FILE_ID)
SECOND = 10_000_000
TIMES = FileTimes(*(116444736000000000 + second * SECOND for second in (1, 2, 3, 4)))
ENTRY = DirectoryEntry("Größe", *TIMES, 5, 4096, 0x20, 0x1122334455667788)


def packed(information_class: int, entry: DirectoryEntry) -> bytes:
    return directory.pack(directory.layout_of(information_class), [entry], 1000).data


def test_a_request_of_the_oracle() -> None:
    request = oracle.request(
        SMB2QueryDirectoryRequest,
        file_information_class=37,
        flags=3,
        file_id=ID,
        output_buffer_length=65536,
        buffer="*.tx?".encode("utf-16-le"),
    )
    assert query_directory.decode(request) == (37, 3, FILE_ID, "*.tx?", 65536)


def request(*, size: int = 33, at: int = 96, length: int = 2, name: bytes = b"*\0") -> memoryview:
    return memoryview(bytes(64) + struct.pack("<HBBIQQHHI", size, 37, 0, 0, *FILE_ID, at, length, 100) + name)


def test_a_request_without_a_pattern() -> None:
    assert query_directory.decode(request(at=0, length=0, name=b"\0")).pattern == ""


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (request(size=32), "INVALID_PARAMETER"),
        (request(at=95), "INVALID_PARAMETER"),
        (request(length=4), "INVALID_PARAMETER"),
        (request(length=1), "INVALID_PARAMETER"),
        (request(length=0, name=b""), "INVALID_PARAMETER"),
        (request(name=b"\0\xdc"), "ILLEGAL_CHARACTER"),
    ],
)
def test_malformed_requests(message: memoryview, code: str) -> None:
    with pytest.raises(Malformed, match=code):
        query_directory.decode(message)


@pytest.mark.parametrize(
    ("information_class", "structure"),
    [
        (DirectoryClass.DIRECTORY, oracle_info.FileDirectoryInformation),
        (DirectoryClass.FULL_DIRECTORY, oracle_info.FileFullDirectoryInformation),
        (DirectoryClass.BOTH_DIRECTORY, oracle_info.FileBothDirectoryInformation),
        (DirectoryClass.NAMES, oracle_info.FileNamesInformation),
        (DirectoryClass.ID_BOTH_DIRECTORY, oracle_info.FileIdBothDirectoryInformation),
        (DirectoryClass.ID_FULL_DIRECTORY, oracle_info.FileIdFullDirectoryInformation),
    ],
)
def test_entries_for_the_oracle(information_class: DirectoryClass, structure: type[Structure]) -> None:
    fields: dict[str, Any] = oracle.read(structure, packed(information_class, ENTRY))
    assert fields["next_entry_offset"] == 0
    assert fields["file_name"].decode("utf-16-le") == "Größe"
    if information_class is DirectoryClass.NAMES:
        return
    assert (fields["end_of_file"], fields["allocation_size"], fields["file_attributes"]) == (5, 4096, 0x20)
    names = ("creation_time", "last_access_time", "last_write_time", "change_time")
    assert [fields[name].timestamp() for name in names] == [1, 2, 3, 4]
    assert fields.get("file_id", ENTRY.file_id) == ENTRY.file_id
    assert fields.get("short_name_length", 0) == 0


@pytest.mark.parametrize(
    ("information_class", "name_at", "id_at"),
    [
        (DirectoryClass.DIRECTORY, 64, None),
        (DirectoryClass.FULL_DIRECTORY, 68, None),
        (DirectoryClass.BOTH_DIRECTORY, 94, None),
        (DirectoryClass.NAMES, 12, None),
        (DirectoryClass.ID_BOTH_DIRECTORY, 104, 96),
        (DirectoryClass.ID_FULL_DIRECTORY, 80, 72),
        (DirectoryClass.ID_EXTD_DIRECTORY, 88, 72),
        (DirectoryClass.ID_EXTD_BOTH_DIRECTORY, 114, 72),
    ],
)
def test_where_name_and_id_are(information_class: DirectoryClass, name_at: int, id_at: int | None) -> None:
    encoded = packed(information_class, ENTRY)
    assert encoded[name_at:] == "Größe".encode("utf-16-le")
    if id_at is not None:
        assert int.from_bytes(encoded[id_at : id_at + 8], "little") == ENTRY.file_id


def test_an_unknown_class() -> None:
    with pytest.raises(Malformed, match="INVALID_INFO_CLASS"):
        directory.layout_of(99)


def named(*names: str) -> list[DirectoryEntry]:
    return [ENTRY._replace(name=name) for name in names]


def test_entries_are_aligned_and_linked() -> None:
    layout = directory.layout_of(DirectoryClass.NAMES)
    listed, last_name, is_full = directory.pack(layout, named("a", "bcd", "e"), 1000)
    assert (last_name, is_full) == ("e", False)
    assert listed == bytes.fromhex(
        "10000000 00000000 02000000 6100 0000"
        "18000000 00000000 06000000 620063006400 000000000000"
        "00000000 00000000 02000000 6500"
    )
    fields = oracle.read(SMB2QueryDirectoryResponse, body.encode_output(listed))
    assert (fields["output_buffer_offset"], fields["buffer"]) == (72, listed)


@pytest.mark.parametrize(
    ("limit", "last_name", "length"),
    [(13, None, 0), (14, "a", 14), (33, "a", 14), (34, "bcd", 34), (53, "bcd", 34), (54, "e", 54)],
)
def test_only_whole_entries_are_packed(limit: int, last_name: str | None, length: int) -> None:
    packed = directory.pack(directory.layout_of(DirectoryClass.NAMES), named("a", "bcd", "e"), limit)
    assert (packed.last_name, len(packed.data), packed.is_full) == (last_name, length, last_name != "e")
    if last_name is not None:
        last = {"a": 0, "bcd": 16, "e": 40}[last_name]
        assert packed.data[last : last + 4] == bytes(4)
