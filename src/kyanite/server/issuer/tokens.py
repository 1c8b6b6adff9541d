"""The tokens of the development issuer: claims as in Entra's v1 tokens, which storage gets, signed by its key."""

from collections.abc import Mapping
from dataclasses import dataclass

import jwt

from kyanite.server.issuer.clients import Identity
from kyanite.server.issuer.signing_key import ALGORITHM, SigningKey

STORAGE_AUDIENCE = "https://storage.azure.com"

BY_SECRET, BY_ASSERTION = "1", "2"


def issuer_text(base: str, tenant: str) -> str:
    """``iss`` of the tokens of a tenant, and ``issuer`` of its discovery documents."""
    return f"{base}/{tenant}/v2.0"


@dataclass(frozen=True, slots=True)
class TokenTerms:
    """Where and for how long a token is good."""

    tenant: str
    audience: str
    now: int
    """Seconds since 1970."""
    seconds: int


def claims_of(base: str, identity: Identity, terms: TokenTerms, proof: str = "") -> dict[str, object]:
    """``proof`` is how a client has proved who it is."""
    claims: dict[str, object] = {
        "aud": terms.audience,
        "iss": issuer_text(base, terms.tenant),
        "iat": terms.now,
        "nbf": terms.now,
        "exp": terms.now + terms.seconds,
        "oid": identity.oid,
        "sub": identity.oid,
        "tid": terms.tenant,
        "ver": "1.0",
    }
    if identity.client_id:
        claims |= {"appid": identity.client_id, "idtyp": "app"}
        if proof:
            claims["appidacr"] = proof
    else:
        claims |= {"idtyp": "user", "scp": "user_impersonation"}
    if identity.groups:
        claims["groups"] = list(identity.groups)
    if identity.app_roles:
        claims["roles"] = list(identity.app_roles)
    return claims


def signed(key: SigningKey, claims: Mapping[str, object]) -> str:
    return jwt.encode(dict(claims), key.private, algorithm=ALGORITHM, headers={"kid": key.id})
