"""From an error to its response: which one is in the tables of the service; how it is formatted is here."""

import logging
from collections.abc import Mapping
from typing import NamedTuple, assert_never

from kyanite.engine.api import Damaged, EngineBusy, EngineError, EngineFull
from kyanite.rules.refusals import (
    AuthenticationProblem,
    CallerAddress,
    CurrentETag,
    Explained,
    HiddenTooLong,
    HiddenUntilExpiry,
    Reason,
    Refused,
    TotalLength,
)
from kyanite.services.rest import damage
from kyanite.services.rest.context import Resource
from kyanite.services.rest.definition import ServiceDefinition
from kyanite.services.rest.errors import WireError
from kyanite.services.rest.sources import CannotVerifySource
from kyanite.values import Instant
from kyanite.wire.http import BodyError, NoPieces, Request, Response
from kyanite.wire.iso_time import encode as encode_time
from kyanite.wire.malformed import Malformed

CHALLENGE = (
    "Bearer authorization_uri=https://login.microsoftonline.com/common/oauth2/authorize "
    "resource_id=https://storage.azure.com"
)
"""The challenge of a server without issuers."""
_DAMAGED = WireError(
    500,
    "InternalError",
    "The server cannot return this data because it is damaged on the server's disk.",
)
_NONE: Mapping[str, str] = {}
_RETRY_SOON: Mapping[str, str] = {"Retry-After": "1"}
"""Clients that wait longer after each attempt wait no longer than this for a store that is back."""
_log = logging.getLogger(__name__)


class Formatted(NamedTuple):
    """An error with its details: some are headers, the rest are elements of the body, in order."""

    error: WireError
    headers: Mapping[str, str] = _NONE
    elements: Mapping[str, str] = _NONE


def error_response(
    definition: ServiceDefinition,
    request: Request,
    error: Exception,
    resource: Resource,
    now: Instant,
    challenge: str = CHALLENGE,
) -> Response:
    return format_error(definition, request, _formatted(definition, request, error, resource), now, challenge)


def format_error(
    definition: ServiceDefinition,
    request: Request,
    formatted: Formatted,
    now: Instant,
    challenge: str = CHALLENGE,
) -> Response:
    status, code, message = formatted.error.status, formatted.error.code, formatted.error.message
    request.error_code = code
    headers = [("x-ms-error-code", code), *formatted.headers.items()]
    if status == 401:
        headers.append(("WWW-Authenticate", challenge))
    reason = message if definition.message_as_reason else None
    if status == 304:
        return Response(304, headers, reason=reason)
    if request.method == "HEAD":
        return Response(status, headers, NoPieces(), reason=reason)
    message = f"{message}\nRequestId:{request.request_id}\nTime:{encode_time(now)}"
    content_type, body = definition.error_body(request, code, message, formatted.elements)
    headers.append(("Content-Type", content_type))
    return Response(status, headers, body, reason=reason)


def _formatted(
    definition: ServiceDefinition, request: Request, error: Exception, resource: Resource
) -> Formatted:
    """Unexpected errors are logged."""
    codes = definition.codes
    match error:
        case Refused() | Malformed():
            return formatted(error, definition.reasons[resource], codes)
        case CannotVerifySource():
            of_source = formatted(error.cause, definition.reasons[Resource.OBJECT], codes)
            return _source_formatted(of_source.error)
        case EngineFull():
            return Formatted(codes["InsufficientStorage"])
        case EngineBusy():
            return Formatted(codes["ServerBusy"], _RETRY_SOON)
        case BodyError() if error.status == 503:
            return Formatted(codes["ServerBusy"], _RETRY_SOON)
        case BodyError():
            return Formatted(codes["RequestTimeout"])
        case Damaged():
            damage.report(request, error)
            return Formatted(_DAMAGED)
        case EngineError():
            _log.exception("the engine failed; request %s", request.request_id)
        case _:
            _log.exception("a request failed; request %s", request.request_id)
    return Formatted(codes["InternalError"])


def formatted(
    cause: Refused | Malformed, reasons: Mapping[Reason, WireError], codes: Mapping[str, WireError]
) -> Formatted:
    if isinstance(cause, Malformed):
        return Formatted(codes[cause.code], _NONE, cause.detail)
    error, detail = reasons[cause.reason], cause.detail
    match detail:
        case TotalLength():
            return Formatted(error, {"Content-Range": f"bytes */{detail.bytes}"})
        case CurrentETag():
            return Formatted(error, {"ETag": f'"{detail.etag}"'})
    return Formatted(error, _NONE, _NONE if detail is None else _elements_of(detail))


def _elements_of(
    detail: AuthenticationProblem | CallerAddress | Explained | HiddenUntilExpiry | HiddenTooLong,
) -> Mapping[str, str]:
    match detail:
        case AuthenticationProblem():
            return {"AuthenticationErrorDetail": detail.text}
        case CallerAddress():
            return {"SourceIP": detail.address}
        case Explained():
            return {"Reason": detail.text}
        case HiddenUntilExpiry():
            return {
                "QueryParameterName": "visibilitytimeout",
                "QueryParameterValue": str(detail.seconds),
                "Reason": "messagettl must be greater than visibilitytimeout.",
            }
        case HiddenTooLong():
            return {
                "QueryParameterName": "visibilitytimeout",
                "QueryParameterValue": str(detail.seconds),
                "MinimumAllowed": "0",
                "MaximumAllowed": str(detail.maximum),
            }
        case _:
            assert_never(detail)


def _source_formatted(error: WireError) -> Formatted:
    """The status of the source becomes that of the request."""
    status = str(error.status)
    return Formatted(
        WireError(error.status, "CannotVerifyCopySource", error.message),
        {"x-ms-copy-source-status-code": status, "x-ms-copy-source-error-code": error.code},
        {
            "CopySourceStatusCode": status,
            "CopySourceErrorCode": error.code,
            "CopySourceErrorMessage": error.message,
        },
    )
