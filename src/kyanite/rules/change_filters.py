"""What a change of a directory's entry is to those who watch the directory (MS-FSCC §2.7.1, MS-SMB2 §2.2.35).

A watch has a filter: a set of kinds of change. A change is reported to it if the change is of one of these kinds.
"""

from enum import IntEnum, IntFlag
from typing import Protocol


class Action(IntEnum):
    ADDED = 1
    REMOVED = 2
    MODIFIED = 3
    RENAMED_OLD_NAME = 4
    RENAMED_NEW_NAME = 5


class Filter(IntFlag):
    FILE_NAME = 0x001
    DIRECTORY_NAME = 0x002
    ATTRIBUTES = 0x004
    SIZE = 0x008
    LAST_WRITE = 0x010
    LAST_ACCESS = 0x020
    CREATION = 0x040
    EXTENDED_ATTRIBUTES = 0x080
    SECURITY = 0x100


RENAMED_FILE = Filter.ATTRIBUTES | Filter.CREATION
"""Windows reports a renamed file, under its new name, as modified in these ways too."""


class Described(Protocol):
    """What is compared of an entry before and after a change."""

    @property
    def attributes(self) -> int: ...
    @property
    def length(self) -> int: ...
    @property
    def content(self) -> object: ...
    @property
    def last_write_at(self) -> int: ...
    @property
    def created_at(self) -> int: ...
    @property
    def permission(self) -> bytes: ...


def of_name(*, is_directory: bool) -> Filter:
    """The kind of a change that makes, removes or renames an entry."""
    return Filter.DIRECTORY_NAME if is_directory else Filter.FILE_NAME


def of_modification(old: Described, new: Described) -> Filter:
    """The kinds of a change of one entry; none if no client of SMB can notice it."""
    found = Filter(0)
    if new.attributes != old.attributes:
        found |= Filter.ATTRIBUTES
    if new.length != old.length:
        found |= Filter.SIZE
    if new.last_write_at != old.last_write_at or new.content != old.content:
        found |= Filter.LAST_WRITE
    if new.created_at != old.created_at:
        found |= Filter.CREATION
    if new.permission != old.permission:
        found |= Filter.SECURITY
    return found
