"""Cross-origin requests: which of a service's rules applies, and what it allows.

The first rule whose origin and method match decides: if it does not allow the headers, the request fails, and later
rules are not tried. Origins compare exactly, case included; ``http://*.contoso.com`` matches subdomains of any depth,
but not the domain itself. A preflight concerns the service; the resource need not exist.
"""

import re
from collections.abc import Sequence

import msgspec

from kyanite.service_properties import CorsRule

ANY = "*"
_ANY_SUBDOMAIN = "*."
_NAME = re.compile(r"(?:[A-Za-z0-9_-]+\.)+")


class Consent(msgspec.Struct, frozen=True):
    """What a rule allows, for the headers of the response."""

    allow_origin: str
    """The origin, or ``*`` when the rule allows every origin."""
    allow_credentials: bool
    exposed_headers: Sequence[str] = ()
    max_age_seconds: int = 0


def preflight(
    rules: Sequence[CorsRule], *, origin: str, method: str, headers: Sequence[str]
) -> Consent | None:
    """What the browser may do; None if it may not send the request (403 CorsPreflightFailure)."""
    rule = _first_match(rules, origin, method)
    if rule is None or not all(_allows_header(rule, header) for header in headers):
        return None
    return _consent(rule, origin)


def actual(rules: Sequence[CorsRule], *, origin: str, method: str) -> Consent | None:
    """What to add to a response, or None; the request proceeds in either case."""
    rule = _first_match(rules, origin, method)
    return None if rule is None else _consent(rule, origin)


def varies_by_origin(rules: Sequence[CorsRule], *, origin: str | None, method: str) -> bool:
    """Whether the response to a GET or HEAD depends on the origin, which caches must know.

    It does if there are rules, unless the one that applies allows every origin. To a request without an origin the
    first rule for its method applies.
    """
    if not rules:
        return False
    if origin is None:
        rule = next((rule for rule in rules if method in rule.allowed_methods), None)
    else:
        rule = _first_match(rules, origin, method)
    return rule is None or ANY not in rule.allowed_origins


def _first_match(rules: Sequence[CorsRule], origin: str, method: str) -> CorsRule | None:
    for rule in rules:
        if method in rule.allowed_methods and _allows_origin(rule, origin):
            return rule
    return None


def _allows_origin(rule: CorsRule, origin: str) -> bool:
    allowed = rule.allowed_origins
    return ANY in allowed or origin in allowed or any(_is_subdomain(origin, each) for each in allowed)


def _is_subdomain(origin: str, allowed: str) -> bool:
    before, wildcard, domain = allowed.partition(_ANY_SUBDOMAIN)
    if not (wildcard and before.endswith("://") and origin.startswith(before) and origin.endswith(domain)):
        return False
    name = origin[len(before) : -len(domain)] if domain else ""
    return name.endswith(".") and _NAME.fullmatch(name) is not None


def _allows_header(rule: CorsRule, header: str) -> bool:
    """Header names compare without case; ``x-ms-meta-abc*`` matches all names with that prefix."""
    name = header.lower()
    return any(_matches(name, allowed.lower()) for allowed in rule.allowed_headers)


def _matches(name: str, allowed: str) -> bool:
    return name.startswith(allowed[:-1]) if allowed.endswith(ANY) else name == allowed


def _consent(rule: CorsRule, origin: str) -> Consent:
    open_to_all = ANY in rule.allowed_origins
    return Consent(
        allow_origin=ANY if open_to_all else origin,
        allow_credentials=not open_to_all,
        # Earlier versions stored any text, and a response can contain none but these.
        exposed_headers=tuple(name for name in rule.exposed_headers if name.isascii() and name.isprintable()),
        max_age_seconds=rule.max_age_seconds,
    )
