"""CRC-64/NVME, the CRC64 of ``x-ms-content-crc64``: reflected polynomial, all ones in and out.

The header contains base64 of the eight bytes in little-endian order.
"""

from base64 import b64decode
from binascii import b2a_base64
from typing import Final, cast

import anycrc

from kyanite.wire.malformed import bad_header

EMPTY: Final = 0
"""The CRC of no bytes, with which an incremental computation begins."""

_MODEL: Final = anycrc.Model("CRC64-NVME")
_BYTES: Final = 8


def compute(data: bytes | bytearray | memoryview, before: int = EMPTY) -> int:
    """The CRC of ``data`` after bytes whose CRC is ``before``."""
    return cast(int, _MODEL.calc(data, before))


def combine(left: int, right: int, right_length_bytes: int) -> int:
    """The CRC of two texts one after the other, from the CRC of each."""
    return cast(int, _MODEL.combine(left, right, right_length_bytes))


def encode(crc: int) -> str:
    return b2a_base64(crc.to_bytes(_BYTES, "little"), newline=False).decode("ascii")


def decode(text: str, header: str = "x-ms-content-crc64") -> int:
    """The value of a header with a CRC. Raises Malformed."""
    try:
        raw = b64decode(text, validate=True)
    except ValueError:
        raise bad_header(header, text) from None
    if len(raw) != _BYTES:
        raise bad_header(header, text)
    return int.from_bytes(raw, "little")
