"""Who the caller is: the principal that the key, the token or the lack of either proves.

Signatures are checked here, over the strings to sign of the wire formats. What a principal may do is
``rules/authorization.py``. Stored policies and public access levels are read for every request that needs them, so a
change is in force for the next request.
"""

import logging
import re
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from kyanite.model import delegation
from kyanite.model.accounts import Account, SasPolicy
from kyanite.rules import sas_terms, user_delegation
from kyanite.rules.account_settings import is_valid_for_too_long
from kyanite.rules.authorization import (
    ACCOUNT_KEY,
    AccountSasPrincipal,
    AnonymousPrincipal,
    Principal,
    RolePrincipal,
    ServiceSasPrincipal,
    SignatureFacts,
    UserDelegationPrincipal,
    refusal_without_credentials,
)
from kyanite.rules.refusals import AuthenticationProblem, Because, Reason, Refused
from kyanite.rules.roles import Caller
from kyanite.rules.sas_terms import Policy
from kyanite.services.rest import bearer_tokens
from kyanite.services.rest.context import RequestContext
from kyanite.values import TICKS_PER_SECOND, Instant, iso_text
from kyanite.wire import http_date, sas, shared_key
from kyanite.wire.malformed import bad_parameter
from kyanite.wire.sas import AccountSas, Sas, ServiceSas, Terms, UserDelegationSas
from kyanite.wire.shared_key import SharedKey, Signable
from kyanite.wire.uri import Query
from kyanite.wire.user_delegation import SERVICES as DELEGATED_SERVICES
from kyanite.wire.user_delegation import DelegationKey

_CLOCK_SKEW: Final = 15 * 60 * TICKS_PER_SECOND
_MOMENTS: Final = {"bs": "snapshot", "bv": "versionid"}
"""The parameter that says for which moment a request is, by the resource that a token is for."""
_UNVERSIONED: Final = "2009-09-19"
"""The version whose rules a Shared Key signature follows when the request names none."""

_NOT_IN_HEADERS: Final = re.compile(r"[^\t\x20-\x7e\x80-\xff]")
"""Characters that a header of a response cannot have."""


_log: Final = logging.getLogger("kyanite.sas")


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
    header = context.headers.get("authorization")
    if header is not None:
        authorization = shared_key.decode_authorization(header)
        if isinstance(authorization, SharedKey):
            context.principal = _by_key(context, query, authorization)
        elif "sig" in query.first:
            await _by_token_of_user(context, sas.decode(query, service), service, authorization.token)
        else:
            context.principal = await bearer_tokens.principal_of(context, authorization.token, service)
        return
    match sas.decode(query, service):
        case AccountSas() as token:
            context.principal = _by_account_sas(context, query, token)
        case ServiceSas() as token:
            context.principal = await _by_service_sas(context, token, acl_lookup)
            context.overrides = _overrides(token)
        case None:
            context.principal = await _anonymous(context, service, acl_lookup)
        case UserDelegationSas() as token:
            await _by_user_delegation(context, token, service, None)


async def admit_as(
    principal: Principal, context: RequestContext, query: Query, service: str, acl_lookup: AclLookup
) -> None:
    """For callers that another check has admitted: their requests have no credentials of their own."""
    context.principal = principal


def _by_key(context: RequestContext, query: Query, authorization: SharedKey) -> Principal:
    """The principal of a request that is signed with a key.

    A token in the URL is ignored. The clients send it along with the key that they prefer to it: the Python library
    says so, and the Azure CLI does it for a URL with a token beside a connection string.
    """
    if not context.account.settings.shared_key_access:
        raise Refused(Reason.KEY_BASED_AUTHENTICATION_NOT_PERMITTED)
    _check_date(context)
    signable = Signable(
        context.request.method, context.target, query, context.headers, context.version or _UNVERSIONED
    )
    account = context.account
    if authorization.account == account.name and shared_key.verify(authorization, account.keys, signable):
        return ACCOUNT_KEY
    text = shared_key.string_to_sign(signable, lite=authorization.lite)
    other = "" if authorization.account == account.name else authorization.account
    kind = "Shared Key Lite" if authorization.lite else "Shared Key"
    raise _failed(_mismatch(authorization, text), SignatureFacts(kind, text, other))


async def _by_token_of_user(context: RequestContext, token: Sas | None, service: str, bearer: str) -> None:
    """A bearer token beside a signature: that of the only user who may use it.

    Beside any other signature it is refused, since it is not known which of the two the caller means.
    """
    if not isinstance(token, UserDelegationSas) or not token.user_id:
        raise _failed("A bearer token and a shared access signature were both given.")
    user = await bearer_tokens.caller_of(context, bearer, service)
    await _by_user_delegation(context, token, service, user)


def _mismatch(authorization: SharedKey, text: str) -> str:
    return (
        f"The MAC signature found in the HTTP request '{authorization.signature}' is not the same as any "
        f"computed signature. Server used following string to sign: '{text}'."
    )


def _check_date(context: RequestContext) -> None:
    text = context.headers.get("x-ms-date") or context.headers.get("date") or ""
    sent_at = http_date.decode(text)
    if sent_at is None:
        raise _failed("x-ms-date or Date header is missing or is not a valid date.")
    now = context.environment.wall_clock()
    if abs(now - sent_at) > _CLOCK_SKEW:
        why = f"The request says that it is {text}; by the clock of the server it is {iso_text(now)}."
        raise _failed(f"Request date header too old: '{text}'", Because(why))


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
        _check_signature(account.keys, token.string_to_sign(account.name), token.signature, "account SAS")
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
    name = context.object_name if token.directory_depth is None else _signed_name(context, token)
    moment = _moment_of(context, token.resource) if token.resource in _MOMENTS else ""
    text = token.string_to_sign(account.name, context.container, name, moment)
    _check_signature(account.keys, text, token.signature, "service SAS")
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


async def _by_user_delegation(
    context: RequestContext, token: UserDelegationSas, service: str, user: Caller | None
) -> None:
    """The secret of the account and the roles of the delegator are those of now, so either may have taken it back."""
    account, key, shared = context.account, token.key, token.sas
    found = await delegation.find(account.store.engine, account.name, key.tenant_id, key.object_id)
    text = token.string_to_sign(
        account.name,
        context.container,
        _signed_name(context, shared),
        _moment_of(context, shared.resource),
        context.headers,
        context.parameters,
    )
    _check_signature(
        _delegation_keys(context, key, found.secret), text, shared.signature, "user delegation SAS"
    )
    user_delegation.check_key(
        starts_at=key.starts_at,
        expires_at=key.expires_at,
        fits_service=DELEGATED_SERVICES[service] == key.service,
        version=key.version,
        token_version=shared.version,
        now=context.environment.clock(),
    )
    _check_terms(context, shared.terms, shared.terms.starts_at, shared.terms.expires_at)
    if token.encryption_scope:
        raise _failed("This server has no encryption scopes.")
    if token.user_id:
        user_delegation.check_user(user, token.user_id, key.user_tenant_id or key.tenant_id)
    delegator = _delegator_of(context, key, found.delegator, service)
    user_delegation.check_agents(token.authorized_agent, token.unauthorized_agent, delegator)
    allowed = ServiceSasPrincipal(shared.resource, shared.permissions or "")
    context.principal = UserDelegationPrincipal(allowed, delegator)
    context.overrides = _overrides(shared)


def _delegation_keys(context: RequestContext, key: DelegationKey, stored: bytes | None) -> tuple[bytes, ...]:
    """The key that a token says it is signed with; none if the account never gave one out."""
    identity = context.environment.identity
    if identity is None or stored is None:
        return ()
    return (key.value(identity.delegation_secret(context.account.name, stored)),)


def _delegator_of(
    context: RequestContext, key: DelegationKey, delegator: delegation.Delegator | None, service: str
) -> RolePrincipal:
    """The delegator with its roles of now; without any, if it is not known any more."""
    caller = Caller("", "", key.object_id, key.tenant_id)
    if delegator is None:
        return RolePrincipal(caller, (), context.container, context.version)
    caller = Caller(
        delegator.issuer,
        delegator.principal,
        key.object_id,
        key.tenant_id,
        delegator.application_id,
        frozenset(delegator.groups),
        {name: frozenset(values) for name, values in delegator.claims},
    )
    return bearer_tokens.with_roles(context, caller, service)


def _moment_of(context: RequestContext, resource: str) -> str:
    """The snapshot or version that the request names, if a token is for such a one. A token for a version is none for
    the snapshot of the same instant, and the other way round."""
    parameter = _MOMENTS.get(resource)
    return "" if parameter is None else context.parameters.get(parameter) or ""


def _signed_name(context: RequestContext, token: ServiceSas) -> str:
    """The name that a token must be for. A list of blobs in a directory names it by its prefix, as a whole part."""
    depth = token.directory_depth
    if depth is None or context.object_name:
        return context.object_name
    prefix = context.parameters.get("prefix", "")
    return prefix if prefix.count("/") >= depth else ""


async def _anonymous(context: RequestContext, service: str, acl_lookup: AclLookup) -> Principal:
    may_be_public = context.account.settings.public_access
    refusal = refusal_without_credentials(service, context.version, may_be_public=may_be_public)
    acl = await acl_lookup(context) if context.container and may_be_public else None
    return AnonymousPrincipal("" if acl is None else acl.public_access, refusal)


def _check_signature(keys: Sequence[bytes], text: str, signature: str, kind: str) -> None:
    if not sas.verify(keys, text, signature):
        facts = SignatureFacts(kind, text, has_key=bool(keys))
        raise _failed(f"Signature did not match. String to sign used was {text}", facts)


def _check_terms(
    context: RequestContext, terms: Terms, starts_at: Instant | None, expires_at: Instant | None
) -> None:
    if expires_at is None:
        raise _failed("Signature fields not well formed.", Because("The token has no expiry (se)."))
    context.now = context.environment.clock()
    sas_terms.check_time(starts_at, expires_at, context.now)
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
    if not is_valid_for_too_long(policy.seconds, starts_at, expires_at, context.now):
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


def _failed(sentence: str, facts: object = None) -> Refused:
    return Refused(Reason.AUTHENTICATION_FAILED, AuthenticationProblem(sentence), facts)
