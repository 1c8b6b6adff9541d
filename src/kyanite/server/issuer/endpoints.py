"""The endpoints of the development issuer, a row each, and the way of a request to one of them."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from kyanite.server.issuer import discovery, forms, token_endpoint
from kyanite.server.issuer.answers import error_response, json_response
from kyanite.server.issuer.errors import (
    MALFORMED,
    NO_LOG_IN,
    NOT_FOUND,
    TOO_LONG,
    UNKNOWN_TENANT,
    WRONG_METHOD,
    TokenRefused,
)
from kyanite.server.issuer.issuer import Issuer
from kyanite.server.issuer.token_endpoint import TokenRequest
from kyanite.wire.http import Request, Response

FORM_BYTES_MAX = 64 * 1024
_HOST = re.compile(r"([A-Za-z0-9._-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?")
_GUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_FORM_TYPE = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class _EndpointCall:
    """A request, and what its address says."""

    request: Request
    tenant: str
    """Empty at the endpoints of no tenant."""
    base: str
    """The issuer's address as the client knows it."""


_Answer = Callable[[Issuer, _EndpointCall], Awaitable[Response]]


async def _openid_configuration(issuer: Issuer, call: _EndpointCall) -> Response:
    return json_response(200, discovery.openid_configuration(issuer, call.tenant, call.base))


async def _keys(issuer: Issuer, _call: _EndpointCall) -> Response:
    return json_response(200, discovery.keys(issuer))


async def _instance(issuer: Issuer, call: _EndpointCall) -> Response:
    return json_response(200, discovery.instance(issuer, call.base))


async def _token(issuer: Issuer, call: _EndpointCall) -> Response:
    return await _answer_form(issuer, call, is_v1=False)


async def _token_v1(issuer: Issuer, call: _EndpointCall) -> Response:
    return await _answer_form(issuer, call, is_v1=True)


async def _authorize(_issuer: Issuer, _call: _EndpointCall) -> Response:
    raise TokenRefused(NO_LOG_IN)


async def _answer_form(issuer: Issuer, call: _EndpointCall, *, is_v1: bool) -> Response:
    request = call.request
    body = await request.body.read_all(FORM_BYTES_MAX)
    if body is None:
        raise TokenRefused(TOO_LONG)
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM_TYPE:
        raise TokenRefused(MALFORMED, f"Its body is to be {_FORM_TYPE}.")
    form = forms.decode(body.decode("utf-8", "replace"))
    authorization = request.headers.get("authorization", "")
    fields = token_endpoint.answer(issuer, TokenRequest(call.tenant, form, authorization, call.base, is_v1))
    return json_response(200, fields)


@dataclass(frozen=True, slots=True)
class _Endpoint:
    path: str
    """Without the tenant, and with a leading ``/`` where there is none."""
    methods: tuple[str, ...]
    answer: _Answer


_READ, _SENT = ("GET", "HEAD"), ("POST",)
_ENDPOINTS = {
    row.path: row
    for row in (
        _Endpoint("v2.0/.well-known/openid-configuration", _READ, _openid_configuration),
        _Endpoint(".well-known/openid-configuration", _READ, _openid_configuration),
        _Endpoint("discovery/v2.0/keys", _READ, _keys),
        _Endpoint("discovery/keys", _READ, _keys),
        _Endpoint("/common/discovery/instance", _READ, _instance),
        _Endpoint("oauth2/v2.0/token", _SENT, _token),
        _Endpoint("oauth2/token", _SENT, _token_v1),
        _Endpoint("oauth2/v2.0/authorize", _READ, _authorize),
        _Endpoint("oauth2/authorize", _READ, _authorize),
    )
}


class Endpoints:
    """Answers on the TLS port of the issuer."""

    def __init__(self, issuer: Issuer, fresh_guid: Callable[[], str]) -> None:
        self._issuer = issuer
        self._fresh_guid = fresh_guid

    async def __call__(self, request: Request) -> Response:
        endpoint: _Endpoint | None = None
        try:
            endpoint, tenant = _find(request.path)
            if request.method not in endpoint.methods:
                raise TokenRefused(WRONG_METHOD)
            if tenant and tenant not in self._issuer.tenants:
                raise TokenRefused(UNKNOWN_TENANT)
            return await endpoint.answer(self._issuer, _EndpointCall(request, tenant, _base(request)))
        except TokenRefused as refused:
            is_wrong_method = endpoint is not None and refused.error is WRONG_METHOD
            return error_response(
                refused.error,
                refused.detail,
                trace_id=self._fresh_guid(),
                correlation_id=self._correlation_id(request),
                now=self._issuer.now,
                allow=", ".join(endpoint.methods) if endpoint is not None and is_wrong_method else "",
            )

    def _correlation_id(self, request: Request) -> str:
        """The client's own, if it has sent one that is safe to repeat."""
        given = request.headers.get("client-request-id", "")
        return given if _GUID.fullmatch(given) else self._fresh_guid()


def _find(path: str) -> tuple[_Endpoint, str]:
    """The endpoint of a path, and the tenant that it names."""
    endpoint = _ENDPOINTS.get(path.rstrip("/"))
    if endpoint is not None:
        return endpoint, ""
    tenant, _, rest = path.strip("/").partition("/")
    endpoint = _ENDPOINTS.get(rest)
    if endpoint is None or not tenant or rest.startswith("/"):
        raise TokenRefused(NOT_FOUND)
    return endpoint, tenant.lower()


def _base(request: Request) -> str:
    host = request.headers.get("host", "")
    if _HOST.fullmatch(host) is None:
        raise TokenRefused(MALFORMED, "Its Host header is no host.")
    return f"https://{host}"
