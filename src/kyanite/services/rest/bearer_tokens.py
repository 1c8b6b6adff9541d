"""Requests with a bearer token: whom the token speaks for, and which roles that caller has in the account.

The token is checked by the server's ``Identity``; roles are looked up for every request and never remembered. A token
that is not valid is refused whatever the request is for, also where anyone may read.
"""

from ipaddress import ip_address

from kyanite.rules import token_claims
from kyanite.rules.authorization import RolePrincipal, check_token_version, refused_token
from kyanite.rules.refusals import AuthenticationProblem, Reason, Refused
from kyanite.rules.roles import Caller
from kyanite.services.rest.context import RequestContext
from kyanite.wire.malformed import bad_header, missing_header

INTENT = "x-ms-file-request-intent"
DELEGATION_KEY = "Get User Delegation Key"
"""The operation on no file, for which clients state no intent."""


async def principal_of(context: RequestContext, token: str, service: str) -> RolePrincipal:
    """The caller of a request with this token and its roles in the service."""
    caller = await caller_of(context, token, service)
    if service == "file" and context.request.operation != DELEGATION_KEY:
        _check_intent(context)
    return with_roles(context, caller, service)


def with_roles(context: RequestContext, caller: Caller, service: str) -> RolePrincipal:
    """The roles that a caller has now."""
    identity, account = context.environment.identity, context.account.name
    grants = () if identity is None else identity.grants(caller, account, service)
    return RolePrincipal(caller, grants, context.container, context.version)


async def caller_of(context: RequestContext, token: str, service: str) -> Caller:
    identity = context.environment.identity
    _check_connection(context)
    check_token_version(service, context.version)
    try:
        if identity is None:
            raise token_claims.refused("This server trusts no issuer of tokens.")
        return await identity.caller(token, context.account.name, context.environment.clock())
    except Refused as refusal:
        raise refused_token(refusal, service, context.version) from None


def _check_connection(context: RequestContext) -> None:
    """A token opens the account to everyone who reads it, so it must be encrypted or stay on this machine."""
    if not context.request.secure and not _is_loopback(context.request.peer):
        raise Refused(
            Reason.AUTHENTICATION_FAILED,
            AuthenticationProblem("Authentication scheme Bearer is not allowed with HTTP."),
        )


def _check_intent(context: RequestContext) -> None:
    """A caller's token says nothing of the permissions of files: it must state that it overrides them."""
    intent = context.headers.get(INTENT)
    if intent is None:
        raise missing_header(INTENT)
    if intent.lower() != "backup":
        raise bad_header(INTENT, intent)


def _is_loopback(peer: str) -> bool:
    try:
        address = ip_address(peer)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return address.is_loopback or (mapped is not None and bool(mapped.is_loopback))
