"""An issuer of bearer tokens for tests: its key, its key set, and tokens with any claims and any header."""

import base64
import json
from collections.abc import Mapping, Sequence
from functools import cache

import jwt
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ec import generate_private_key as generate_ec
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key as generate_rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from kyanite.rules.roles import Assignment, role_of
from kyanite.rules.token_claims import Trust
from kyanite.server.identity.config import FixedJwks, IdentityConfig, TrustedIssuer

TENANT = "6f3c1d2e-0f7a-4b86-9d57-1f2a3b4c5d6e"
OID = "0e9d8c7b-6a59-4837-9261-5f4e3d2c1b0a"
ISSUER = f"https://sts.windows.net/{TENANT}/"
AUDIENCE = "https://storage.azure.com"
KEY_ID = "first"
ABSENT = object()

PrivateKey = RSAPrivateKey | EllipticCurvePrivateKey


@cache
def rsa_key(name: str = KEY_ID, bits: int = 2048) -> RSAPrivateKey:
    """A key for each name; made once, because it takes long."""
    return generate_rsa(public_exponent=65537, key_size=bits)


@cache
def ec_key(name: str = KEY_ID) -> EllipticCurvePrivateKey:
    return generate_ec(SECP256R1())


def jwk(key: PrivateKey, key_id: str | None = KEY_ID, **more: object) -> dict[str, object]:
    """The public half of a key as a JSON Web Key."""
    if isinstance(key, RSAPrivateKey):
        found = json.loads(RSAAlgorithm.to_jwk(key.public_key()))
    else:
        found = json.loads(ECAlgorithm.to_jwk(key.public_key()))
    found.pop("key_ops", None)
    return {**found, **({} if key_id is None else {"kid": key_id}), "use": "sig", **more}


def key_set(*keys: Mapping[str, object]) -> str:
    return json.dumps({"keys": list(keys or (jwk(rsa_key()),))})


def claims_at(seconds: float, **changes: object) -> dict[str, object]:
    """The claims of a token that is valid at this time."""
    claims: dict[str, object] = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "iat": int(seconds) - 60,
        "nbf": int(seconds) - 60,
        "exp": int(seconds) + 3600,
        "tid": TENANT,
        "oid": OID,
        "sub": OID,
        "appid": "4b1d5cf0-0000-4000-8000-000000000001",
        "ver": "1.0",
        **changes,
    }
    return {name: value for name, value in claims.items() if value is not ABSENT}


def signed(
    claims: Mapping[str, object],
    key: PrivateKey | None = None,
    algorithm: str = "RS256",
    key_id: str | None = KEY_ID,
    **header: object,
) -> str:
    headers = {**({} if key_id is None else {"kid": key_id}), **header}
    return jwt.encode(dict(claims), key or rsa_key(), algorithm, headers=headers)


def assembled(header: object, claims: object, signature: bytes = b"") -> str:
    """A token of any parts, whatever a library would say about them."""
    parts = (json.dumps(header).encode(), json.dumps(claims).encode(), signature)
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


def assigned(
    role: str, principal: str = OID, account: str = "", container: str = "", issuer: str = ""
) -> Assignment:
    found = role_of(role)
    assert found is not None, role
    return Assignment(principal, found, account, container, issuer)


def trusting(*assignments: Assignment, keys: Sequence[Mapping[str, object]] = ()) -> IdentityConfig:
    """A configuration that trusts this issuer."""
    issuer = TrustedIssuer(Trust(name="test", issuer=ISSUER, tenant=TENANT), FixedJwks(key_set(*keys)))
    return IdentityConfig(issuers=(issuer,), assignments=assignments)
