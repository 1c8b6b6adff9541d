"""Signatures and encryption (MS-SMB2 §3.1.4; NIST SP 800-38B, 800-38C, 800-38D), by a library of some megabytes.

What a server imports before it has a client of SMB does not import this. Nothing here is random: nonces come in as
arguments. GCM forgives no nonce that is used twice with one key, so the caller counts them.
"""

import hmac
import struct
from collections.abc import Sequence
from hashlib import sha256

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESCCM, AESGCM
from cryptography.hazmat.primitives.cmac import CMAC

from kyanite.wire.malformed import Malformed
from kyanite.wire.smb2 import transform
from kyanite.wire.smb2.body import HEADER_BYTES, Data, invalid
from kyanite.wire.smb2.crypto import CipherId, SigningAlgorithm
from kyanite.wire.smb2.header import NO_SIGNATURE, SIGNATURE, Command, Header
from kyanite.wire.smb2.transform import AUTHENTICATED, NONCE_BYTES, TRANSFORM_BYTES, TransformHeader

_TAG_BYTES = 16
_JOINED_BYTES = 64 * 1024
"""Up to here it is faster to copy a message into one piece than to set up a cipher that takes pieces."""
_CCM = (CipherId.AES_128_CCM, CipherId.AES_256_CCM)
_CCM_NONCE_BYTES = 11
_GCM_NONCE_BYTES = 12
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
        """The buffers of an encrypted message: a transform header, then the ciphertext. That of a long message takes
        the place of its text in buffers that can be changed."""
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
            ciphertext = [_update(encryptor, data) for data in message]
            encryptor.finalize()
            tag = encryptor.tag
        return [transform.encode(header._replace(tag=tag)), *ciphertext]

    def decrypt(self, header: TransformHeader, message: memoryview) -> Data:
        """The text of an encrypted message; that of a long one is where the ciphertext was. A wrong tag is Malformed:
        the connection is closed."""
        nonce = header.nonce[: self._nonce_bytes]
        ciphertext = message[TRANSFORM_BYTES:]
        if not ciphertext:
            raise invalid()
        try:
            if self._is_ccm or len(ciphertext) <= _JOINED_BYTES:
                return self._aead.decrypt(nonce, b"".join((ciphertext, header.tag)), message[AUTHENTICATED])
            decryptor = Cipher(algorithms.AES(self._key), modes.GCM(nonce, header.tag)).decryptor()
            decryptor.authenticate_additional_data(message[AUTHENTICATED])
            text = _update(decryptor, ciphertext)
            decryptor.finalize()
            return text
        except InvalidTag:
            raise Malformed("ACCESS_DENIED") from None


def _update(cipher: CipherContext, data: Data) -> Data:
    """Encrypt or decrypt, in place if the buffer can be changed. GCM keeps the length."""
    if isinstance(data, memoryview) and not data.readonly:
        cipher.update_into(data, data)
        return data
    return cipher.update(data)
