"""The header of encrypted messages (MS-SMB2 §2.2.41). What is behind it is encrypted and decrypted in ``crypto``."""

import struct
from typing import NamedTuple

from kyanite.wire.smb2.body import Data, invalid

MAGIC = b"\xfdSMB"
TRANSFORM_BYTES = 52
NONCE_BYTES = 16
AUTHENTICATED = slice(20, TRANSFORM_BYTES)
"""The part of this header that the tag covers: all behind the tag."""

_LAYOUT = struct.Struct("<4s16s16sIHHQ")
_ENCRYPTED = 1
"""Flags in 3.1.1, and in 3.0 the number of AES-128-CCM: both are 1."""


class TransformHeader(NamedTuple):
    tag: bytes
    nonce: bytes
    """16 bytes, of which the cipher uses the first 11 (CCM) or 12 (GCM)."""
    original_size: int
    session_id: int


def decode(message: Data) -> TransformHeader:
    """The header of an encrypted message, all of whose other bytes must be the ciphertext."""
    if len(message) < TRANSFORM_BYTES:
        raise invalid()
    magic, tag, nonce, size, _, flags, session_id = _LAYOUT.unpack_from(message)
    if magic != MAGIC or flags != _ENCRYPTED or size != len(message) - TRANSFORM_BYTES:
        raise invalid()
    return TransformHeader(tag, nonce, size, session_id)


def encode(header: TransformHeader) -> bytes:
    return _LAYOUT.pack(
        MAGIC, header.tag, header.nonce, header.original_size, 0, _ENCRYPTED, header.session_id
    )
