"""Pop receipts: opaque to clients, and enough for the server to find the message at once.

A receipt holds the two instants that say where the message is, and a secret that says it is the latest receipt. Its
alphabet is the one of base64 that survives a URL, since some clients forget to encode what they send back.
"""

import base64
import binascii

from kyanite.values import Instant
from kyanite.wire.malformed import bad_parameter

SECRET_BYTES = 8

Packed = tuple[Instant, Instant, bytes]
"""When the message becomes visible, when it was put, and the secret."""

NOWHERE: Packed = (Instant(0), Instant(0), b"")
"""What leads to no message."""


def encode(visible_at: Instant, put_at: Instant, secret: bytes) -> str:
    packed = b"%b%b%b" % (visible_at.to_bytes(8, "big"), put_at.to_bytes(8, "big"), secret)
    return base64.b64encode(packed, b"-_").decode("ascii")


def decode(text: str) -> Packed:
    """Raises Malformed when the text is no base64, as the service does. What was not made here leads nowhere."""
    try:
        packed = binascii.a2b_base64(text.replace("-", "+").replace("_", "/"), strict_mode=True)
    except (binascii.Error, ValueError):
        raise bad_parameter("popreceipt", text, "Invalid pop receipt format") from None
    if len(packed) != 16 + SECRET_BYTES:
        return NOWHERE
    return (
        Instant(int.from_bytes(packed[:8], "big")),
        Instant(int.from_bytes(packed[8:16], "big")),
        packed[16:],
    )
