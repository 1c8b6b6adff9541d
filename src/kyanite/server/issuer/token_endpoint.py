"""The token endpoint: a client proves who it is and gets a token (RFC 6749, section 4.4), in both versions of Entra."""

from collections.abc import Mapping
from dataclasses import dataclass

from kyanite.server.issuer import assertions, forms
from kyanite.server.issuer.clients import Client
from kyanite.server.issuer.discovery import token_endpoint
from kyanite.server.issuer.errors import (
    BAD_RESOURCE,
    BAD_SCOPE,
    MALFORMED,
    MISSING_PARAMETER,
    NO_CREDENTIAL,
    UNKNOWN_CLIENT,
    UNSUPPORTED_GRANT,
    WRONG_SECRET,
    TokenRefused,
)
from kyanite.server.issuer.issuer import Issuer
from kyanite.server.issuer.tokens import BY_ASSERTION, BY_SECRET

_DEFAULT_SCOPE = "/.default"
_REFRESHED_AFTER_SECONDS = 7200
"""Of a token that is good for longer, clients are told to ask for another halfway."""


@dataclass(frozen=True, slots=True)
class TokenRequest:
    tenant: str
    form: Mapping[str, str]
    authorization: str
    base: str
    """The issuer's address as the client knows it."""
    is_v1: bool


def answer(issuer: Issuer, request: TokenRequest) -> dict[str, object]:
    """The fields of a response with a token. Refuses otherwise."""
    grant_type = _required(request.form, "grant_type")
    if grant_type != "client_credentials":
        raise TokenRefused(UNSUPPORTED_GRANT)
    client, proof = _authenticate(issuer, request)
    audience = _v1_audience(request.form) if request.is_v1 else _v2_audience(request.form)
    token = issuer.issue(client.identity, request.tenant, audience, proof)
    seconds = token.seconds
    if request.is_v1:
        return {
            "token_type": "Bearer",
            "expires_in": str(seconds),
            "ext_expires_in": str(seconds),
            "expires_on": str(token.ends),
            "not_before": str(token.begins),
            "resource": audience,
            "access_token": token.text,
        }
    refresh = {"refresh_in": seconds // 2} if seconds > _REFRESHED_AFTER_SECONDS else {}
    return {
        "token_type": "Bearer",
        "expires_in": seconds,
        "ext_expires_in": seconds,
        **refresh,
        "access_token": token.text,
    }


def _authenticate(issuer: Issuer, request: TokenRequest) -> tuple[Client, str]:
    """The client, and how it has proved that it is."""
    form = request.form
    client_id, secret, assertion = (
        form.get("client_id"),
        form.get("client_secret"),
        form.get("client_assertion"),
    )
    if request.authorization:
        if secret is not None or assertion is not None:
            raise TokenRefused(MALFORMED, "It has credentials twice.")
        basic_id, secret = forms.basic_credentials(request.authorization)
        if client_id not in (None, basic_id):
            raise TokenRefused(MALFORMED, "It names two clients.")
        client_id = basic_id
    client = issuer.clients.find(client_id or _required(form, "client_id"))
    if client is None:
        raise TokenRefused(UNKNOWN_CLIENT)
    if assertion is not None:
        if secret is not None or form.get("client_assertion_type") != assertions.TYPE:
            raise TokenRefused(MALFORMED, f"An assertion needs client_assertion_type={assertions.TYPE}.")
        endpoints = {token_endpoint(base, request.tenant) for base in (request.base, issuer.base)}
        sources = issuer.assertion_sources(client, tuple(endpoints))
        assertions.check_assertion(assertion, sources, now=issuer.now, real_now=issuer.real_now)
        return client, BY_ASSERTION
    if not secret:
        raise TokenRefused(NO_CREDENTIAL)
    if not client.has_secret(secret):
        raise TokenRefused(WRONG_SECRET)
    return client, BY_SECRET


def _v2_audience(form: Mapping[str, str]) -> str:
    scope = _required(form, "scope").strip()
    audience = scope.removesuffix(_DEFAULT_SCOPE)
    if audience == scope or not forms.is_audience(audience):
        raise TokenRefused(BAD_SCOPE)
    return audience


def _v1_audience(form: Mapping[str, str]) -> str:
    audience = _required(form, "resource").strip()
    if not forms.is_audience(audience):
        raise TokenRefused(BAD_RESOURCE)
    return audience


def _required(form: Mapping[str, str], name: str) -> str:
    value = form.get(name)
    if not value:
        raise TokenRefused(MISSING_PARAMETER, f"It is {name}.")
    return value
