"""Keys that are derived from a secret, each for one purpose (HKDF of RFC 5869 with SHA-256 and no salt).

The standard library has all that this takes, so a server that only derives keys need not load a larger one.
"""

import hmac

_HASH_BYTES = 32


def derive_key(secret: bytes, purpose: bytes, length: int = _HASH_BYTES) -> bytes:
    """A key of at most 32 bytes: the first block is all that is needed."""
    assert length <= _HASH_BYTES
    extracted = hmac.digest(bytes(_HASH_BYTES), secret, "sha256")
    return hmac.digest(extracted, purpose + b"\x01", "sha256")[:length]
