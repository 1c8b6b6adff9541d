"""Entries of a directory in the classes that clients ask for (MS-FSCC §2.4).

All classes but Names begin alike: {offset of the next entry, 0, four times, size, allocation, attributes, length of
the name}. There are no short names and no extended attributes.
"""

import struct
from codecs import utf_16_le_encode
from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import NamedTuple

from kyanite.wire.malformed import Malformed


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
    """The four times are FILETIME."""

    name: str
    creation: int
    last_access: int
    last_write: int
    change: int
    end_of_file: int
    allocation_size: int
    file_attributes: int
    file_id: int


class EntryLayout(NamedTuple):
    """How a class writes what stands before the name of an entry."""

    fixed_bytes: int
    encode: Callable[[int, DirectoryEntry, int], bytes]
    """From the offset of the next entry, the entry, and the length of its name."""


class Packed(NamedTuple):
    data: bytes
    last_name: str | None
    """Of the last entry that was packed."""
    is_full: bool
    """Whether an entry did not fit any more."""


def layout_of(information_class: int) -> EntryLayout:
    try:
        return _LAYOUTS[information_class]
    except KeyError:
        raise Malformed("INVALID_INFO_CLASS") from None


def pack(layout: EntryLayout, entries: Iterable[DirectoryEntry], limit: int) -> Packed:
    """As many entries as fit whole, each 8-aligned.

    An entry is written when the next one is known to fit, since it says where that one begins.
    """
    fixed_bytes, encode = layout
    packed: list[bytes] = []
    last: DirectoryEntry | None = None
    last_name = b""
    last_at = end = 0
    is_full = False
    for entry in entries:
        name = utf_16_le_encode(entry[0])[0]
        gap = -end & 7
        at = end + gap
        if at + fixed_bytes + len(name) > limit:
            is_full = True
            break
        if last is not None:
            packed += (encode(at - last_at, last, len(last_name)), last_name, _GAPS[gap])
        last, last_name, last_at = entry, name, at
        end = at + fixed_bytes + len(name)
    if last is None:
        return Packed(b"", None, is_full)
    packed += (encode(0, last, len(last_name)), last_name)
    return Packed(b"".join(packed), last.name, is_full)


_GAPS = tuple(bytes(length) for length in range(8))


def _names() -> EntryLayout:
    layout = struct.Struct("<III")

    def encode(step: int, _: DirectoryEntry, name_length: int) -> bytes:
        return layout.pack(step, 0, name_length)

    return EntryLayout(layout.size, encode)


def _without_id(rest: str) -> EntryLayout:
    layout = struct.Struct(_COMMON + rest)

    def encode(step: int, entry: DirectoryEntry, name_length: int) -> bytes:
        return layout.pack(step, 0, *entry[1:8], name_length)

    return EntryLayout(layout.size, encode)


def _with_id(rest: str) -> EntryLayout:
    layout = struct.Struct(_COMMON + rest)

    def encode(step: int, entry: DirectoryEntry, name_length: int) -> bytes:
        return layout.pack(step, 0, *entry[1:8], name_length, entry[8])

    return EntryLayout(layout.size, encode)


_COMMON = "<IIQQQQQQII"
_EA_SIZE, _SHORT_NAME, _REPARSE_TAG = "4x", "2x24x", "4x"
_LAYOUTS: dict[int, EntryLayout] = {
    DirectoryClass.DIRECTORY: _without_id(""),
    DirectoryClass.FULL_DIRECTORY: _without_id(_EA_SIZE),
    DirectoryClass.BOTH_DIRECTORY: _without_id(_EA_SIZE + _SHORT_NAME),
    DirectoryClass.NAMES: _names(),
    DirectoryClass.ID_BOTH_DIRECTORY: _with_id(_EA_SIZE + _SHORT_NAME + "2xQ"),
    DirectoryClass.ID_FULL_DIRECTORY: _with_id(_EA_SIZE + "4xQ"),
    DirectoryClass.ID_EXTD_DIRECTORY: _with_id(_EA_SIZE + _REPARSE_TAG + "Q8x"),
    DirectoryClass.ID_EXTD_BOTH_DIRECTORY: _with_id(_EA_SIZE + _REPARSE_TAG + "Q8x" + _SHORT_NAME),
}
