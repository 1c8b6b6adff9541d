"""Who the caller is: the principal that the key, the token or the lack of either proves.

Signatures are checked here, over the strings to sign of the wire formats. What a principal may do is
``rules/authorization.py``. Stored policies and public access levels are read for every request that needs them, so a
change is in force for the next request.
"""

import logging
import re
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from kyanite.model.accounts import Account, SasPolicy
from kyanite.rules import sas_terms, token_claims
from kyanite.rules.account_settings import is_valid_for_too_long
from kyanite.rules.authorization import (
    ACCOUNT_KEY,
    AccountSasPrincipal,
    AnonymousPrincipal,
    Principal,
    ServiceSasPrincipal,
    refusal_without_credentials,
    refused_token,
)
from kyanite.rules.refusals import AuthenticationProblem, Reason, Refused
from kyanite.rules.sas_terms import Policy
from kyanite.services.rest.context import RequestContext
from kyanite.values import TICKS_PER_SECOND, Instant
from kyanite.wire import http_date, sas, shared_key
from kyanite.wire.malformed import bad_parameter
from kyanite.wire.sas import AccountSas, ServiceSas, Terms
from kyanite.wire.shared_key import Bearer, SharedKey, Signable
from kyanite.wire.uri import Query

_CLOCK_SKEW = 15 * 60 * TICKS_PER_SECOND
_UNVERSIONED = "2009-09-19"
"""The version whose rules a Shared Key signature follows when the request names none."""

_NOT_IN_HEADERS = re.compile(r"[^\t\x20-\x7e\x80-\xff]")
"""Characters that a header of a response cannot have."""


_log = logging.getLogger("kyanite.sas")


class NamedPolicy(Policy, Protocol):
    @property
    def id(self) -> str: ...


@dataclass(frozen=True, slots=True)
class ContainerAcl:
    """The ACL of a container, queue, table or share."""

    policies: Sequence[NamedPolicy]
    public_access: str = ""
    """Empty, ``blob`` or ``container``."""

    def policy(self, identifier: str) -> NamedPolicy | None:
        return next((policy for policy in self.policies if policy.id == identifier), None)


class AclLookup(Protocol):
    """Looks up the ACL of the request's container; None when there is no such container."""

    def __call__(self, context: RequestContext) -> Awaitable[ContainerAcl | None]: ...


async def authenticate(context: RequestContext, query: Query, service: str, acl_lookup: AclLookup) -> None:
    """Fill in the principal that the credentials of the request prove."""
    if "authorization" in context.headers:
        context.principal = _by_header(context, query, service)
        return
    match sas.decode(query, service):
        case AccountSas() as token:
            context.principal = _by_account_sas(context, query, token)
        case ServiceSas() as token:
            context.principal = await _by_service_sas(context, token, acl_lookup)
            context.overrides = _overrides(token)
        case None:
            context.principal = await _anonymous(context, service, acl_lookup)
        case _:
            raise _failed("User delegation keys are not supported by this server.")


def _by_header(context: RequestContext, query: Query, service: str) -> Principal:
    """The principal of a request with an Authorization header.

    A token in the URL is ignored. The clients send it along with the key that they prefer to it: the Python library
    says so, and the Azure CLI does it for a URL with a token beside a connection string.
    """
    authorization = shared_key.decode_authorization(context.headers["authorization"])
    if isinstance(authorization, Bearer):
        refusal = token_claims.refused("This server trusts no issuer of tokens.")
        raise refused_token(refusal, service, context.version)
    if not context.account.settings.shared_key_access:
        raise Refused(Reason.KEY_BASED_AUTHENTICATION_NOT_PERMITTED)
    _check_date(context)
    signable = Signable(
        context.request.method, context.target, query, context.headers, context.version or _UNVERSIONED
    )
    account = context.account
    if authorization.account == account.name and shared_key.verify(authorization, account.keys, signable):
        return ACCOUNT_KEY
    raise _failed(_mismatch(authorization, signable))


def _mismatch(authorization: SharedKey, signable: Signable) -> str:
    text = shared_key.string_to_sign(signable, lite=authorization.lite)
    return (
        f"The MAC signature found in the HTTP request '{authorization.signature}' is not the same as any "
        f"computed signature. Server used following string to sign: '{text}'."
    )


def _check_date(context: RequestContext) -> None:
    text = context.headers.get("x-ms-date") or context.headers.get("date") or ""
    sent_at = http_date.decode(text)
    if sent_at is None:
        raise _failed("x-ms-date or Date header is missing or is not a valid date.")
    if abs(context.environment.wall_clock() - sent_at) > _CLOCK_SKEW:
        raise _failed(f"Request date header too old: '{text}'")


def _by_account_sas(context: RequestContext, query: Query, token: AccountSas) -> Principal:
    """An account SAS names no resource, so a correct signature is remembered with the query.

    It is remembered for this query, this account and its present keys; the terms are checked every time.
    """
    account = context.account
    if not account.settings.shared_key_access:
        raise Refused(Reason.KEY_BASED_AUTHENTICATION_NOT_PERMITTED)
    remembered = query.derived.get(account.name)
    if isinstance(remembered, _Verified) and remembered.account is account:
        principal = remembered.principal
    else:
        _check_signature(account.keys, token.string_to_sign(account.name), token.signature)
        principal = AccountSasPrincipal(token.services, token.resource_types, token.permissions)
        query.derived[account.name] = _Verified(account, principal)
    _check_terms(context, token.terms, token.terms.starts_at, token.terms.expires_at)
    return principal


@dataclass(frozen=True, slots=True)
class _Verified:
    account: Account
    principal: AccountSasPrincipal


async def _by_service_sas(context: RequestContext, token: ServiceSas, acl_lookup: AclLookup) -> Principal:
    account, terms = context.account, token.terms
    if not account.settings.shared_key_access:
        raise Refused(Reason.KEY_BASED_AUTHENTICATION_NOT_PERMITTED)
    moment = context.parameters.get("snapshot") or context.parameters.get("versionid") or ""
    text = token.string_to_sign(account.name, context.container, context.object_name, moment)
    _check_signature(account.keys, text, token.signature)
    if token.identifier is None:
        _check_terms(context, terms, terms.starts_at, terms.expires_at)
        return ServiceSasPrincipal(token.resource, token.permissions or "", token.keys)
    acl = await acl_lookup(context)
    agreement = sas_terms.agree(
        None if acl is None else acl.policy(token.identifier),
        permissions=token.permissions,
        starts_at=terms.starts_at,
        expires_at=terms.expires_at,
    )
    _check_terms(context, terms, agreement.starts_at, agreement.expires_at)
    return ServiceSasPrincipal(token.resource, agreement.permissions, token.keys)


async def _anonymous(context: RequestContext, service: str, acl_lookup: AclLookup) -> Principal:
    may_be_public = context.account.settings.public_access
    refusal = refusal_without_credentials(service, context.version, may_be_public=may_be_public)
    acl = await acl_lookup(context) if context.container and may_be_public else None
    return AnonymousPrincipal("" if acl is None else acl.public_access, refusal)


def _check_signature(keys: Sequence[bytes], text: str, signature: str) -> None:
    if not sas.verify(keys, text, signature):
        raise _failed(f"Signature did not match. String to sign used was {text}")


def _check_terms(
    context: RequestContext, terms: Terms, starts_at: Instant | None, expires_at: Instant | None
) -> None:
    if expires_at is None:
        raise _failed("Signature fields not well formed.")
    sas_terms.check_time(starts_at, expires_at, context.environment.clock())
    if terms.addresses is not None:
        sas_terms.check_address(terms.addresses, context.request.peer)
    if terms.https_only:
        sas_terms.check_protocol(https_only=True, secure=context.request.secure)
    if (policy := context.account.settings.sas_policy) is not None:
        _check_policy(context, policy, starts_at, expires_at)


def _check_policy(
    context: RequestContext, policy: SasPolicy, starts_at: Instant | None, expires_at: Instant
) -> None:
    """A signature that is valid for longer than the account wants is noted in the log, or refused."""
    now = context.environment.clock()
    if not is_valid_for_too_long(policy.seconds, starts_at, expires_at, now):
        return
    if policy.blocks:
        raise _failed(
            "The shared access signature is valid for longer than the expiration policy of the account permits."
        )
    _log.warning(
        "a shared access signature is valid for longer than the policy of its account",
        extra={"account": context.account.name, "request": context.request_id},
    )


def _overrides(token: ServiceSas) -> Mapping[str, str]:
    """The headers of the response that the token replaces."""
    given = token.overrides
    if given is None:
        return {}
    values = (
        ("cache-control", "rscc", given.cache_control),
        ("content-disposition", "rscd", given.content_disposition),
        ("content-encoding", "rsce", given.content_encoding),
        ("content-language", "rscl", given.content_language),
        ("content-type", "rsct", given.content_type),
    )
    for _, parameter, value in values:
        if value is not None and _NOT_IN_HEADERS.search(value):
            raise bad_parameter(parameter, value, "HTTP query parameter values contain invalid characters.")
    return {name: value for name, _, value in values if value is not None}


def _failed(sentence: str) -> Refused:
    return Refused(Reason.AUTHENTICATION_FAILED, AuthenticationProblem(sentence))
