"""The key that signs the tokens of the development issuer: made once, then kept beside the store."""

import base64
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from kyanite.server.failures import Failure
from kyanite.server.issuer import private_files

ALGORITHM = "RS256"
_FILE = "signing-key.pem"
_BITS = 2048


@dataclass(frozen=True, slots=True)
class SigningKey:
    private: rsa.RSAPrivateKey
    id: str
    """``kid``: the thumbprint of the public key (RFC 7638)."""
    public_jwk: dict[str, str]
    """The public key as a row of a JWKS."""


def load_or_make(folder: Path) -> SigningKey:
    """The key of the store whose issuer has this folder. The caller holds the store's lock."""
    found = load(folder)
    if found is not None:
        return found
    private = rsa.generate_private_key(public_exponent=65537, key_size=_BITS)
    private_files.write(
        folder / _FILE,
        private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )
    return signing_key(private)


def load(folder: Path) -> SigningKey | None:
    """The key, if one was made before."""
    path = folder / _FILE
    text = private_files.read(path)
    if text is None:
        return None
    try:
        private = serialization.load_pem_private_key(text, password=None)
    except (ValueError, TypeError):
        private = None
    if not isinstance(private, rsa.RSAPrivateKey):
        raise Failure(f"There is no usable RSA key in {path}. Without the file, a new one is made.")
    return signing_key(private)


def signing_key(private: rsa.RSAPrivateKey) -> SigningKey:
    jwk = RSAAlgorithm.to_jwk(private.public_key(), as_dict=True)
    kid = _thumbprint(jwk["e"], jwk["n"])
    public = {"kty": "RSA", "use": "sig", "alg": ALGORITHM, "kid": kid, "n": jwk["n"], "e": jwk["e"]}
    return SigningKey(private, kid, public)


def _thumbprint(exponent: str, modulus: str) -> str:
    members = json.dumps({"e": exponent, "kty": "RSA", "n": modulus}, separators=(",", ":"))
    return base64.urlsafe_b64encode(hashlib.sha256(members.encode()).digest()).decode().rstrip("=")
