"""Pop receipts: opaque to clients, and enough for the server to find the message with one read.

A receipt contains the two instants of which the key of the message is made, and a secret by which the server recognises
the latest receipt. It is in the alphabet of base64 that needs no encoding in a URL, because some clients do not encode.
"""

import binascii
from struct import Struct
from typing import Final

from kyanite.values import Instant
from kyanite.wire.malformed import bad_parameter

SECRET_BYTES: Final = 8

Packed = tuple[Instant, Instant, bytes]
"""When the message becomes visible, when it was put, and the secret."""

NOWHERE: Final[Packed] = (Instant(0), Instant(0), b"")
"""A receipt of no message."""


_PACKED: Final = Struct(f">QQ{SECRET_BYTES}s")
_URL_SAFE: Final = bytes.maketrans(b"+/", b"-_")


def encode(visible_at: Instant, put_at: Instant, secret: bytes) -> str:
    packed = _PACKED.pack(visible_at, put_at, secret)
    return binascii.b2a_base64(packed, newline=False).translate(_URL_SAFE).decode("ascii")


def decode(text: str) -> Packed:
    """Raises Malformed when the text is no base64, as Azure does. Other invalid texts become ``NOWHERE``."""
    try:
        packed = binascii.a2b_base64(text.replace("-", "+").replace("_", "/"), strict_mode=True)
    except (binascii.Error, ValueError):
        raise bad_parameter("popreceipt", text, "Invalid pop receipt format") from None
    if len(packed) != _PACKED.size:
        return NOWHERE
    unpacked: Packed = _PACKED.unpack(packed)
    return unpacked
