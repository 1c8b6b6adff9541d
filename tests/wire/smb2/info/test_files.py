"""QUERY_INFO and SET_INFO, and the information about files and file systems."""

import struct
from typing import Any

import pytest
from smbprotocol import file_info as oracle_info
from smbprotocol.open import (
    SMB2QueryInfoRequest,
    SMB2QueryInfoResponse,
    SMB2SetInfoRequest,
    SMB2SetInfoResponse,
)
from smbprotocol.structure import Structure

from kyanite.wire.malformed import Malformed
from kyanite.wire.smb2 import body
from kyanite.wire.smb2.body import FileId
from kyanite.wire.smb2.filetime import FileTimes
from kyanite.wire.smb2.info import changes, file, file_system, messages
from kyanite.wire.smb2.info.changes import BasicChange, Rename
from kyanite.wire.smb2.info.file import FileClass, FileInformation
from kyanite.wire.smb2.info.file_system import FileSystemClass, FileSystemInformation
from kyanite.wire.smb2.info.messages import Fitted, InfoType
from tests.wire.smb2 import oracle

FILE_ID = FileId(0x0102030405060708, 0x1112131415161718)
ID = struct.pack("<QQ", *FILE_ID)
INFO = FileInformation(
    times=FileTimes(1, 2, 3, 4),
    file_attributes=0x20,
    allocation_size=4096,
    end_of_file=5,
    number_of_links=1,
    is_delete_pending=True,
    is_directory=False,
    file_id=0x1122334455667788,
    volume_id=0x99,
    granted_access=0x001F01FF,
    position=7,
    mode=2,
    path="dir\\a",
)
DIRECTORY = INFO._replace(is_directory=True, file_attributes=0x10)


def test_a_query_of_the_oracle() -> None:
    request = oracle.request(
        SMB2QueryInfoRequest,
        info_type=1,
        file_info_class=18,
        output_buffer_length=1000,
        additional_information=7,
        flags=1,
        file_id=ID,
        buffer=b"in",
    )
    found = messages.decode_query(request)
    assert found == (InfoType.FILE, FileClass.ALL, 1000, 7, 1, FILE_ID, memoryview(b"in"))
    assert not messages.decode_query(oracle.request(SMB2QueryInfoRequest, info_type=2, file_id=ID)).input


def test_a_change_of_the_oracle() -> None:
    request = oracle.request(
        SMB2SetInfoRequest, info_type=3, additional_information=4, file_id=ID, buffer=b"descriptor"
    )
    assert messages.decode_set(request) == (InfoType.SECURITY, 0, 4, FILE_ID, memoryview(b"descriptor"))
    oracle.read(SMB2SetInfoResponse, messages.SET_RESPONSE)


def query(*, size: int = 41, at: int = 104, length: int = 2, data: bytes = b"in") -> memoryview:
    return memoryview(
        bytes(64) + struct.pack("<HBBIHHIIIQQ", size, 1, 18, 9, at, 0, length, 0, 0, 0, 0) + data
    )


def change(*, size: int = 33, at: int = 96, length: int = 2, data: bytes = b"in") -> memoryview:
    return memoryview(bytes(64) + struct.pack("<HBBIHHIQQ", size, 1, 4, length, at, 0, 0, 0, 0) + data)


@pytest.mark.parametrize(
    "message",
    [query(size=40), query(at=103), query(length=3), query(length=0xFFFFFFFF), query()[:103], query()[:64]],
)
def test_malformed_queries(message: memoryview) -> None:
    with pytest.raises(Malformed, match="INVALID_PARAMETER"):
        messages.decode_query(message)


@pytest.mark.parametrize(
    "message", [change(size=32), change(at=95), change(length=3), change(length=0, data=b""), change()[:95]]
)
def test_malformed_changes(message: memoryview) -> None:
    with pytest.raises(Malformed, match="INVALID_PARAMETER"):
        messages.decode_set(message)


@pytest.mark.parametrize(
    ("output_bytes", "expected"),
    [(10, Fitted(b"0123456789", False)), (99, Fitted(b"0123456789", False)), (4, Fitted(b"0123", True))],
)
def test_what_fits(output_bytes: int, expected: Fitted) -> None:
    assert messages.fit(b"0123456789", 4, output_bytes) == expected


def test_what_does_not_fit() -> None:
    with pytest.raises(Malformed, match="INFO_LENGTH_MISMATCH"):
        messages.fit(b"0123456789", 4, 3)


BASIC = struct.pack("<QQQQII", 1, 2, 3, 4, 0x20, 0)
STANDARD = struct.pack("<QQIBBH", 4096, 5, 1, 1, 0, 0)
PATH = "\\dir\\a".encode("utf-16-le")


@pytest.mark.parametrize(
    ("information_class", "expected"),
    [
        (FileClass.BASIC, BASIC),
        (FileClass.STANDARD, STANDARD),
        (FileClass.INTERNAL, struct.pack("<Q", INFO.file_id)),
        (FileClass.EA, bytes(4)),
        (FileClass.ACCESS, struct.pack("<I", 0x001F01FF)),
        (FileClass.POSITION, struct.pack("<Q", 7)),
        (FileClass.MODE, struct.pack("<I", 2)),
        (FileClass.ALIGNMENT, bytes(4)),
        (
            FileClass.ALL,
            BASIC
            + STANDARD
            + struct.pack("<QIIQIII", INFO.file_id, 0, 0x001F01FF, 7, 2, 0, len(PATH))
            + PATH,
        ),
        (FileClass.STREAM, struct.pack("<IIQQ", 0, 14, 5, 4096) + "::$DATA".encode("utf-16-le")),
        (FileClass.COMPRESSION, struct.pack("<QQ", 5, 0)),
        (FileClass.NETWORK_OPEN, struct.pack("<QQQQQQII", 1, 2, 3, 4, 4096, 5, 0x20, 0)),
        (FileClass.ATTRIBUTE_TAG, struct.pack("<II", 0x20, 0)),
        (FileClass.NORMALIZED_NAME, struct.pack("<I", len(PATH) - 2) + PATH[2:]),
        (FileClass.ID, struct.pack("<QQQ", 0x99, INFO.file_id, 0)),
    ],
)
def test_information_about_a_file(information_class: FileClass, expected: bytes) -> None:
    assert file.encode(information_class, INFO) == expected
    fixed = file.fixed_bytes_of(information_class)
    assert len(expected) <= fixed + len(PATH)
    fields = oracle.read(SMB2QueryInfoResponse, body.encode_output(expected))
    assert fields["buffer"] == expected


ORACLES: list[tuple[FileClass, type[Structure], dict[str, Any]]] = [
    (FileClass.BASIC, oracle_info.FileBasicInformation, {"change_time": 4, "file_attributes": 0x20}),
    (FileClass.STANDARD, oracle_info.FileStandardInformation, {"end_of_file": 5, "delete_pending": True}),
    (FileClass.INTERNAL, oracle_info.FileInternalInformation, {"index_number": INFO.file_id}),
    (FileClass.EA, oracle_info.FileEaInformation, {"ea_size": 0}),
    (FileClass.ACCESS, oracle_info.FileAccessInformation, {"access_flags": 0x001F01FF}),
    (FileClass.POSITION, oracle_info.FilePositionInformation, {"current_byte_offset": 7}),
    (FileClass.MODE, oracle_info.FileModeInformation, {"mode": 2}),
    (FileClass.ALIGNMENT, oracle_info.FileAlignmentInformation, {"alignment_requirement": 0}),
    (FileClass.STREAM, oracle_info.FileStreamInformation, {"stream_size": 5, "stream_allocation_size": 4096}),
    (FileClass.ATTRIBUTE_TAG, oracle_info.FileAttributeTagInformation, {"reparse_tag": 0}),
]


@pytest.mark.parametrize(("information_class", "structure", "expected"), ORACLES)
def test_information_for_the_oracle(
    information_class: FileClass, structure: type[Structure], expected: dict[str, Any]
) -> None:
    fields = oracle.read(structure, file.encode(information_class, INFO))
    assert {name: fields[name] for name in expected} == expected


def test_all_information_for_the_oracle() -> None:
    found = oracle_info.FileAllInformation()
    assert found.unpack(file.encode(FileClass.ALL, INFO)) == b""
    assert found["internal_information"]["index_number"].get_value() == INFO.file_id
    assert found["name_information"]["file_name"].get_value() == "\\dir\\a"


def test_directories_and_the_root() -> None:
    assert file.encode(FileClass.STREAM, DIRECTORY) == b""
    assert file.encode(FileClass.STANDARD, DIRECTORY)[21] == 1
    assert file.encode(FileClass.ALL, DIRECTORY._replace(path="")).endswith(b"\2\0\0\0\\\0")


@pytest.mark.parametrize("information_class", [0, 9, 10, 13, 15, 19, 20, 36, 64, 200])
def test_classes_that_are_not_answered(information_class: int) -> None:
    with pytest.raises(Malformed, match="INVALID_INFO_CLASS"):
        file.encode(information_class, INFO)
    with pytest.raises(Malformed, match="INVALID_INFO_CLASS"):
        file.fixed_bytes_of(information_class)


def test_basic_changes() -> None:
    sent = struct.pack("<qqqqII", 0, -1, -2, 1 << 60, 0x21, 0)
    assert changes.decode_basic(memoryview(sent)) == BasicChange(0, -1, -2, 1 << 60, 0x21)
    oracle_sent = oracle.build(oracle_info.FileBasicInformation, creation_time=5, file_attributes=0x21).pack()
    assert changes.decode_basic(memoryview(oracle_sent)) == BasicChange(5, 0, 0, 0, 0x21)
    with pytest.raises(Malformed, match="INVALID_PARAMETER"):
        changes.decode_basic(memoryview(struct.pack("<qqqqII", 0, 0, -3, 0, 0, 0)))
    with pytest.raises(Malformed, match="INFO_LENGTH_MISMATCH"):
        changes.decode_basic(memoryview(sent[:39]))


def test_renames() -> None:
    sent = oracle.build(
        oracle_info.FileRenameInformation, replace_if_exists=True, file_name="dir\\new"
    ).pack()
    assert changes.decode_rename(FileClass.RENAME, memoryview(sent)) == Rename(True, "dir\\new")
    assert changes.decode_rename(FileClass.RENAME, memoryview(sent + b"padding")) == Rename(True, "dir\\new")
    extended = struct.pack("<I4xQI", 2, 0, 2) + b"n\0"
    assert changes.decode_rename(FileClass.RENAME_EX, memoryview(extended)) == Rename(False, "n")
    extended = struct.pack("<I4xQI", 3, 0, 2) + b"n\0"
    assert changes.decode_rename(FileClass.RENAME_EX, memoryview(extended)) == Rename(True, "n")


def rename(*, root: int = 0, length: int = 2, name: bytes = b"n\0") -> memoryview:
    return memoryview(struct.pack("<B7xQI", 0, root, length) + name)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (rename(root=1), "INVALID_PARAMETER"),
        (rename(length=0), "INVALID_PARAMETER"),
        (rename(length=1), "INVALID_PARAMETER"),
        (rename(length=4), "INVALID_PARAMETER"),
        (rename(name=b"\0\xd8"), "ILLEGAL_CHARACTER"),
        (rename()[:19], "INFO_LENGTH_MISMATCH"),
    ],
)
def test_malformed_renames(data: memoryview, code: str) -> None:
    with pytest.raises(Malformed, match=code):
        changes.decode_rename(FileClass.RENAME, data)


@pytest.mark.parametrize(
    ("information_class", "data", "expected"),
    [
        (FileClass.DISPOSITION, b"\0", False),
        (FileClass.DISPOSITION, b"\1", True),
        (FileClass.DISPOSITION, b"\2\0\0\0", True),
        (FileClass.DISPOSITION_EX, b"\2\0\0\0", False),
        (FileClass.DISPOSITION_EX, b"\3\0\0\0", True),
    ],
)
def test_dispositions(information_class: int, data: bytes, expected: bool) -> None:
    assert changes.decode_disposition(information_class, memoryview(data)) is expected


def test_sizes_and_modes() -> None:
    assert changes.decode_size(memoryview(struct.pack("<q", 1 << 40))) == 1 << 40
    assert changes.decode_mode(memoryview(b"\2\0\0\0")) == 2
    with pytest.raises(Malformed, match="INVALID_PARAMETER"):
        changes.decode_size(memoryview(struct.pack("<q", -1)))
    with pytest.raises(Malformed, match="INFO_LENGTH_MISMATCH"):
        changes.decode_size(memoryview(bytes(7)))
    with pytest.raises(Malformed, match="INFO_LENGTH_MISMATCH"):
        changes.decode_disposition(FileClass.DISPOSITION, memoryview(b""))
    with pytest.raises(Malformed, match="INFO_LENGTH_MISMATCH"):
        changes.decode_disposition(FileClass.DISPOSITION_EX, memoryview(bytes(3)))


SHARE = FileSystemInformation(116444736000000000, 0x1_2345_6789, "share", 5 << 40, 1 << 40)


@pytest.mark.parametrize(
    ("information_class", "fixed", "expected"),
    [
        (
            FileSystemClass.VOLUME,
            24,
            struct.pack("<QIIBB", 116444736000000000, 0x23456789, 10, 0, 0) + "share".encode("utf-16-le"),
        ),
        (FileSystemClass.SIZE, 24, struct.pack("<QQII", 5 << 28, 1 << 28, 8, 512)),
        (FileSystemClass.DEVICE, 8, struct.pack("<II", 7, 0x20)),
        (FileSystemClass.ATTRIBUTE, 16, struct.pack("<III", 0x0E, 255, 8) + "NTFS".encode("utf-16-le")),
        (FileSystemClass.FULL_SIZE, 32, struct.pack("<QQQII", 5 << 28, 1 << 28, 1 << 28, 8, 512)),
        (FileSystemClass.SECTOR_SIZE, 28, struct.pack("<7I", 512, 4096, 4096, 4096, 3, 0, 0)),
    ],
)
def test_information_about_a_share(information_class: FileSystemClass, fixed: int, expected: bytes) -> None:
    assert file_system.encode(information_class, SHARE) == expected
    assert file_system.fixed_bytes_of(information_class) == fixed


def test_information_about_a_share_for_the_oracle() -> None:
    fields = oracle.read(
        oracle_info.FileFsVolumeInformation, file_system.encode(FileSystemClass.VOLUME, SHARE)
    )
    assert (fields["volume_serial_number"], fields["volume_label"]) == (0x23456789, "share")
    fields = oracle.read(
        oracle_info.FileFsFullSizeInformation, file_system.encode(FileSystemClass.FULL_SIZE, SHARE)
    )
    assert (fields["total_allocation_units"], fields["actual_available_units"]) == (5 << 28, 1 << 28)


@pytest.mark.parametrize("information_class", [0, 2, 6, 8, 9, 12])
def test_file_system_classes_that_are_not_answered(information_class: int) -> None:
    with pytest.raises(Malformed, match="INVALID_INFO_CLASS"):
        file_system.encode(information_class, SHARE)
    with pytest.raises(Malformed, match="INVALID_INFO_CLASS"):
        file_system.fixed_bytes_of(information_class)
