"""TREE_CONNECT (MS-SMB2 §2.2.9, §2.2.10)."""

import struct
from enum import IntEnum
from typing import NamedTuple

from kyanite.wire.smb2.body import HEADER_BYTES, invalid, text, unpack

SHARE_CACHING_MANUAL = 0x00000000
SHARE_CACHING_NONE = 0x00000030
SHARE_ENCRYPT_DATA = 0x00008000
CAPABILITY_CONTINUOUS_AVAILABILITY = 0x00000010

_REQUEST = struct.Struct("<HHHH")
_REQUEST_SIZE = 9
_RESPONSE = struct.Struct("<HBBIII")
_RESPONSE_SIZE = 16
_EXTENSION_PRESENT = 0x0004


class ShareType(IntEnum):
    DISK = 1
    PIPE = 2


class TreeConnectRequest(NamedTuple):
    flags: int
    path: str
    r"""``\\host\share``."""

    @property
    def share(self) -> str:
        """The last component of the path. The host before it does not matter."""
        return self.path.rpartition("\\")[2]


class TreeConnectResponse(NamedTuple):
    share_type: ShareType
    maximal_access: int
    share_flags: int = SHARE_CACHING_MANUAL
    capabilities: int = 0


def decode_connect(message: memoryview) -> TreeConnectRequest:
    _, flags, offset, length = unpack(message, _REQUEST, _REQUEST_SIZE)
    if flags & _EXTENSION_PRESENT:
        # The extension puts the path elsewhere (§2.2.9.1). Clients send it to clusters only, which this is not.
        raise invalid()
    if offset != HEADER_BYTES + _REQUEST.size or offset + length > len(message):
        raise invalid()
    return TreeConnectRequest(flags, text(message[offset : offset + length]))


def encode_connect(response: TreeConnectResponse) -> bytes:
    return _RESPONSE.pack(
        _RESPONSE_SIZE,
        response.share_type,
        0,
        response.share_flags,
        response.capabilities,
        response.maximal_access,
    )
