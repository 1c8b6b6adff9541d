"""Access masks of SMB: what a client may do with what it has opened (MS-SMB2 §2.2.13.1).

A client may ask for generic rights, or for all that it can get. What it is granted names single rights only. A session
opened by an account key may do everything; only the read-only attribute takes writing from what is granted.
"""

from kyanite.rules.share_modes import Rights

READ_DATA = LIST_DIRECTORY = 0x00000001
WRITE_DATA = 0x00000002
"""Of a directory: to add a file."""
APPEND_DATA = 0x00000004
"""Of a directory: to add a directory."""
READ_EA = 0x00000008
WRITE_EA = 0x00000010
EXECUTE = 0x00000020
READ_ATTRIBUTES = 0x00000080
WRITE_ATTRIBUTES = 0x00000100
DELETE = 0x00010000
READ_CONTROL = 0x00020000
WRITE_DAC = 0x00040000
WRITE_OWNER = 0x00080000
SYNCHRONIZE = 0x00100000
ACCESS_SYSTEM_SECURITY = 0x01000000
MAXIMUM_ALLOWED = 0x02000000
GENERIC_ALL = 0x10000000
GENERIC_EXECUTE = 0x20000000
GENERIC_WRITE = 0x40000000
GENERIC_READ = 0x80000000

EVERYTHING = 0x001F01FF
UNKNOWN = 0x0CE0FE00
"""Bits that stand for no right."""
WRITES = WRITE_DATA | APPEND_DATA
READS = 0x001200A9
"""All that changes nothing: to read, to execute, and to wait."""

_GENERIC = {
    GENERIC_READ: 0x00120089,
    GENERIC_WRITE: 0x00120116,
    GENERIC_EXECUTE: 0x001200A0,
    GENERIC_ALL: EVERYTHING,
}
_ALL_GENERIC = GENERIC_READ | GENERIC_WRITE | GENERIC_EXECUTE | GENERIC_ALL
_RIGHTS = [Rights(number) for number in range(8)]


def granted(desired: int, *, is_read_only: bool = False) -> int:
    """The single rights that a client gets for what it desires of a file with or without the read-only attribute."""
    mask = desired & ~(_ALL_GENERIC | MAXIMUM_ALLOWED)
    if desired & _ALL_GENERIC:
        for generic, single in _GENERIC.items():
            if desired & generic:
                mask |= single
    if desired & MAXIMUM_ALLOWED:
        mask |= maximum(is_read_only=is_read_only)
    return mask


def maximum(*, is_read_only: bool) -> int:
    return EVERYTHING & ~WRITES if is_read_only else EVERYTHING


def rights_of(mask: int) -> Rights:
    """What share modes know of a mask. Attributes, owners and the like conflict with nothing."""
    number = 0
    if mask & (READ_DATA | EXECUTE):
        number = 1
    if mask & WRITES:
        number |= 2
    if mask & DELETE:
        number |= 4
    return _RIGHTS[number]


def sharing_of(share_access: int) -> Rights:
    """ShareAccess has the bits of ``Rights``."""
    return _RIGHTS[share_access & 7]
