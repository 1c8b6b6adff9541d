"""The algorithms of signatures and encryption, and the keys for them (MS-SMB2 §3.1.4; NIST SP 800-108).

``ciphers.py`` signs and encrypts with these keys.
"""

import hmac
from enum import IntEnum
from hashlib import sha256, sha512
from typing import NamedTuple

from kyanite.wire.smb2.body import Data
from kyanite.wire.smb2.negotiate import Dialect

NO_HASH = bytes(64)
"""The pre-authentication integrity hash before the first message."""


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
