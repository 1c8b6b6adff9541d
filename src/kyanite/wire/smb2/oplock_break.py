"""OPLOCK_BREAK (MS-SMB2 §2.2.23 to §2.2.25): notification, acknowledgement and response, for oplocks and leases.

A message for an oplock and one for a lease have the same command; their sizes tell them apart.
"""

import struct
from typing import NamedTuple

from kyanite.wire.smb2.body import HEADER_BYTES, FileId, invalid, unpack

ACK_REQUIRED = 0x1

_OPLOCK = struct.Struct("<HBBIQQ")
_OPLOCK_SIZE = 24
_LEASE = struct.Struct("<HHI16sIQ")
_LEASE_SIZE = 36
_LEASE_BREAK = struct.Struct("<HHI16sIIIII")
_LEASE_BREAK_SIZE = 44
_SIZE = struct.Struct("<H")


class OplockAcknowledgement(NamedTuple):
    oplock_level: int
    file_id: FileId


class LeaseAcknowledgement(NamedTuple):
    key: bytes
    state: int


def decode(message: memoryview) -> OplockAcknowledgement | LeaseAcknowledgement:
    if len(message) < HEADER_BYTES + _SIZE.size:
        raise invalid()
    (size,) = _SIZE.unpack_from(message, HEADER_BYTES)
    if size == _LEASE_SIZE:
        _, _, _, key, state, _ = unpack(message, _LEASE, _LEASE_SIZE)
        return LeaseAcknowledgement(key, state)
    _, level, _, _, persistent, volatile = unpack(message, _OPLOCK, _OPLOCK_SIZE)
    return OplockAcknowledgement(level, FileId(persistent, volatile))


def encode_oplock(oplock_level: int, file_id: FileId) -> bytes:
    """The notification (§2.2.23.1) and the response (§2.2.25.1), which look the same."""
    return _OPLOCK.pack(_OPLOCK_SIZE, oplock_level, 0, 0, *file_id)


def encode_lease_break(
    *, key: bytes, current_state: int, new_state: int, new_epoch: int, is_acknowledged: bool
) -> bytes:
    """The notification (§2.2.23.2). ``new_epoch`` is 0 for leases of version 1."""
    flags = ACK_REQUIRED if is_acknowledged else 0
    return _LEASE_BREAK.pack(_LEASE_BREAK_SIZE, new_epoch, flags, key, current_state, new_state, 0, 0, 0)


def encode_lease(key: bytes, state: int) -> bytes:
    """The response to an acknowledgement (§2.2.25.2)."""
    return _LEASE.pack(_LEASE_SIZE, 0, 0, key, state, 0)
