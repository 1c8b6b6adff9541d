"""What the bodies of all messages have in common: a fixed part that says its own size, and buffers behind it.

MS-SMB2 §2.2: StructureSize is the size of the fixed part, plus one if a buffer of variable length follows. That one
byte must be there in most requests even if the buffer is empty (§3.3.5.2.6).
"""

import struct
from typing import Any, NamedTuple

from kyanite.wire.malformed import Malformed

HEADER_BYTES = 64

Data = bytes | bytearray | memoryview


class FileId(NamedTuple):
    """MS-SMB2 §2.2.14.1."""

    persistent: int
    volatile: int


CHAIN_FILE_ID = FileId(0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF)
"""In a related request of a chain: the file of the request before. In some FSCTLs: no file."""

FILE_ID = struct.Struct("<QQ")

_OUTPUT = struct.Struct("<HHI")
_OUTPUT_SIZE = 9


def invalid() -> Malformed:
    return Malformed("INVALID_PARAMETER")


def unpack(
    message: memoryview, layout: struct.Struct, size: int, *, needs_buffer: bool = True
) -> tuple[Any, ...]:
    """The fields of the fixed part, whose first one must be ``size``.

    ``needs_buffer`` says whether the extra byte of an odd size must be present.
    """
    if len(message) < HEADER_BYTES + (size if needs_buffer else layout.size):
        raise invalid()
    fields = layout.unpack_from(message, HEADER_BYTES)
    if fields[0] != size:
        raise invalid()
    return fields


def buffer(message: memoryview, offset: int, length: int, after: int) -> memoryview:
    """A buffer behind the first ``after`` bytes of the message. The offset of an empty one does not matter."""
    if not length:
        return message[:0]
    if offset < after or offset + length > len(message):
        raise invalid()
    return message[offset : offset + length]


def text(data: Data) -> str:
    """UTF-16 as names are written."""
    if len(data) % 2:
        raise invalid()
    try:
        return str(data, "utf-16-le")
    except UnicodeDecodeError:
        raise Malformed("ILLEGAL_CHARACTER") from None


def padding(length: int, alignment: int = 8) -> int:
    """How many bytes are missing to the next multiple."""
    return -length % alignment


def encode_output(data: bytes) -> bytes:
    """The body that is one buffer: of QUERY_DIRECTORY, CHANGE_NOTIFY and QUERY_INFO (§2.2.34, §2.2.36, §2.2.38)."""
    return _OUTPUT.pack(_OUTPUT_SIZE, HEADER_BYTES + _OUTPUT.size, len(data)) + data
