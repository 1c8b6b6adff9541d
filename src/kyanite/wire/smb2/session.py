"""SESSION_SETUP (MS-SMB2 §2.2.5, §2.2.6), and the messages that are nothing but a size.

LOGOFF, TREE_DISCONNECT, ECHO and CANCEL (§2.2.7, §2.2.8, §2.2.11, §2.2.12, §2.2.28 to §2.2.30) have a body of four
bytes in both directions, as the response to a FLUSH and to a LOCK has.
"""

import struct
from typing import NamedTuple

from kyanite.wire.smb2.body import HEADER_BYTES, invalid, unpack

BINDING = 0x1

SESSION_IS_GUEST = 0x1
SESSION_IS_NULL = 0x2
SESSION_ENCRYPT_DATA = 0x4

_REQUEST = struct.Struct("<HBBIIHHQ")
_REQUEST_SIZE = 25
_RESPONSE = struct.Struct("<HHHH")
_RESPONSE_SIZE = 9
_EMPTY = struct.Struct("<HH")
_EMPTY_SIZE = 4


class SessionSetupRequest(NamedTuple):
    flags: int
    security_mode: int
    capabilities: int
    previous_session_id: int
    token: memoryview
    """SPNEGO, or NTLMSSP as it is."""


def decode_setup(message: memoryview) -> SessionSetupRequest:
    _, flags, security_mode, capabilities, _, offset, length, previous = unpack(
        message, _REQUEST, _REQUEST_SIZE
    )
    if offset != HEADER_BYTES + _REQUEST.size or offset + length > len(message):
        raise invalid()
    return SessionSetupRequest(
        flags, security_mode, capabilities, previous, message[offset : offset + length]
    )


def encode_setup(session_flags: int, token: bytes) -> bytes:
    at = HEADER_BYTES + _RESPONSE.size
    return _RESPONSE.pack(_RESPONSE_SIZE, session_flags, at, len(token)) + token


def decode_empty(message: memoryview) -> None:
    """A LOGOFF, TREE_DISCONNECT, ECHO or CANCEL request."""
    unpack(message, _EMPTY, _EMPTY_SIZE)


EMPTY = _EMPTY.pack(_EMPTY_SIZE, 0)
"""The response to LOGOFF, TREE_DISCONNECT, ECHO, FLUSH and LOCK."""
