"""Keys of sessions in rows that the other workers of this server can use and nobody else.

The workers inherit a secret that is only in memory, so what is stored is of no use without them.
"""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

SECRET_BYTES = 32
_NONCE_BYTES = 12


class SealedKeys:
    def __init__(self, secret: bytes, random_bytes: Callable[[int], bytes]) -> None:
        self._secret = secret
        self._random_bytes = random_bytes

    @cached_property
    def _cipher(self) -> "AESGCM":
        """Made when it is first used: a server without clients of SMB need not load the library."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        return AESGCM(self._secret)

    def seal(self, key: bytes) -> bytes:
        nonce = self._random_bytes(_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, key, None)

    def open(self, sealed: bytes) -> bytes | None:
        """None for a key that processes with another secret have sealed."""
        from cryptography.exceptions import InvalidTag

        try:
            return self._cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], None)
        except InvalidTag:
            return None
