"""Pop receipts: opaque to clients, and enough for the server to find the message at once.

A receipt holds the two instants that say where the message is, and a secret that says it is the latest receipt. Its
alphabet is the one of base64 that survives a URL, since some clients forget to encode what they send back.
"""

import base64
import binascii

from kyanite.values import Instant
from kyanite.wire.malformed import bad_parameter

SECRET_BYTES = 8

_LENGTH = 32


def encode(visible_at: Instant, put_at: Instant, secret: bytes) -> str:
    packed = b"%b%b%b" % (visible_at.to_bytes(8, "big"), put_at.to_bytes(8, "big"), secret)
    return base64.b64encode(packed, b"-_").decode("ascii")


def decode(text: str) -> tuple[Instant, Instant, bytes]:
    """Raises Malformed when the text is not a receipt of this form."""
    try:
        packed = base64.b64decode(text, b"-_", validate=True) if len(text) == _LENGTH else b""
    except (binascii.Error, ValueError):
        packed = b""
    if len(packed) != 16 + SECRET_BYTES:
        raise bad_parameter("popreceipt", text, "Invalid pop receipt format")
    return (
        Instant(int.from_bytes(packed[:8], "big")),
        Instant(int.from_bytes(packed[8:16], "big")),
        packed[16:],
    )
