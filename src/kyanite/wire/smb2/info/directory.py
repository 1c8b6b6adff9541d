"""Entries of a directory in the classes that clients ask for (MS-FSCC §2.4).

All classes but Names begin alike: {offset of the next entry, 0, four times, size, allocation, attributes, length of
the name}. There are no short names and no extended attributes.
"""

import struct
from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import NamedTuple

from kyanite.wire.malformed import Malformed
from kyanite.wire.smb2.body import padding
from kyanite.wire.smb2.filetime import FileTimes


class DirectoryClass(IntEnum):
    DIRECTORY = 1
    FULL_DIRECTORY = 2
    BOTH_DIRECTORY = 3
    NAMES = 12
    ID_BOTH_DIRECTORY = 37
    ID_FULL_DIRECTORY = 38
    ID_EXTD_DIRECTORY = 60
    ID_EXTD_BOTH_DIRECTORY = 63


class DirectoryEntry(NamedTuple):
    name: str
    times: FileTimes
    end_of_file: int
    allocation_size: int
    file_attributes: int
    file_id: int


_COMMON = "<4xIQQQQQQII"
_NAMES = struct.Struct("<4xII")
_PLAIN = {
    DirectoryClass.DIRECTORY: struct.Struct(_COMMON),
    DirectoryClass.FULL_DIRECTORY: struct.Struct(_COMMON + "4x"),
    DirectoryClass.BOTH_DIRECTORY: struct.Struct(_COMMON + "4x2x24x"),
}
_WITH_ID = {
    DirectoryClass.ID_BOTH_DIRECTORY: struct.Struct(_COMMON + "4x2x24x2xQ"),
    DirectoryClass.ID_FULL_DIRECTORY: struct.Struct(_COMMON + "4x4xQ"),
    DirectoryClass.ID_EXTD_DIRECTORY: struct.Struct(_COMMON + "4x4xQ8x"),
    DirectoryClass.ID_EXTD_BOTH_DIRECTORY: struct.Struct(_COMMON + "4x4xQ8x2x24x"),
}

_Encoder = Callable[[DirectoryEntry], bytes]


def encoder_of(information_class: int) -> _Encoder:
    """What writes one entry, its offset to the next one 0."""
    try:
        return _ENCODERS[information_class]
    except KeyError:
        raise Malformed("INVALID_INFO_CLASS") from None


def pack(encode: _Encoder, entries: Iterable[DirectoryEntry], limit: int) -> tuple[bytes, int]:
    """As many entries as fit whole, each 8-aligned, and how many they are."""
    packed = bytearray()
    last_at = count = 0
    for entry in entries:
        encoded = encode(entry)
        at = len(packed) + padding(len(packed))
        if at + len(encoded) > limit:
            break
        if count:
            packed[last_at : last_at + 4] = (at - last_at).to_bytes(4, "little")
            packed += bytes(at - len(packed))
        packed += encoded
        last_at = at
        count += 1
    return bytes(packed), count


def _encode_names(entry: DirectoryEntry) -> bytes:
    name = entry.name.encode("utf-16-le")
    return _NAMES.pack(0, len(name)) + name


def _plain(layout: struct.Struct) -> _Encoder:
    def encode(entry: DirectoryEntry) -> bytes:
        text, times, end_of_file, allocation_size, attributes, _ = entry
        name = text.encode("utf-16-le")
        return layout.pack(0, *times, end_of_file, allocation_size, attributes, len(name)) + name

    return encode


def _with_id(layout: struct.Struct) -> _Encoder:
    def encode(entry: DirectoryEntry) -> bytes:
        text, times, end_of_file, allocation_size, attributes, file_id = entry
        name = text.encode("utf-16-le")
        return layout.pack(0, *times, end_of_file, allocation_size, attributes, len(name), file_id) + name

    return encode


_ENCODERS: dict[int, _Encoder] = {
    DirectoryClass.NAMES: _encode_names,
    **{each: _plain(layout) for each, layout in _PLAIN.items()},
    **{each: _with_id(layout) for each, layout in _WITH_ID.items()},
}
