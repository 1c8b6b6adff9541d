"""Cross-origin requests: the preflight, and the headers that browsers expect on every response.

Rules belong to a service of an account and are read for each request that names an origin. Whether responses to reads
get ``Vary: Origin`` is cached for a second, because it concerns every read and decides nothing about access.
"""

from collections.abc import Callable
from typing import Final

from kyanite.model import settings
from kyanite.model.accounts import Account
from kyanite.rules import cors
from kyanite.service_properties import CorsRule
from kyanite.services.rest.context import RequestContext
from kyanite.values import TICKS_PER_SECOND, Instant
from kyanite.wire.http import Request, Response
from kyanite.wire.malformed import Malformed

Clock = Callable[[], Instant]
_READS: Final = frozenset(("GET", "HEAD"))
_UNKNOWN: Final = (Instant(0), False)


async def preflight(context: RequestContext, service: str) -> Response:
    """OPTIONS. Not authenticated, and judged against the service: the resource need not exist."""
    headers = context.headers
    origin = _required(headers, "Origin")
    method = _required(headers, "Access-Control-Request-Method")
    wanted = headers.get("access-control-request-headers", "")
    names = [name.strip() for name in wanted.split(",") if name.strip()]
    rules = await _rules(context.account, service)
    consent = cors.preflight(rules, origin=origin, method=method, headers=names)
    if consent is None:
        raise Malformed("CorsPreflightFailure")
    answer = [
        ("Access-Control-Allow-Origin", consent.allow_origin),
        ("Access-Control-Allow-Methods", method),
        ("Access-Control-Max-Age", str(consent.max_age_seconds)),
    ]
    if wanted:
        answer.append(("Access-Control-Allow-Headers", wanted))
    if consent.allow_credentials:
        answer.append(("Access-Control-Allow-Credentials", "true"))
    return Response(200, answer)


def _required(headers: dict[str, str], name: str) -> str:
    value = headers.get(name.lower())
    if not value:
        raise Malformed(
            "InvalidHeaderValue", HeaderName=name, Reason="A required CORS header is not present."
        )
    return value


class Decorator:
    """Adds the CORS headers to the responses of one service, errors included."""

    def __init__(self, service: str, clock: Clock) -> None:
        self._service = service
        self._clock = clock
        self._varies: dict[str, tuple[Instant, bool]] = {}

    def is_needed(self, request: Request, account: Account, now: Instant) -> bool:
        """Whether there may be headers to add. The common case, no origin and no rules, reads nothing. ``now`` is 0
        where the time was not read yet."""
        if "origin" in request.headers:
            return True
        if request.method not in _READS:
            return False
        until, varies = self._varies.get(account.name, _UNKNOWN)
        return varies or (now or self._clock()) >= until

    async def __call__(self, request: Request, account: Account, response: Response) -> None:
        origin, method = request.headers.get("origin"), request.method
        if origin is None:
            if await self._varies_without_origin(account):
                response.headers.append(("Vary", "Origin"))
            return
        rules = await _rules(account, self._service)
        if not rules:
            return
        consent = cors.actual(rules, origin=origin, method=method)
        if consent is not None:
            response.headers.append(("Access-Control-Allow-Origin", consent.allow_origin))
            if consent.exposed_headers:
                exposed = ",".join(consent.exposed_headers)
                response.headers.append(("Access-Control-Expose-Headers", exposed))
            if consent.allow_credentials:
                response.headers.append(("Access-Control-Allow-Credentials", "true"))
        if method in _READS and cors.varies_by_origin(rules, origin=origin, method=method):
            response.headers.append(("Vary", "Origin"))

    async def _varies_without_origin(self, account: Account) -> bool:
        now = self._clock()
        until, varies = self._varies.get(account.name, _UNKNOWN)
        if now >= until:
            rules = await _rules(account, self._service)
            varies = cors.varies_by_origin(rules, origin=None, method="GET")
            self._varies[account.name] = (Instant(now + TICKS_PER_SECOND), varies)
        return varies


async def _rules(account: Account, service: str) -> tuple[CorsRule, ...]:
    return (await settings.get(account.store.engine, account.name, service)).cors or ()
