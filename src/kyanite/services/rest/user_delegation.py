"""Get User Delegation Key, for any service that has it.

The key is derived from what it states (``wire/user_delegation.py``), so nothing is stored but whom it was given to.
Tokens that are signed with it are checked by ``authentication.py``.
"""

from kyanite.model import delegation
from kyanite.model.delegation import Delegator
from kyanite.rules import user_delegation
from kyanite.rules.authorization import RolePrincipal
from kyanite.rules.refusals import Reason, Refused
from kyanite.rules.roles import Caller, is_guid
from kyanite.services.rest.context import RequestContext
from kyanite.services.rest.environment import Identity
from kyanite.values import Instant
from kyanite.wire import user_delegation as wire
from kyanite.wire import xml
from kyanite.wire.http import Response
from kyanite.wire.malformed import Malformed
from kyanite.wire.user_delegation import DelegationKey, KeyInfo

_MAX_BYTES = 16 * 1024


async def get_user_delegation_key(context: RequestContext, *, service: str) -> Response:
    document = await context.request.body.read_all(_MAX_BYTES)
    if document is None:
        raise Malformed("RequestBodyTooLarge", MaxLimit=str(_MAX_BYTES))
    principal, identity = context.principal, context.environment.identity
    assert isinstance(principal, RolePrincipal)
    assert identity is not None
    caller = principal.caller
    if not caller.principal:
        raise Refused(Reason.AUTHORIZATION_FAILURE)  # A token without an object id names no delegator.
    key = _key_of(context, caller, wire.decode_key_info(document), service)
    stored = await delegation.give(
        context.store.engine,
        context.account.name,
        key.tenant_id,
        key.object_id,
        _delegator(caller, identity, key.expires_at),
        identity.fresh_secret(),
    )
    secret = identity.delegation_secret(context.account.name, stored)
    body = wire.encode_key(key, key.value(secret))
    return Response(200, [("Content-Type", "application/xml")], body)


def _key_of(context: RequestContext, caller: Caller, info: KeyInfo, service: str) -> DelegationKey:
    now = context.environment.clock()
    starts_at = wire.whole_seconds(now) if info.starts_at is None else info.starts_at
    if not user_delegation.is_valid_period(starts_at, info.expires_at, now):
        raise xml.bad_node("Expiry", wire.seconds_text(info.expires_at))
    if info.user_tenant_id and not is_guid(info.user_tenant_id):
        raise xml.bad_node("DelegatedUserTid", info.user_tenant_id)
    return DelegationKey(
        caller.object_id,
        caller.tenant_id,
        starts_at,
        info.expires_at,
        wire.SERVICES[service],
        context.version,
        info.user_tenant_id,
    )


def _delegator(caller: Caller, identity: Identity, expires_at: Instant) -> Delegator:
    """What is kept of the caller: what roles are assigned by, and nothing else of its token."""
    claims = {name: caller.claims[name] for name in identity.assigned_claims if name in caller.claims}
    return Delegator(
        caller.issuer,
        caller.principal,
        caller.application_id,
        tuple(sorted(caller.groups)),
        tuple((name, tuple(sorted(values))) for name, values in sorted(claims.items())),
        expires_at,
    )
