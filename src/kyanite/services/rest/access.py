"""Who is asking: the grant that a request's key, token or lack of either amounts to.

Signatures are checked here, over the wire formats' own texts; what a grant allows is ``rules/permissions.py``. Stored
policies and public levels are read for every request that needs them, so a change holds at once.
"""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from kyanite.model.accounts import Account
from kyanite.rules import permissions
from kyanite.rules.permissions import OWNER, AccountGrant, Anonymous, Grant, Policy, ServiceGrant
from kyanite.rules.refusals import Reason, Refused
from kyanite.services.rest.context import RequestContext
from kyanite.values import TICKS_PER_SECOND, Instant
from kyanite.wire import http_date, sas, shared_key
from kyanite.wire.sas import AccountSas, ServiceSas, Terms
from kyanite.wire.shared_key import Bearer, SharedKey, Signable
from kyanite.wire.uri import Query

_CLOCK_SKEW = 15 * 60 * TICKS_PER_SECOND
_NO_OVERRIDES: Mapping[str, str] = {}


class NamedPolicy(Policy, Protocol):
    @property
    def id(self) -> str: ...


@dataclass(frozen=True, slots=True)
class ContainerAcl:
    """A container, queue, table or share, as far as access is concerned."""

    policies: Sequence[NamedPolicy]
    public_level: str = ""
    """Empty, ``blob`` or ``container``."""

    def policy(self, identifier: str) -> NamedPolicy | None:
        return next((policy for policy in self.policies if policy.id == identifier), None)


class AclLookup(Protocol):
    """Looks up what the request's container says about access; None when there is no such container."""

    def __call__(self, context: RequestContext) -> Awaitable[ContainerAcl | None]: ...


Admission = tuple[Grant, Mapping[str, str]]
"""A grant, and the headers of a GET answer that its token replaces."""


async def authenticate(
    context: RequestContext, query: Query, service: str, acl_lookup: AclLookup
) -> Admission:
    return at_once(context, query, service) or await looked_up(context, query, service, acl_lookup)


def at_once(context: RequestContext, query: Query, service: str) -> Admission | None:
    """How a request is admitted by a key or an account SAS; None when something has to be looked up for it."""
    if "authorization" in context.headers:
        return _by_header(context, query), _NO_OVERRIDES
    token = sas.decode(query, service)
    if isinstance(token, AccountSas):
        return _by_account_sas(context, query, service, token), _NO_OVERRIDES
    return None


async def looked_up(context: RequestContext, query: Query, service: str, acl_lookup: AclLookup) -> Admission:
    match sas.decode(query, service):
        case None:
            return await _anonymous(context, service, acl_lookup), _NO_OVERRIDES
        case ServiceSas() as token:
            return await _by_service_sas(context, token, acl_lookup), _overrides(token)
        case _:
            raise _failed("User delegation keys are not supported by this server.")


def _by_header(context: RequestContext, query: Query) -> Grant:
    """The grant of a request with an Authorization header.

    A token in the URL is left alone. The clients send it along with the key that they prefer to it: the Python library
    says so, and the Azure CLI does it for a URL with a token beside a connection string.
    """
    authorization = shared_key.decode_authorization(context.headers["authorization"])
    if isinstance(authorization, Bearer):
        raise _failed("OAuth tokens are not supported by this server.")
    _check_date(context)
    signable = Signable(
        context.request.method, context.target, query, context.headers, context.version or "2009-09-19"
    )
    account = context.account
    if authorization.account == account.name and shared_key.verify(authorization, account.keys, signable):
        return OWNER
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
    if abs(context.environment.clock() - sent_at) > _CLOCK_SKEW:
        raise _failed(f"Request date header too old: '{text}'")


def _by_account_sas(context: RequestContext, query: Query, service: str, token: AccountSas) -> Grant:
    """An account SAS names no resource, so that its signature was right can be remembered with the query.

    What is remembered holds for this query, this account and these very keys; the terms are checked every time.
    """
    account = context.account
    remembered = query.derived.get(account.name)
    if isinstance(remembered, _Confirmed) and remembered.account is account:
        grant = remembered.grant
    else:
        _check_signature(account.keys, token.string_to_sign(account.name), token.signature)
        grant = AccountGrant(service, token.services, token.resource_types, token.permissions)
        query.derived[account.name] = _Confirmed(account, grant)
    _check_terms(context, token.terms, token.terms.starts_at, token.terms.expires_at)
    return grant if grant.service == service else replace(grant, service=service)


@dataclass(frozen=True, slots=True)
class _Confirmed:
    account: Account
    grant: AccountGrant


async def _by_service_sas(context: RequestContext, token: ServiceSas, acl_lookup: AclLookup) -> Grant:
    account, terms = context.account, token.terms
    moment = context.parameters.get("snapshot") or context.parameters.get("versionid") or ""
    text = token.string_to_sign(account.name, context.container, context.object_name, moment)
    _check_signature(account.keys, text, token.signature)
    if token.identifier is None:
        _check_terms(context, terms, terms.starts_at, terms.expires_at)
        return ServiceGrant(token.resource, token.permissions or "", token.keys)
    acl = await acl_lookup(context)
    agreement = permissions.agree(
        None if acl is None else acl.policy(token.identifier),
        permissions=token.permissions,
        starts_at=terms.starts_at,
        expires_at=terms.expires_at,
    )
    _check_terms(context, terms, agreement.starts_at, agreement.expires_at)
    return ServiceGrant(token.resource, agreement.permissions, token.keys)


def _check_signature(keys: Sequence[bytes], text: str, signature: str) -> None:
    if not sas.verify(keys, text, signature):
        raise _failed(f"Signature did not match. String to sign used was {text}")


def _check_terms(
    context: RequestContext, terms: Terms, starts_at: Instant | None, expires_at: Instant | None
) -> None:
    if expires_at is None:
        raise _failed("Signature fields not well formed.")
    permissions.check_in_force(starts_at, expires_at, context.environment.clock())
    if terms.addresses is not None:
        permissions.check_source(terms.addresses, context.request.peer)
    if terms.https_only:
        permissions.check_protocol(https_only=True, secure=context.request.secure)


async def _anonymous(context: RequestContext, service: str, acl_lookup: AclLookup) -> Grant:
    refusal = permissions.refusal_without_credentials(service, context.version)
    acl = await acl_lookup(context) if context.container else None
    return Anonymous("" if acl is None else acl.public_level, refusal)


def _overrides(token: ServiceSas) -> Mapping[str, str]:
    given = token.overrides
    if given is None:
        return _NO_OVERRIDES
    values = {
        "cache-control": given.cache_control,
        "content-disposition": given.content_disposition,
        "content-encoding": given.content_encoding,
        "content-language": given.content_language,
        "content-type": given.content_type,
    }
    return {name: value for name, value in values.items() if value is not None}


def _failed(sentence: str) -> Refused:
    return Refused(Reason.AUTHENTICATION_FAILED, AuthenticationErrorDetail=sentence)
