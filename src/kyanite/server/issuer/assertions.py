"""Client assertions: a signed statement in place of a secret (RFC 7523).

Three kinds: signed by the client's own key (``CertificateCredential``), by this issuer for the client
(``kyanite token``, for ``WorkloadIdentityCredential``), or by another issuer that the configuration names. An assertion
is checked with the keys that the server has for its issuer, never with one that it brings along.
"""

import math
from collections.abc import Iterable

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

from kyanite.server.issuer.clients import AssertionSource
from kyanite.server.issuer.errors import WRONG_ASSERTION, TokenRefused
from kyanite.server.issuer.public_keys import PublicKey

TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_TOLERANCE_SECONDS = 300
# The library raises others than its own for some texts that are no tokens.
_UNREADABLE = (jwt.PyJWTError, ValueError, TypeError, RecursionError)
_RSA, _EC = ("RS256", "RS384", "PS256"), ("ES256",)


def check_assertion(text: str, sources: Iterable[AssertionSource], *, now: int, real_now: int) -> None:
    """Refuses unless one of the sources has signed the assertion, and it is good now.

    ``now`` is the time of this issuer. That of all others is the real one, from which tests may have moved ours.
    """
    source, claims = _claims_signed_by(text, sources)
    now = now if source.is_this_issuer else real_now
    if now > _seconds(claims["exp"]) + _TOLERANCE_SECONDS:
        raise TokenRefused(WRONG_ASSERTION, "It has expired.")
    if now < _seconds(claims.get("nbf", 0)) - _TOLERANCE_SECONDS:
        raise TokenRefused(WRONG_ASSERTION, "It is not valid yet.")


def _claims_signed_by(
    text: str, sources: Iterable[AssertionSource]
) -> tuple[AssertionSource, dict[str, object]]:
    kid = _kid_of(text)
    for source in sources:
        for key_id, key in source.keys:
            if key_id and kid and key_id != kid:
                continue
            claims = _verified(text, source, key)
            if claims is not None and claims["sub"] == source.subject:
                return source, claims
    raise TokenRefused(WRONG_ASSERTION, "No key, issuer, subject and audience that the client has fits it.")


def _kid_of(text: str) -> str:
    try:
        kid = jwt.get_unverified_header(text).get("kid", "")
    except _UNREADABLE:
        raise TokenRefused(WRONG_ASSERTION, "It is no signed token.") from None
    return kid if isinstance(kid, str) else ""


def _verified(text: str, source: AssertionSource, key: PublicKey) -> dict[str, object] | None:
    try:
        return jwt.decode(
            text,
            key,
            algorithms=_RSA if isinstance(key, rsa.RSAPublicKey) else _EC,
            audience=source.audiences,
            issuer=source.issuer,
            # Times are compared with the clock of the server, and not with the one that the library would ask.
            options={
                "require": ["iss", "sub", "aud", "exp"],
                "verify_exp": False,
                "verify_nbf": False,
                "verify_iat": False,
            },
        )
    except _UNREADABLE:
        return None


def _seconds(value: object) -> float:
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise TokenRefused(WRONG_ASSERTION, "Its times are no numbers.")
    return value
