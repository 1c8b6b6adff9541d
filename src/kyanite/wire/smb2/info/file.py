"""Information about files, as QUERY_INFO answers it (MS-FSCC §2.4)."""

import struct
from enum import IntEnum
from typing import NamedTuple

from kyanite.wire.smb2.filetime import FileTimes
from kyanite.wire.smb2.info.layouts import Layout, Layouts


class FileClass(IntEnum):
    BASIC = 4
    STANDARD = 5
    INTERNAL = 6
    EA = 7
    ACCESS = 8
    NAME = 9
    RENAME = 10
    LINK = 11
    DISPOSITION = 13
    POSITION = 14
    FULL_EA = 15
    MODE = 16
    ALIGNMENT = 17
    ALL = 18
    ALLOCATION = 19
    END_OF_FILE = 20
    ALTERNATE_NAME = 21
    STREAM = 22
    PIPE = 23
    COMPRESSION = 28
    NETWORK_OPEN = 34
    ATTRIBUTE_TAG = 35
    VALID_DATA_LENGTH = 39
    SHORT_NAME = 40
    NORMALIZED_NAME = 48
    ID = 59
    DISPOSITION_EX = 64
    RENAME_EX = 65


class FileInformation(NamedTuple):
    """Everything that the classes tell about an open file."""

    times: FileTimes
    file_attributes: int
    allocation_size: int
    end_of_file: int
    number_of_links: int
    is_delete_pending: bool
    is_directory: bool
    file_id: int
    volume_id: int
    granted_access: int
    position: int
    mode: int
    path: str
    r"""Without a leading backslash: ``directory\file``; empty for the root."""


_BASIC = struct.Struct("<QQQQII")
_STANDARD = struct.Struct("<QQIBBH")
_U64 = struct.Struct("<Q")
_U32 = struct.Struct("<I")
_STREAM = struct.Struct("<IIQQ")
_NETWORK_OPEN = struct.Struct("<QQQQQQII")
_ATTRIBUTE_TAG = struct.Struct("<II")
_ALL = struct.Struct("<QQQQIIQQIBBHQIIQIII")
_ID = struct.Struct("<QQ8x")
_COMPRESSION = struct.Struct("<Q8x")
_DATA_STREAM = "::$DATA".encode("utf-16-le")


def _basic(info: FileInformation) -> bytes:
    return _BASIC.pack(*info.times, info.file_attributes, 0)


def _standard(info: FileInformation) -> bytes:
    return _STANDARD.pack(
        info.allocation_size,
        info.end_of_file,
        info.number_of_links,
        info.is_delete_pending,
        info.is_directory,
        0,
    )


def _internal(info: FileInformation) -> bytes:
    return _U64.pack(info.file_id)


def _ea(_: FileInformation) -> bytes:
    return bytes(4)


def _access(info: FileInformation) -> bytes:
    return _U32.pack(info.granted_access)


def _position(info: FileInformation) -> bytes:
    return _U64.pack(info.position)


def _mode(info: FileInformation) -> bytes:
    return _U32.pack(info.mode)


def _alignment(_: FileInformation) -> bytes:
    return bytes(4)


def _all(info: FileInformation) -> bytes:
    name = f"\\{info.path}".encode("utf-16-le")
    fixed = _ALL.pack(
        *info.times,
        info.file_attributes,
        0,
        info.allocation_size,
        info.end_of_file,
        info.number_of_links,
        info.is_delete_pending,
        info.is_directory,
        0,
        info.file_id,
        0,
        info.granted_access,
        info.position,
        info.mode,
        0,
        len(name),
    )
    return fixed + name


def _streams(info: FileInformation) -> bytes:
    """The one stream of a file; a directory has none."""
    if info.is_directory:
        return b""
    return _STREAM.pack(0, len(_DATA_STREAM), info.end_of_file, info.allocation_size) + _DATA_STREAM


def _compression(info: FileInformation) -> bytes:
    return _COMPRESSION.pack(info.end_of_file)


def _network_open(info: FileInformation) -> bytes:
    """Allocation before end of file, unlike in a directory's entries."""
    return _NETWORK_OPEN.pack(*info.times, info.allocation_size, info.end_of_file, info.file_attributes, 0)


def _attribute_tag(info: FileInformation) -> bytes:
    return _ATTRIBUTE_TAG.pack(info.file_attributes, 0)


def _normalized_name(info: FileInformation) -> bytes:
    name = info.path.encode("utf-16-le")
    return _U32.pack(len(name)) + name


def _alternate_name(info: FileInformation) -> bytes:
    name = info.path.rpartition("\\")[2].encode("utf-16-le")
    return _U32.pack(len(name)) + name


def _id(info: FileInformation) -> bytes:
    return _ID.pack(info.volume_id, info.file_id)


_LAYOUTS: Layouts[FileInformation] = Layouts(
    {
        FileClass.BASIC: Layout(40, _basic),
        FileClass.STANDARD: Layout(24, _standard),
        FileClass.INTERNAL: Layout(8, _internal),
        FileClass.EA: Layout(4, _ea),
        FileClass.ACCESS: Layout(4, _access),
        FileClass.POSITION: Layout(8, _position),
        FileClass.MODE: Layout(4, _mode),
        FileClass.ALIGNMENT: Layout(4, _alignment),
        FileClass.ALL: Layout(104, _all),
        FileClass.ALTERNATE_NAME: Layout(8, _alternate_name),
        FileClass.STREAM: Layout(32, _streams),
        FileClass.COMPRESSION: Layout(16, _compression),
        FileClass.NETWORK_OPEN: Layout(56, _network_open),
        FileClass.ATTRIBUTE_TAG: Layout(8, _attribute_tag),
        FileClass.NORMALIZED_NAME: Layout(8, _normalized_name),
        FileClass.ID: Layout(24, _id),
    }
)
fixed_bytes_of = _LAYOUTS.fixed_bytes_of
encode = _LAYOUTS.encode
