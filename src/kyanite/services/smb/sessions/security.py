"""The keys of a session: what it signs, verifies, encrypts and decrypts with, and what it demands of requests."""

from collections.abc import Sequence

from kyanite.wire.smb2.body import Data
from kyanite.wire.smb2.crypto import SessionKeys
from kyanite.wire.smb2.header import SIGNATURE, Header
from kyanite.wire.smb2.transform import TransformHeader

_COUNTER_BYTES = 8


class SessionSecurity:
    """The keys of a session of a dialect. ``cipher`` is 0 if none was negotiated. ``salt`` makes the nonces of this
    session differ from any other's."""

    __slots__ = (
        "_count",
        "_decryption",
        "_encryption",
        "_salt",
        "_signing",
        "algorithm",
        "cipher",
        "dialect",
        "is_encrypting",
        "requires_encryption",
        "requires_signing",
        "signing_key",
    )

    def __init__(
        self,
        keys: SessionKeys,
        *,
        dialect: int,
        algorithm: int,
        cipher: int,
        salt: bytes,
        requires_signing: bool,
        requires_encryption: bool,
    ) -> None:
        # Imported here, since a server without clients of SMB need not load it.
        from kyanite.wire.smb2.ciphers import EncryptionKey, SigningKey

        self.dialect = dialect
        self.algorithm = algorithm
        self.cipher = cipher
        self.signing_key = keys.signing
        self._signing = SigningKey(algorithm, keys.signing)
        self._decryption = EncryptionKey(cipher, keys.client_to_server) if cipher else None
        self._encryption = EncryptionKey(cipher, keys.server_to_client) if cipher else None
        self._salt = salt
        self._count = 0
        self.is_encrypting = requires_encryption
        """Whether messages that answer no request are encrypted: the client has to, or does."""
        self.requires_signing = requires_signing
        self.requires_encryption = requires_encryption

    @classmethod
    def of_signing_key(cls, key: bytes, algorithm: int) -> "SessionSecurity":
        """Enough to sign and verify."""
        return cls(
            SessionKeys(key, b"", b"", b""),
            dialect=0,
            algorithm=algorithm,
            cipher=0,
            salt=b"",
            requires_signing=False,
            requires_encryption=False,
        )

    def is_signed(self, header: Header, message: memoryview) -> bool:
        return self._signing.is_signed(header, message)

    def sign(self, header: Header, buffers: Sequence[Data]) -> None:
        """Put the signature into the first buffer, which is the header of a response."""
        first = buffers[0]
        assert isinstance(first, bytearray)
        first[SIGNATURE] = self._signing.sign(header, buffers)

    def decrypt(self, header: TransformHeader, message: memoryview) -> Data | None:
        """None if the session has no cipher. Malformed if the message was not encrypted with the key of the session."""
        if self._decryption is None:
            return None
        text = self._decryption.decrypt(header, message)
        self.is_encrypting = True
        return text

    def encrypt(self, session_id: int, message: Sequence[Data]) -> list[Data]:
        key = self._encryption
        assert key is not None, "The session has no cipher."
        self._count += 1
        nonce = (
            self._count.to_bytes(_COUNTER_BYTES, "little") + self._salt[: key.nonce_bytes - _COUNTER_BYTES]
        )
        return key.encrypt(session_id, nonce, message)
