"""Whom the claims of a bearer token speak for, and whether the token is for this server and now.

The signature has been checked before, with a key of the issuer that the token names. The order of the checks and the
sentences are those of the service: issuer, audience, lifetime.
"""

import math
import uuid
from collections.abc import Collection, Mapping
from typing import NamedTuple

import msgspec

from kyanite.rules.refusals import AuthenticationProblem, Reason, Refused
from kyanite.rules.roles import Caller, is_guid
from kyanite.values import Instant, unix_seconds

STORAGE_AUDIENCE = "https://storage.azure.com"
_STORAGE_APPLICATION = "e406a681-f3d4-42a8-90b6-c2b029497af1"
_SUFFIXES = ("core.windows.net", "core.chinacloudapi.cn", "core.usgovcloudapi.net", "core.cloudapi.de")
_SERVICES = ("blob", "queue", "table", "file", "dfs")
_CUSTOMARY_TOLERANCE_SECONDS = 300

ENTRA_ISSUERS = (
    "https://sts.windows.net/",
    "https://sts.chinacloudapi.cn/",
    "https://sts.microsoftonline.de/",
    "https://login.microsoftonline.com/",
    "https://login.microsoftonline.us/",
    "https://login.partner.microsoftonline.cn/",
)
"""What the issuers of Microsoft's clouds begin with."""


class Trust(msgspec.Struct, frozen=True, kw_only=True):
    """What is believed of the tokens of one issuer."""

    name: str
    """Its name in the configuration."""
    issuer: str
    """The exact text of the claim ``iss``."""
    audiences: Collection[str] = ()
    """The audiences that its tokens may have; if none are given, those of the storage service."""
    principal_claim: str = ""
    """The claim that roles are assigned to; empty: ``oid``, or ``sub`` in a token without."""
    group_claim: str = "groups"
    tenant: str = ""
    """The tenant of its callers, a GUID; if empty, that of the claim ``tid``."""
    tolerance_seconds: int = _CUSTOMARY_TOLERANCE_SECONDS
    """By how much clocks may differ."""


Claims = Mapping[str, object]
_CLAIM_MAX_CHARACTERS = 500


class ClaimFacts(NamedTuple):
    """The claim of a token for which it was refused."""

    claim: str
    value: str
    at_seconds: int | None = None
    """When the token was used, as claims tell the time."""


def caller_of(
    claims: Claims, trust: Trust, account: str, now: Instant, own_urls: Collection[str] = ()
) -> Caller:
    """The caller, if the token is from this issuer, for this account, and valid now.

    ``own_urls`` are the addresses of this server's services; the account's URL there is an audience too.
    """
    if claims.get("iss") != trust.issuer:
        raise wrong_issuer(claims.get("iss"))
    tenant = _text(claims, "tid")
    if trust.tenant and tenant and tenant.lower() != trust.tenant.lower():
        raise wrong_issuer(tenant, "tid")
    if not _is_for(claims.get("aud"), trust.audiences, account, own_urls):
        raise refused("Audience validation failed. Audience did not match.", _facts(claims, "aud", now))
    check_lifetime(claims, now, trust.tolerance_seconds)
    return _caller(claims, trust, tenant)


def development_caller(claims: Claims, account: str, now: Instant, own_urls: Collection[str] = ()) -> Caller:
    """The caller of a token whose signature nobody checks: it must look like one of Microsoft's, and be valid."""
    issuer = claims.get("iss")
    if not isinstance(issuer, str) or not issuer.startswith(ENTRA_ISSUERS):
        raise wrong_issuer(issuer)
    if not _is_for(claims.get("aud"), (), account, own_urls):
        raise refused("Audience validation failed. Audience did not match.", _facts(claims, "aud", now))
    if not all(claim in claims for claim in ("nbf", "exp", "iat")):
        raise refused("Lifetime validation failed. The token has no nbf, exp or iat.")
    check_lifetime(claims, now, 0)
    return _caller(claims, Trust(name="", issuer=issuer), _text(claims, "tid"))


def check_lifetime(claims: Claims, now: Instant, tolerance_seconds: int) -> None:
    """Refuse a token before its start and after its expiry."""
    seconds = unix_seconds(now)
    expires, starts = _number(claims, "exp"), _number(claims, "nbf")
    if expires is None:
        raise refused("Lifetime validation failed. The token has no expiration time.")
    if starts is not None and seconds + tolerance_seconds < starts:
        raise refused("Lifetime validation failed. The token is not yet valid.", _facts(claims, "nbf", now))
    if seconds - tolerance_seconds > expires:
        raise refused("Lifetime validation failed. The token is expired.", _facts(claims, "exp", now))


def wrong_issuer(given: object = None, claim: str = "iss") -> Refused:
    facts = None if given is None else ClaimFacts(claim, _short(given))
    return refused("Issuer validation failed. Issuer did not match.", facts)


def refused(sentence: str, facts: object = None) -> Refused:
    return Refused(Reason.INVALID_AUTHENTICATION_INFO, AuthenticationProblem(sentence), facts)


def _facts(claims: Claims, claim: str, now: Instant) -> "ClaimFacts":
    return ClaimFacts(claim, _short(claims.get(claim)), unix_seconds(now))


def _short(value: object) -> str:
    return str(value)[:_CLAIM_MAX_CHARACTERS]


def _is_for(audience: object, audiences: Collection[str], account: str, own_urls: Collection[str]) -> bool:
    """Whether any audience of a token is one of this account's. A slash at the end does not count."""
    named = [audience] if isinstance(audience, str) else audience if isinstance(audience, list) else []
    given = {each.rstrip("/") for each in named if isinstance(each, str)}
    accepted = {each.rstrip("/") for each in audiences} or {
        STORAGE_AUDIENCE,
        _STORAGE_APPLICATION,
        *(f"https://{account}.{service}.{suffix}" for service in _SERVICES for suffix in _SUFFIXES),
        *(f"{url}/{account}" for url in own_urls),
    }
    return not given.isdisjoint(accepted)


def _caller(claims: Claims, trust: Trust, tenant: str) -> Caller:
    if trust.principal_claim:
        principal = _text(claims, trust.principal_claim)
    else:
        principal = _text(claims, "oid") or _text(claims, "sub")
    tenant = tenant or trust.tenant
    texts = {name: frozenset(_texts(value)) for name, value in claims.items()}
    return Caller(
        issuer=trust.name,
        principal=principal,
        object_id=guid_for(trust.issuer, principal),
        tenant_id=guid_for(trust.issuer, tenant),
        application_id=_text(claims, "appid") or _text(claims, "azp"),
        groups=texts.get(trust.group_claim, frozenset()),
        claims={name: values for name, values in texts.items() if values},
    )


def guid_for(issuer: str, text: str) -> str:
    """The text itself if it is a GUID, else one derived from it and the issuer, for clients that expect one."""
    return text.lower() if is_guid(text) else str(uuid.uuid5(uuid.NAMESPACE_URL, f"{issuer}\n{text}"))


def _text(claims: Claims, name: str) -> str:
    value = claims.get(name)
    return value if isinstance(value, str) else ""


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _number(claims: Claims, name: str) -> float | None:
    """The value of a claim that is a time; one that is no number is refused."""
    value = claims.get(name)
    if value is None:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or (isinstance(value, float) and not math.isfinite(value)):
        raise refused("Lifetime validation failed. A time of the token is not a number.")
    assert isinstance(value, int | float)
    return value
