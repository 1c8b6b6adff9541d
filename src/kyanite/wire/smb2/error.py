"""The body of a response that failed (MS-SMB2 §2.2.2)."""

import struct
from collections.abc import Sequence
from typing import NamedTuple

from kyanite.wire.smb2.body import padding

_LAYOUT = struct.Struct("<HBBI")
_CONTEXT = struct.Struct("<II")
_SIZE = 9

DEFAULT_ERROR_ID = 0


class ErrorContext(NamedTuple):
    """MS-SMB2 §2.2.2.1, in 3.1.1 only."""

    data: bytes
    error_id: int = DEFAULT_ERROR_ID


def encode(data: bytes = b"") -> bytes:
    """An error with its data; without any, one byte of the buffer is still sent."""
    return _LAYOUT.pack(_SIZE, 0, 0, len(data)) + (data or b"\0")


def encode_with_contexts(contexts: Sequence[ErrorContext]) -> bytes:
    """An error of dialect 3.1.1, whose data is in contexts, each of them 8-aligned."""
    packed = bytearray()
    for context in contexts:
        packed += bytes(padding(len(packed)))
        packed += _CONTEXT.pack(len(context.data), context.error_id) + context.data
    return _LAYOUT.pack(_SIZE, len(contexts), 0, len(packed)) + (bytes(packed) or b"\0")


def encode_buffer_too_small(needed: int, *, in_context: bool) -> bytes:
    """The size that the client's buffer needs (§2.2.2.2): plain, or in a context for 3.1.1."""
    data = needed.to_bytes(4, "little")
    return encode_with_contexts([ErrorContext(data)]) if in_context else encode(data)


EMPTY = encode()
