"""Responses of the development issuer: JSON that nobody may keep, and errors as Entra words their fields."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime

from kyanite.server.issuer.errors import OAuthError
from kyanite.wire.http import Response


def json_response(status: int, fields: Mapping[str, object], *headers: tuple[str, str]) -> Response:
    body = json.dumps(fields).encode()
    return Response(
        status,
        [
            ("Content-Type", "application/json; charset=utf-8"),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
            *headers,
        ],
        body,
    )


def error_response(
    error: OAuthError, detail: str, *, trace_id: str, correlation_id: str, now: int, allow: str = ""
) -> Response:
    timestamp = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    sentence = f"{error.sentence} {detail}".rstrip()
    fields = {
        "error": error.error,
        "error_description": f"AADSTS{error.number}: {sentence} Trace ID: {trace_id} "
        f"Correlation ID: {correlation_id} Timestamp: {timestamp}",
        "error_codes": [error.number],
        "timestamp": timestamp,
        "trace_id": trace_id,
        "correlation_id": correlation_id,
    }
    headers = [("x-ms-request-id", trace_id)]
    if error.status == 401:
        headers.append(("WWW-Authenticate", "Basic"))
    if allow:
        headers.append(("Allow", allow))
    return json_response(error.status, fields, *headers)
