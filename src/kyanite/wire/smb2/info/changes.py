"""What SET_INFO changes of a file (MS-FSCC §2.4). A buffer too short for its class is INFO_LENGTH_MISMATCH."""

import struct
from typing import Any, NamedTuple

from kyanite.wire.malformed import Malformed
from kyanite.wire.smb2.body import invalid, text
from kyanite.wire.smb2.info.file import FileClass

LEAVE_TIME = 0
STOP_UPDATING_TIME = -1
RESUME_UPDATING_TIME = -2

_BASIC = struct.Struct("<qqqqI4x")
_RENAME = struct.Struct("<B7xQI")
_RENAME_EX = struct.Struct("<I4xQI")
_U8 = struct.Struct("<B")
_U32 = struct.Struct("<I")
_I64 = struct.Struct("<q")
_REPLACE = 0x1
_DELETE = 0x1


class BasicChange(NamedTuple):
    """Times are FILETIME or one of the three values above; attributes of 0 stay as they are."""

    creation: int
    last_access: int
    last_write: int
    change: int
    file_attributes: int


class Rename(NamedTuple):
    replaces: bool
    name: str
    """As sent, relative to the share."""


def decode_basic(data: memoryview) -> BasicChange:
    found = BasicChange(*_unpack(_BASIC, data))
    if min(found[:4]) < RESUME_UPDATING_TIME:
        raise invalid()
    return found


def decode_rename(information_class: int, data: memoryview) -> Rename:
    """FileRenameInformation in its form for SMB2, and FileRenameInformationEx, by path only."""
    layout = _RENAME_EX if information_class == FileClass.RENAME_EX else _RENAME
    flags, root_directory, length = _unpack(layout, data)
    name = data[layout.size : layout.size + length]
    if root_directory or not length or len(name) != length:
        raise invalid()
    replaces = flags & _REPLACE if information_class == FileClass.RENAME_EX else flags
    return Rename(bool(replaces), text(name))


def decode_disposition(information_class: int, data: memoryview) -> bool:
    """FileDispositionInformation and FileDispositionInformationEx: whether the file is to be deleted."""
    if information_class == FileClass.DISPOSITION_EX:
        return bool(_unpack(_U32, data)[0] & _DELETE)
    return bool(_unpack(_U8, data)[0])


def decode_size(data: memoryview) -> int:
    """FileAllocationInformation, FileEndOfFileInformation or FilePositionInformation."""
    (size,) = _unpack(_I64, data)
    if size < 0:
        raise invalid()
    return int(size)


def decode_mode(data: memoryview) -> int:
    """FileModeInformation."""
    return int(_unpack(_U32, data)[0])


def _unpack(layout: struct.Struct, data: memoryview) -> tuple[Any, ...]:
    if len(data) < layout.size:
        raise Malformed("INFO_LENGTH_MISMATCH")
    return layout.unpack_from(data)
