"""Frames on TCP (MS-SMB2 §2.1), the four kinds of messages inside, and the one SMB1 message that is answered.

A frame is a zero byte, a length of three bytes, big-endian, and so many bytes of message.
"""

import struct
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from kyanite.wire.malformed import Malformed
from kyanite.wire.smb2.body import Data

PREFIX_BYTES = 4
LONGEST = 0xFFFFFF
UNAUTHENTICATED_BYTES = 128 * 1024
"""The longest message of a client that has not logged on."""
BEYOND_PAYLOAD_BYTES = 64 * 1024
"""How much longer than the largest payload a message of an authenticated client may be."""

_PREFIX = struct.Struct(">I")


def decode_prefix(data: Data, limit: int, at: int = 0) -> int | None:
    """The length of the message whose frame begins at ``at``; None while its prefix is incomplete.

    ``limit`` is the longest message to accept: a longer one is refused before any of it is read.
    """
    if len(data) - at < PREFIX_BYTES:
        if len(data) > at and data[at]:
            raise _invalid()
        return None
    (length,) = _PREFIX.unpack_from(data, at)
    if length > min(limit, LONGEST):
        raise _invalid()
    return int(length)


def encode_prefix(length: int) -> bytes:
    if length > LONGEST:
        raise ValueError(f"A message of {length} bytes is too long for a frame.")
    return _PREFIX.pack(length)


def frame(buffers: Sequence[Data]) -> list[Data]:
    """The buffers of one message with their prefix."""
    return [encode_prefix(sum(map(len, buffers))), *buffers]


class Kind(Enum):
    """What the first four bytes of a message say."""

    SMB2 = b"\xfeSMB"
    ENCRYPTED = b"\xfdSMB"
    COMPRESSED = b"\xfcSMB"
    SMB1 = b"\xffSMB"


def kind_of(message: Data) -> Kind:
    try:
        return Kind(bytes(message[:4]))
    except ValueError:
        raise _invalid() from None


class Smb1Negotiate(NamedTuple):
    """The multi-protocol negotiation of clients that also speak SMB1 (MS-SMB2 §3.3.5.3)."""

    dialects: tuple[str, ...]

    @property
    def offers_smb2(self) -> bool:
        """Whether any SMB2 dialect may follow; ``SMB 2.002`` alone means 2.0.2, which is not spoken here."""
        return "SMB 2.???" in self.dialects


_SMB1_NEGOTIATE = 0x72
_SMB1_HEADER_BYTES = 32
_SMB1_DIALECT = b"\x02"
_SMB1_PARAMETERS = struct.Struct("<BH")


def decode_smb1_negotiate(message: Data) -> Smb1Negotiate:
    """MS-CIFS §2.2.4.52.1: no parameter words, then the dialects, each ``02``, text, ``00``."""
    start = _SMB1_HEADER_BYTES + _SMB1_PARAMETERS.size
    if kind_of(message) is not Kind.SMB1 or len(message) < start or message[4] != _SMB1_NEGOTIATE:
        raise _invalid()
    words, byte_count = _SMB1_PARAMETERS.unpack_from(message, _SMB1_HEADER_BYTES)
    listed = bytes(message[start : start + byte_count])
    if (
        words
        or len(listed) != byte_count
        or not (listed.startswith(_SMB1_DIALECT) and listed.endswith(b"\0"))
    ):
        raise _invalid()
    names = listed[:-1].split(b"\0")
    if not all(name.startswith(_SMB1_DIALECT) for name in names):
        raise _invalid()
    return Smb1Negotiate(tuple(name[1:].decode("ascii", "replace") for name in names))


def encode_smb1_no_dialect() -> bytes:
    """The SMB1 answer that says that no dialect is common (MS-CIFS §2.2.4.52.2): DialectIndex 0xFFFF."""
    header = Kind.SMB1.value + bytes([_SMB1_NEGOTIATE]) + bytes(4) + b"\x80" + bytes(22)
    return header + b"\x01\xff\xff\x00\x00"


def _invalid() -> Malformed:
    return Malformed("INVALID_PARAMETER")
