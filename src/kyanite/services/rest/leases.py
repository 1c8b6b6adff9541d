"""Lease requests over REST, the same for blobs, containers, shares and files: headers in, headers out."""

from typing import Final

from kyanite.model.lease import Action, LeaseRequest, Outcome
from kyanite.rules import leases
from kyanite.rules.lease_records import Lease
from kyanite.rules.leases import INFINITE
from kyanite.services.rest.context import RequestContext
from kyanite.services.rest.headers import lease_id_of, required
from kyanite.values import Instant, LeaseId
from kyanite.wire.http import Response
from kyanite.wire.malformed import bad_header, missing_header

_STATUS: Final = {Action.ACQUIRE: 201, Action.BREAK: 202}
_ACTIONS: Final = {action.value: action for action in Action}
_DURATION: Final = range(15, 61)
_PERIOD: Final = range(61)


def lease_request_of(context: RequestContext, *, infinite_only: bool = False) -> LeaseRequest:
    headers = context.headers
    text = required(headers, "x-ms-lease-action")
    action = _ACTIONS.get(text.lower())
    if action is None:
        raise bad_header("x-ms-lease-action", text)
    if action is Action.ACQUIRE:
        proposed = lease_id_of(headers, "x-ms-proposed-lease-id")
        return LeaseRequest(
            action,
            proposed_id=proposed or LeaseId(context.environment.fresh_guid()),
            seconds=_duration_of(headers, infinite_only=infinite_only),
        )
    if action is Action.BREAK:
        return LeaseRequest(action, period=_number(headers, "x-ms-lease-break-period", _PERIOD))
    request = LeaseRequest(action, lease_id=_needed(headers, "x-ms-lease-id"))
    if action is Action.CHANGE:
        return LeaseRequest(action, request.lease_id, _needed(headers, "x-ms-proposed-lease-id"))
    return request


def lease_answer(request: LeaseRequest, outcome: Outcome, version: list[tuple[str, str]]) -> Response:
    """``version`` is the ETag and Last-Modified of what is leased, which no lease action changes."""
    headers = list(version)
    if request.action is Action.BREAK:
        headers.append(("x-ms-lease-time", str(outcome.seconds_left)))
    elif request.action is not Action.RELEASE:
        headers.append(("x-ms-lease-id", outcome.lease.id or ""))
    return Response(_STATUS.get(request.action, 200), headers)


def lease_headers(lease: Lease, now: Instant) -> list[tuple[str, str]]:
    """The state of a lease among the properties of what may be leased."""
    status, state, duration = leases.properties_of(lease, now)
    headers = [("x-ms-lease-status", status), ("x-ms-lease-state", state)]
    if duration:
        headers.append(("x-ms-lease-duration", duration))
    return headers


def _duration_of(headers: dict[str, str], *, infinite_only: bool) -> int:
    text = required(headers, "x-ms-lease-duration")
    if text.strip() == str(INFINITE):
        return INFINITE
    seconds = None if infinite_only else _number(headers, "x-ms-lease-duration", _DURATION)
    if seconds is None:
        raise bad_header("x-ms-lease-duration", text)
    return seconds


def _number(headers: dict[str, str], name: str, allowed: range) -> int | None:
    text = headers.get(name)
    if not text:
        return None
    try:
        number = int(text)
    except ValueError:
        raise bad_header(name, text) from None
    if number not in allowed:
        raise bad_header(name, text)
    return number


def _needed(headers: dict[str, str], name: str) -> LeaseId:
    given = lease_id_of(headers, name)
    if given is None:
        raise missing_header(name)
    return given
