"""Keys, signatures and encryption (MS-SMB2 §3.1.4; NIST SP 800-108, 800-38B, 800-38C, 800-38D).

Nothing here is random: nonces come in as arguments. GCM forgives no nonce that is used twice with one key, so the
caller counts them.
"""

import hmac
import struct
from collections.abc import Sequence
from enum import IntEnum
from hashlib import sha256, sha512
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESCCM, AESGCM
from cryptography.hazmat.primitives.cmac import CMAC

from kyanite.wire.malformed import Malformed
from kyanite.wire.smb2 import transform
from kyanite.wire.smb2.body import HEADER_BYTES, Data, invalid
from kyanite.wire.smb2.header import NO_SIGNATURE, SIGNATURE, Command, Header
from kyanite.wire.smb2.negotiate import Dialect
from kyanite.wire.smb2.transform import AUTHENTICATED, NONCE_BYTES, TRANSFORM_BYTES, TransformHeader

NO_HASH = bytes(64)
"""The pre-authentication integrity hash before the first message."""

_TAG_BYTES = 16
_JOINED_BYTES = 64 * 1024
"""Up to here it is faster to copy a message into one piece than to set up a cipher that takes pieces."""


class SigningAlgorithm(IntEnum):
    """§2.2.3.1.7."""

    HMAC_SHA256 = 0
    AES_CMAC = 1
    AES_GMAC = 2


class CipherId(IntEnum):
    """§2.2.3.1.2."""

    AES_128_CCM = 1
    AES_128_GCM = 2
    AES_256_CCM = 3
    AES_256_GCM = 4


_CCM = (CipherId.AES_128_CCM, CipherId.AES_256_CCM)
_CCM_NONCE_BYTES = 11
_GCM_NONCE_BYTES = 12


def extend_hash(previous: bytes, *message: Data) -> bytes:
    """The pre-authentication integrity hash with one more message, from its header to its end (§3.3.5.4)."""
    digest = sha512(previous)
    for data in message:
        digest.update(data)
    return digest.digest()


def derive_key(key: bytes, label: bytes, context: bytes, bits: int = 128) -> bytes:
    """SP 800-108 in counter mode with HMAC-SHA256 (§3.1.4.2). The longest key has 256 bits: one block."""
    counted = b"\x00\x00\x00\x01" + label + b"\x00" + context + bits.to_bytes(4, "big")
    return hmac.digest(key, counted, sha256)[: bits // 8]


class SessionKeys(NamedTuple):
    signing: bytes
    client_to_server: bytes
    server_to_client: bytes
    application: bytes


def session_keys(
    dialect: int, session_key: bytes, integrity_hash: bytes, cipher: int = CipherId.AES_128_CCM
) -> SessionKeys:
    """The keys of a session. ``integrity_hash`` counts in 3.1.1 only. Dialect 2.1 has no keys for encryption."""
    if dialect < Dialect.SMB_3_0:
        return SessionKeys(session_key, b"", b"", session_key)
    bits = 256 if cipher in (CipherId.AES_256_CCM, CipherId.AES_256_GCM) else 128
    if dialect < Dialect.SMB_3_1_1:
        return SessionKeys(
            derive_key(session_key, b"SMB2AESCMAC\0", b"SmbSign\0"),
            derive_key(session_key, b"SMB2AESCCM\0", b"ServerIn \0"),
            derive_key(session_key, b"SMB2AESCCM\0", b"ServerOut\0"),
            derive_key(session_key, b"SMB2APP\0", b"SmbRpc\0"),
        )
    return SessionKeys(
        derive_key(session_key, b"SMBSigningKey\0", integrity_hash),
        derive_key(session_key, b"SMBC2SCipherKey\0", integrity_hash, bits),
        derive_key(session_key, b"SMBS2CCipherKey\0", integrity_hash, bits),
        derive_key(session_key, b"SMBAppKey\0", integrity_hash),
    )


def default_signing(dialect: int) -> SigningAlgorithm:
    """The algorithm of a connection that has negotiated none."""
    return SigningAlgorithm.HMAC_SHA256 if dialect < Dialect.SMB_3_0 else SigningAlgorithm.AES_CMAC


_GMAC_NONCE = struct.Struct("<QI")
_FROM_SERVER = 0x1
_IS_CANCEL = 0x2


class SigningKey:
    """A key and the algorithm that it signs with."""

    def __init__(self, algorithm: int, key: bytes) -> None:
        self._algorithm = SigningAlgorithm(algorithm)
        self._key = key[:16]
        self._gcm = AESGCM(self._key) if self._algorithm is SigningAlgorithm.AES_GMAC else None

    def sign(self, header: Header, message: Sequence[Data]) -> bytes:
        """The signature of a response, whose buffers begin with a header without a signature."""
        return self._signature(message, header.message_id, _FROM_SERVER)

    def is_signed(self, header: Header, message: memoryview) -> bool:
        """Whether the signature of a request is right."""
        role = _IS_CANCEL if header.command == Command.CANCEL else 0
        buffers = (message[: SIGNATURE.start], NO_SIGNATURE, message[HEADER_BYTES:])
        return hmac.compare_digest(self._signature(buffers, header.message_id, role), header.signature)

    def _signature(self, buffers: Sequence[Data], message_id: int, role: int) -> bytes:
        if self._gcm is not None:
            return self._gmac(self._gcm, buffers, _GMAC_NONCE.pack(message_id, role))
        if self._algorithm is SigningAlgorithm.AES_CMAC:
            cmac = CMAC(algorithms.AES(self._key))
            for data in buffers:
                cmac.update(data)  # type: ignore[arg-type]  # any buffer will do
            return cmac.finalize()
        mac = hmac.new(self._key, digestmod=sha256)
        for data in buffers:
            mac.update(data)
        return mac.digest()[:16]

    def _gmac(self, gcm: AESGCM, buffers: Sequence[Data], nonce: bytes) -> bytes:
        """The tag of an empty text, to which the whole message is additional data."""
        if sum(map(len, buffers)) <= _JOINED_BYTES:
            return gcm.encrypt(nonce, b"", b"".join(buffers))
        encryptor = Cipher(algorithms.AES(self._key), modes.GCM(nonce)).encryptor()
        for data in buffers:
            encryptor.authenticate_additional_data(data)
        encryptor.finalize()
        return encryptor.tag


class EncryptionKey:
    """A key of one direction and the cipher that uses it."""

    def __init__(self, cipher: int, key: bytes) -> None:
        self._key = key
        self._is_ccm = cipher in _CCM
        self._nonce_bytes = _CCM_NONCE_BYTES if self._is_ccm else _GCM_NONCE_BYTES
        self._aead: AESCCM | AESGCM = AESCCM(key, _TAG_BYTES) if self._is_ccm else AESGCM(key)

    @property
    def nonce_bytes(self) -> int:
        return self._nonce_bytes

    def encrypt(self, session_id: int, nonce: bytes, message: Sequence[Data]) -> list[Data]:
        """The buffers of an encrypted message: a transform header, then the ciphertext."""
        if len(nonce) != self._nonce_bytes:
            raise ValueError("The length of a nonce depends on the cipher.")
        size = sum(map(len, message))
        header = TransformHeader(bytes(_TAG_BYTES), nonce.ljust(NONCE_BYTES, b"\0"), size, session_id)
        authenticated = transform.encode(header)[AUTHENTICATED]
        if self._is_ccm or size <= _JOINED_BYTES:
            sealed = memoryview(self._aead.encrypt(nonce, b"".join(message), authenticated))
            ciphertext: list[Data] = [sealed[:-_TAG_BYTES]]
            tag = bytes(sealed[-_TAG_BYTES:])
        else:
            encryptor = Cipher(algorithms.AES(self._key), modes.GCM(nonce)).encryptor()
            encryptor.authenticate_additional_data(authenticated)
            ciphertext = [encryptor.update(data) for data in message]
            encryptor.finalize()
            tag = encryptor.tag
        return [transform.encode(header._replace(tag=tag)), *ciphertext]

    def decrypt(self, header: TransformHeader, message: memoryview) -> bytes:
        """The text of an encrypted message. A wrong tag is Malformed: the connection is closed."""
        nonce = header.nonce[: self._nonce_bytes]
        ciphertext = message[TRANSFORM_BYTES:]
        if not ciphertext:
            raise invalid()
        try:
            if self._is_ccm or len(ciphertext) <= _JOINED_BYTES:
                return self._aead.decrypt(nonce, b"".join((ciphertext, header.tag)), message[AUTHENTICATED])
            decryptor = Cipher(algorithms.AES(self._key), modes.GCM(nonce, header.tag)).decryptor()
            decryptor.authenticate_additional_data(message[AUTHENTICATED])
            text = decryptor.update(ciphertext)
            decryptor.finalize()
            return text
        except InvalidTag:
            raise Malformed("ACCESS_DENIED") from None
