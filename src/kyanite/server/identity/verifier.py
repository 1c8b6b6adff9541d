"""Verification of bearer tokens: JSON Web Tokens that are signed by a trusted issuer.

The claim ``iss`` chooses among the issuers of the configuration; their keys come from there as well. What a token says
about keys (``jku``, ``jwk``, ``x5u``) is never used, and which algorithm a signature has is decided by the key. The
claims are judged by ``rules/token_claims.py``, for every request; that a signature is right is remembered for a short
time, by the digest of the token. Nothing here logs a token.
"""

import os
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

import jwt

from kyanite.rules import roles, token_claims
from kyanite.rules.roles import Caller, Grant
from kyanite.rules.token_claims import Claims, refused
from kyanite.server.identity.config import Development, IdentityConfig
from kyanite.server.identity.delegation_file import secret_of_account
from kyanite.server.identity.key_sets import IssuerKeys
from kyanite.values import Instant

if TYPE_CHECKING:
    from jwt.types import Options

TOKEN_CHARACTERS_MAX = 16 * 1024
REMEMBERED_MAX = 1024
SECRET_BYTES = 32
REMEMBERED_SECONDS = 60.0

_NOT_WELL_FORMED = "The token is not a well-formed JSON Web Token."
_BAD_SIGNATURE = "Signature validation failed. Signature verification failed."
_UNVERIFIED: "Options" = {"verify_signature": False}
_SIGNATURE_ONLY: "Options" = {
    "verify_signature": True,
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
    "verify_aud": False,
    "verify_iss": False,
    "verify_sub": False,
    "verify_jti": False,
}
_EVERYTHING = (Grant(roles.EVERYTHING),)


class _Remembered(NamedTuple):
    issuer: str
    claims: Claims
    until: float


class TrustedIdentity:
    """The trusted issuers of a worker, and the roles of their callers."""

    def __init__(
        self,
        config: IdentityConfig,
        own_urls: Collection[str] = (),
        delegation_secret: bytes = b"",
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """``own_urls`` are the addresses of the server's services, without an account; ``delegation_secret`` is that of
        the server's file (``delegation_file.py``).
        """
        self._config = config
        self._own_urls = own_urls
        self._delegation_secret = delegation_secret
        self._monotonic = monotonic
        self._trusts = {each.trust.issuer: each.trust for each in config.issuers}
        self._keys = {each.trust.issuer: IssuerKeys(each, monotonic=monotonic) for each in config.issuers}
        self._assigned_claims = frozenset(
            each.principal.partition("=")[0] for each in config.assignments if "=" in each.principal
        )
        self._remembered: OrderedDict[bytes, _Remembered] = OrderedDict()

    @property
    def challenge(self) -> str:
        return self._config.challenge

    def start(self) -> None:
        """Begin to fetch the keys of all issuers."""
        for keys in self._keys.values():
            keys.start()

    async def caller(self, token: str, account: str, now: Instant) -> Caller:
        if len(token) > TOKEN_CHARACTERS_MAX:
            raise refused("The token is too long.")
        if self._config.development is Development.ANY:
            _, claims = _decode(token)
            return token_claims.development_caller(claims, account, now, self._own_urls)
        issuer, claims = await self._verified(token)
        return token_claims.caller_of(claims, self._trusts[issuer], account, now, self._own_urls)

    def grants(self, caller: Caller, account: str, service: str) -> tuple[Grant, ...]:
        if self._config.development is Development.ANY:
            return _EVERYTHING
        return roles.grants_of(self._config.assignments, caller, account, service)

    @property
    def assigned_claims(self) -> Collection[str]:
        return self._assigned_claims

    def fresh_secret(self) -> bytes:
        return os.urandom(SECRET_BYTES)

    def delegation_secret(self, account: str, stored: bytes) -> bytes:
        return secret_of_account(self._delegation_secret, account, stored)

    async def _verified(self, token: str) -> tuple[str, Claims]:
        """The issuer and the claims of a token whose signature is right."""
        digest = sha256(token.encode("utf-8", "surrogatepass")).digest()
        remembered = self._remembered.get(digest)
        if remembered is not None and remembered.until > self._monotonic():
            return remembered.issuer, remembered.claims
        header, unverified = _decode(token)
        issuer = unverified.get("iss")
        if not isinstance(issuer, str) or issuer not in self._keys:
            raise token_claims.wrong_issuer(issuer)
        claims = await self._check_signature(token, header, self._keys[issuer])
        self._remember(digest, _Remembered(issuer, claims, self._monotonic() + REMEMBERED_SECONDS))
        return issuer, claims

    async def _check_signature(self, token: str, header: dict[str, Any], keys: IssuerKeys) -> Claims:
        key_id = header.get("kid")
        if key_id is not None and not isinstance(key_id, str):
            raise refused(_BAD_SIGNATURE)
        key = await keys.find(key_id)
        if key is None:
            raise refused("Signature validation failed. The key of the signature is not known.")
        try:
            claims = jwt.decode(token, key.key, algorithms=list(key.algorithms), options=_SIGNATURE_ONLY)
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
            raise refused(_BAD_SIGNATURE) from None
        return claims

    def _remember(self, digest: bytes, verified: _Remembered) -> None:
        self._remembered[digest] = verified
        self._remembered.move_to_end(digest)
        while len(self._remembered) > REMEMBERED_MAX:
            self._remembered.popitem(last=False)


def _decode(token: str) -> tuple[dict[str, Any], Claims]:
    """Header and claims of a token as it was sent, which nobody has vouched for yet."""
    try:
        decoded = jwt.decode_complete(token, options=_UNVERIFIED)
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
        raise refused(_NOT_WELL_FORMED) from None
    header = decoded["header"]
    if "crit" in header or header.get("b64", True) is not True:
        raise refused(_NOT_WELL_FORMED)  # Extensions that change what is signed: none is supported.
    return header, decoded["payload"]
