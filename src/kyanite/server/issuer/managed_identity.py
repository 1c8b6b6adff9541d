"""The managed identity endpoints: tokens without a credential, for whatever runs on this machine.

Two forms: that of virtual machines (IMDS), and that of App Service. They are plain HTTP, as in Azure, on loopback only.
Browsers are kept out by headers that a page of another site cannot send, and by names that only this machine has.
"""

import hmac
import re
from collections.abc import Callable, Mapping

from kyanite.server.issuer import forms
from kyanite.server.issuer.answers import json_response
from kyanite.server.issuer.clients import Client
from kyanite.server.issuer.errors import TokenRefused
from kyanite.server.issuer.issuer import Issuer
from kyanite.wire.http import Request, Response

IMDS_PATH = "/metadata/identity/oauth2/token"
APP_SERVICE_PATH = "/msi/token"
_APP_SERVICE_VERSION = "2019-08-01"
_IMDS_VERSION = re.compile(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}")
_FIRST_IMDS_VERSION = "2018-02-01"
_LOOPBACK_HOST = re.compile(r"(localhost|127\.[0-9]+\.[0-9]+\.[0-9]+|\[::1\])(:[0-9]{1,5})?", re.IGNORECASE)


class _Refused(Exception):
    def __init__(self, status: int, error: str, description: str) -> None:
        super().__init__(description)
        self.status = status
        self.error = error
        self.description = description


class ManagedIdentity:
    """Answers on the plain port of the issuer."""

    def __init__(self, issuer: Issuer, identity_header: str) -> None:
        self._issuer = issuer
        self._identity_header = identity_header

    def __call__(self, request: Request) -> Response:
        forms_of_it: dict[str, tuple[Callable[[Request], Response], Callable[[_Refused], Response]]] = {
            IMDS_PATH: (self._imds, _imds_error),
            APP_SERVICE_PATH: (self._app_service, _app_service_error),
        }
        answer, error = forms_of_it.get(request.path.rstrip("/"), (_not_found, _imds_error))
        try:
            if _LOOPBACK_HOST.fullmatch(request.headers.get("host", "")) is None:
                raise _Refused(400, "invalid_request", "The host is no name of this machine")
            if request.method != "GET":
                raise _Refused(405, "method_not_allowed", "Only GET")
            return answer(request)
        except _Refused as refused:
            return error(refused)
        except TokenRefused as refused:
            return error(
                _Refused(400, "invalid_request", f"{refused.error.sentence} {refused.detail}".rstrip())
            )

    def _imds(self, request: Request) -> Response:
        if request.headers.get("metadata", "").strip().lower() != "true":
            raise _Refused(400, "invalid_request", "Required metadata header not specified")
        if "x-forwarded-for" in request.headers:
            raise _Refused(400, "invalid_request", "The request came through a proxy")
        query = forms.decode(request.query)
        version = query.get("api-version", "")
        if _IMDS_VERSION.fullmatch(version) is None or version < _FIRST_IMDS_VERSION:
            raise _Refused(400, "invalid_request", f"api-version has to be {_FIRST_IMDS_VERSION} or newer")
        return self._answer(query)

    def _app_service(self, request: Request) -> Response:
        given = request.headers.get("x-identity-header", "").encode()
        if not hmac.compare_digest(self._identity_header.encode(), given):
            raise _Refused(401, "unauthorized", "X-IDENTITY-HEADER is missing or wrong")
        query = forms.decode(request.query)
        if query.get("api-version") != _APP_SERVICE_VERSION:
            raise _Refused(400, "invalid_request", f"api-version has to be {_APP_SERVICE_VERSION}")
        return self._answer(query)

    def _answer(self, query: Mapping[str, str]) -> Response:
        resource = query.get("resource", "").strip()
        if not forms.is_audience(resource):
            raise _Refused(400, "invalid_resource", "resource is missing, or no URI and no application id")
        client = self._named_identity(query)
        token = self._issuer.issue(client.identity, self._issuer.tenant, resource)
        seconds = str(token.seconds)
        return json_response(
            200,
            {
                "access_token": token.text,
                "client_id": client.id,
                "expires_in": seconds,
                "expires_on": str(token.ends),
                "ext_expires_in": seconds,
                "not_before": str(token.begins),
                "resource": resource,
                "token_type": "Bearer",
            },
        )

    def _named_identity(self, query: Mapping[str, str]) -> Client:
        client_id = query.get("client_id", "")
        oid = query.get("object_id") or query.get("principal_id") or ""
        resource_id = query.get("msi_res_id") or query.get("mi_res_id") or ""
        if sum(map(bool, (client_id, oid, resource_id))) > 1:
            raise _Refused(400, "invalid_request", "The identity is named in more than one way")
        client = self._issuer.clients.managed_identity(client_id=client_id, oid=oid, resource_id=resource_id)
        if client is None:
            raise _Refused(400, "invalid_request", "Identity not found")
        return client


def _not_found(_request: Request) -> Response:
    raise _Refused(404, "not_found", f"There is {IMDS_PATH} and {APP_SERVICE_PATH}")


def _imds_error(refused: _Refused) -> Response:
    fields = {"error": refused.error, "error_description": refused.description}
    return json_response(refused.status, fields, *_allow(refused))


def _app_service_error(refused: _Refused) -> Response:
    fields = {"statusCode": refused.status, "message": refused.description}
    return json_response(refused.status, fields, *_allow(refused))


def _allow(refused: _Refused) -> list[tuple[str, str]]:
    return [("Allow", "GET")] if refused.status == 405 else []
