"""What is kept of a request that was refused, for those who ask why (``model/requests``)."""

from collections.abc import Mapping

from kyanite.model.requests.refusals import Refusal
from kyanite.rules.refusals import Because, Detail, Reason, Refused
from kyanite.services.rest.sources import CannotVerifySource
from kyanite.values import Instant
from kyanite.wire.http import Request
from kyanite.wire.malformed import Malformed


def refusal_of(service: str, request: Request, error: Exception, status: int, at: Instant) -> Refusal:
    """Values only: an exception would keep the frames alive that it has passed."""
    is_of_source = False
    if isinstance(error, CannotVerifySource):
        is_of_source, error = True, error.cause
    headers = request.headers
    # What a refusal quotes, such as a string to sign, comes from the head or the XML of the request.
    length = len(request.path) + len(request.query) + sum(map(len, headers.values()))
    reason: Reason | None = None
    detail: Detail | Mapping[str, str] | None = None
    facts: object = None
    if isinstance(error, Refused):
        reason, detail, facts = error.reason, error.detail, error.facts
    elif isinstance(error, Malformed):
        detail = error.detail
        facts = Because(error.why) if error.why else None
        length += sum(map(len, error.detail.values()))
    return Refusal(
        request.request_id,
        at,
        service,
        request.account,
        request.operation,
        request.method,
        request.path,
        request.query,
        request.peer,
        headers.get("user-agent", ""),
        headers.get("x-ms-client-request-id", ""),
        status,
        request.error_code,
        reason,
        detail,
        facts,
        is_of_source,
        3 * length,
    )
