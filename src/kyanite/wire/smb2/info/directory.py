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
    """How a class writes an entry."""

    fixed_bytes: int
    """What stands before the name."""
    encode: Callable[[int, DirectoryEntry, bytes], bytes]
    """From the offset of the next entry, the entry and its name in UTF-16; padded to 8 bytes."""


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
    """As many entries as fit whole, each 8-aligned. The last one says that none follows, and is not padded."""
    fixed_bytes, encode = layout
    packed: list[bytes] = []
    last: DirectoryEntry | None = None
    name = b""
    at = size = 0
    is_full = False
    for entry in entries:
        next_name = utf_16_le_encode(entry[0])[0]
        next_size = fixed_bytes + len(next_name)
        if at + next_size > limit:
            is_full = True
            break
        last, name, size = entry, next_name, next_size
        step = size + 7 & ~7
        packed.append(encode(step, entry, name))
        at += step
    if last is None:
        return Packed(b"", None, is_full)
    packed[-1] = encode(0, last, name)[:size]
    return Packed(b"".join(packed), last.name, is_full)


class _Forms(dict[int, Callable[..., bytes]]):
    """The layout of a whole entry, by the length of its name."""

    def __init__(self, fixed: str) -> None:
        super().__init__()
        self._fixed = fixed
        self.fixed_bytes = struct.calcsize(fixed)

    def __missing__(self, name_length: int) -> Callable[..., bytes]:
        gap = -(self.fixed_bytes + name_length) & 7
        form = self[name_length] = struct.Struct(f"{self._fixed}{name_length}s{gap}x").pack
        return form


def _names() -> EntryLayout:
    forms = _Forms("<III")

    def encode(step: int, _: DirectoryEntry, name: bytes) -> bytes:
        length = len(name)
        return forms[length](step, 0, length, name)

    return EntryLayout(forms.fixed_bytes, encode)


def _without_id(rest: str) -> EntryLayout:
    forms = _Forms(_COMMON + rest)

    def encode(step: int, entry: DirectoryEntry, name: bytes) -> bytes:
        length = len(name)
        return forms[length](step, 0, *entry[1:8], length, name)

    return EntryLayout(forms.fixed_bytes, encode)


def _with_id(rest: str) -> EntryLayout:
    forms = _Forms(_COMMON + rest)

    def encode(step: int, entry: DirectoryEntry, name: bytes) -> bytes:
        length = len(name)
        return forms[length](step, 0, *entry[1:8], length, entry[8], name)

    return EntryLayout(forms.fixed_bytes, encode)


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
