"""Information about the file system that a share is (MS-FSCC §2.5)."""

import struct
from enum import IntEnum
from typing import NamedTuple

from kyanite.wire.smb2.info.layouts import Layout, Layouts

SECTOR_BYTES = 512
SECTORS_PER_UNIT = 8
UNIT_BYTES = SECTOR_BYTES * SECTORS_PER_UNIT
"""Sizes of a volume are counted in units of 4 KiB."""

FILE_SYSTEM_NAME = "NTFS"
"""Windows offers security and long paths by this name."""
LONGEST_NAME = 255

CASE_PRESERVED_NAMES = 0x2
UNICODE_ON_DISK = 0x4
PERSISTENT_ACLS = 0x8

_DEVICE_DISK = 0x7
_DEVICE_IS_MOUNTED = 0x20
_ALIGNED_DEVICE_AND_PARTITION = 0x3


class FileSystemClass(IntEnum):
    VOLUME = 1
    LABEL = 2
    SIZE = 3
    DEVICE = 4
    ATTRIBUTE = 5
    CONTROL = 6
    FULL_SIZE = 7
    OBJECT_ID = 8
    SECTOR_SIZE = 11


class FileSystemInformation(NamedTuple):
    created_at: int
    """As FILETIME."""
    serial_number: int
    label: str
    total_bytes: int
    free_bytes: int


_VOLUME = struct.Struct("<QIIBx")
_SIZE = struct.Struct("<QQII")
_DEVICE = struct.Struct("<II")
_ATTRIBUTE = struct.Struct("<III")
_FULL_SIZE = struct.Struct("<QQQII")
_SECTOR_SIZE = struct.Struct("<7I")


def _volume(info: FileSystemInformation) -> bytes:
    label = info.label.encode("utf-16-le")
    return _VOLUME.pack(info.created_at, info.serial_number & 0xFFFFFFFF, len(label), 0) + label


def _size(info: FileSystemInformation) -> bytes:
    total, free = info.total_bytes // UNIT_BYTES, info.free_bytes // UNIT_BYTES
    return _SIZE.pack(total, free, SECTORS_PER_UNIT, SECTOR_BYTES)


def _device(_: FileSystemInformation) -> bytes:
    return _DEVICE.pack(_DEVICE_DISK, _DEVICE_IS_MOUNTED)


def _attribute(_: FileSystemInformation) -> bytes:
    name = FILE_SYSTEM_NAME.encode("utf-16-le")
    flags = CASE_PRESERVED_NAMES | UNICODE_ON_DISK | PERSISTENT_ACLS
    return _ATTRIBUTE.pack(flags, LONGEST_NAME, len(name)) + name


def _full_size(info: FileSystemInformation) -> bytes:
    total, free = info.total_bytes // UNIT_BYTES, info.free_bytes // UNIT_BYTES
    return _FULL_SIZE.pack(total, free, free, SECTORS_PER_UNIT, SECTOR_BYTES)


def _sector_size(_: FileSystemInformation) -> bytes:
    return _SECTOR_SIZE.pack(
        SECTOR_BYTES, UNIT_BYTES, UNIT_BYTES, UNIT_BYTES, _ALIGNED_DEVICE_AND_PARTITION, 0, 0
    )


_LAYOUTS: Layouts[FileSystemInformation] = Layouts(
    {
        FileSystemClass.VOLUME: Layout(24, _volume),
        FileSystemClass.SIZE: Layout(24, _size),
        FileSystemClass.DEVICE: Layout(8, _device),
        FileSystemClass.ATTRIBUTE: Layout(16, _attribute),
        FileSystemClass.FULL_SIZE: Layout(32, _full_size),
        FileSystemClass.SECTOR_SIZE: Layout(28, _sector_size),
    }
)
fixed_bytes_of = _LAYOUTS.fixed_bytes_of
encode = _LAYOUTS.encode
