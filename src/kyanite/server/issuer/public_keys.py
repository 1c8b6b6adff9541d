"""Public keys of clients and of issuers that vouch for them, out of files."""

import jwt
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey

_RSA_BITS_MIN = 2048


def key_in_pem(text: bytes) -> PublicKey | None:
    """The key of the first certificate, or a public key by itself; None if there is no usable one."""
    try:
        if b"BEGIN CERTIFICATE" in text:
            return _usable(x509.load_pem_x509_certificates(text)[0].public_key())
        return _usable(serialization.load_pem_public_key(text))
    except ValueError:
        return None


def keys_in_jwks(text: bytes) -> tuple[tuple[str, PublicKey], ...]:
    """The usable keys of a JSON Web Key Set, each with its id."""
    try:
        rows = jwt.PyJWKSet.from_json(text.decode("utf-8", "replace")).keys
    except (jwt.PyJWTError, ValueError, AttributeError, TypeError):
        return ()
    return tuple((row.key_id or "", key) for row in rows if (key := _usable(row.key)) is not None)


def _usable(key: object) -> PublicKey | None:
    if isinstance(key, rsa.RSAPublicKey) and key.key_size >= _RSA_BITS_MIN:
        return key
    if isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1):
        return key
    return None
