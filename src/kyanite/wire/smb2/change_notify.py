"""CHANGE_NOTIFY (MS-SMB2 §2.2.35, §2.2.36) and the changes in its response (MS-FSCC §2.7.1)."""

import struct
from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

from kyanite.wire.smb2.body import FileId, padding, unpack

WATCH_TREE = 0x1

FILTER_FILE_NAME = 0x001
FILTER_DIRECTORY_NAME = 0x002
FILTER_ATTRIBUTES = 0x004
FILTER_SIZE = 0x008
FILTER_LAST_WRITE = 0x010
FILTER_LAST_ACCESS = 0x020
FILTER_CREATION = 0x040
FILTER_EXTENDED_ATTRIBUTES = 0x080
FILTER_SECURITY = 0x100

_REQUEST = struct.Struct("<HHIQQII")
_REQUEST_SIZE = 32
_CHANGE = struct.Struct("<III")


class Action(IntEnum):
    ADDED = 1
    REMOVED = 2
    MODIFIED = 3
    RENAMED_OLD_NAME = 4
    RENAMED_NEW_NAME = 5


class ChangeNotifyRequest(NamedTuple):
    watches_tree: bool
    output_bytes: int
    file_id: FileId
    completion_filter: int


class Change(NamedTuple):
    action: Action
    name: str
    """Relative to the watched directory, with backslashes."""


def decode(message: memoryview) -> ChangeNotifyRequest:
    _, flags, output_bytes, persistent, volatile, completion_filter, _ = unpack(
        message, _REQUEST, _REQUEST_SIZE
    )
    return ChangeNotifyRequest(
        bool(flags & WATCH_TREE), output_bytes, FileId(persistent, volatile), completion_filter
    )


def encode_changes(changes: Iterable[Change], limit: int) -> bytes | None:
    """All changes, each 4-aligned; None if they do not fit, for which NOTIFY_ENUM_DIR is the answer."""
    packed = bytearray()
    last_at = 0
    for action, text in changes:
        name = text.encode("utf-16-le")
        at = len(packed) + padding(len(packed), 4)
        if at + _CHANGE.size + len(name) > limit:
            return None
        if packed:
            packed[last_at : last_at + 4] = (at - last_at).to_bytes(4, "little")
            packed += bytes(at - len(packed))
        packed += _CHANGE.pack(0, action, len(name)) + name
        last_at = at
    return bytes(packed)
