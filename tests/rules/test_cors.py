from collections.abc import Sequence

import pytest

from kyanite.rules import cors
from kyanite.rules.cors import Consent
from kyanite.service_properties import CorsRule


def rule(
    origins: tuple[str, ...],
    methods: tuple[str, ...],
    headers: tuple[str, ...] = (),
    exposed_headers: tuple[str, ...] = (),
    max_age_seconds: int = 5,
) -> CorsRule:
    return CorsRule(origins, methods, max_age_seconds, exposed_headers, headers)


EXACT = rule(
    ("http://a.com", "http://b.com"), ("GET", "PUT"), ("x-ms-blob-type", "x-ms-meta-a*"), ("x-ms-*",)
)
ANYONE = rule(("*",), ("GET",), ("*",), ("*",), 60)
SUBDOMAINS = rule(("http://*.a.com", "https://*.b.com:8080"), ("GET",))
NO_HEADERS = rule(("http://a.com",), ("GET",))

CONSENT_A = Consent("http://a.com", True, ("x-ms-*",), 5)
CONSENT_ANY = Consent("*", False, ("*",), 60)


def named(cases: Sequence[tuple[object, ...]]) -> list[object]:
    """Cases as tests that are called by their first word."""
    return [pytest.param(*values, id=str(name)) for name, *values in cases]


PREFLIGHTS = [
    ("no rules", [], "http://a.com", "GET", [], None),
    ("origin and method fit", [EXACT], "http://a.com", "GET", [], CONSENT_A),
    ("second origin", [EXACT], "http://b.com", "PUT", [], Consent("http://b.com", True, ("x-ms-*",), 5)),
    ("other origin", [EXACT], "http://c.com", "GET", [], None),
    ("origin in another case", [EXACT], "http://A.com", "GET", [], None),
    ("origin with a slash", [EXACT], "http://a.com/", "GET", [], None),
    ("other method", [EXACT], "http://a.com", "DELETE", [], None),
    ("allowed header", [EXACT], "http://a.com", "PUT", ["x-ms-blob-type"], CONSENT_A),
    ("header in another case", [EXACT], "http://a.com", "PUT", ["X-MS-Blob-Type"], CONSENT_A),
    ("header by prefix", [EXACT], "http://a.com", "PUT", ["x-ms-meta-abc", "x-ms-meta-a"], CONSENT_A),
    ("header not allowed", [EXACT], "http://a.com", "PUT", ["x-ms-blob-type", "x-ms-date"], None),
    ("any header", [ANYONE], "http://x.com", "GET", ["anything"], CONSENT_ANY),
    ("any origin", [ANYONE], "http://x.com", "GET", [], CONSENT_ANY),
    ("no headers allowed", [NO_HEADERS], "http://a.com", "GET", ["x-ms-date"], None),
    ("no headers requested", [NO_HEADERS], "http://a.com", "GET", [], Consent("http://a.com", True, (), 5)),
    ("first match decides", [EXACT, ANYONE], "http://a.com", "GET", [], CONSENT_A),
    ("first match decides the other way", [ANYONE, EXACT], "http://a.com", "GET", [], CONSENT_ANY),
    ("later rules are not tried for headers", [NO_HEADERS, ANYONE], "http://a.com", "GET", ["x-ms-date"], None),
    ("later rules are tried for origins", [EXACT, ANYONE], "http://x.com", "GET", [], CONSENT_ANY),
    ("subdomain", [SUBDOMAINS], "http://x.a.com", "GET", [], Consent("http://x.a.com", True, (), 5)),
    ("subdomain with a port", [SUBDOMAINS], "https://x.b.com:8080", "GET", [],
     Consent("https://x.b.com:8080", True, (), 5)),
    ("deep subdomain", [SUBDOMAINS], "http://x.y-1.a.com", "GET", [], Consent("http://x.y-1.a.com", True, (), 5)),
    ("the domain is no subdomain", [SUBDOMAINS], "http://a.com", "GET", [], None),
    ("nor is an empty name", [SUBDOMAINS], "http://.a.com", "GET", [], None),
    ("nor is a longer name", [SUBDOMAINS], "http://xa.com", "GET", [], None),
    ("nor is a path", [SUBDOMAINS], "http://evil.com/x.a.com", "GET", [], None),
    ("nor is a user", [SUBDOMAINS], "http://evil.com@x.a.com", "GET", [], None),
    ("subdomain of another scheme", [SUBDOMAINS], "https://x.a.com", "GET", [], None),
    ("subdomain of another port", [SUBDOMAINS], "https://x.b.com", "GET", [], None),
    ("subdomain in another case", [SUBDOMAINS], "http://x.A.com", "GET", [], None),
    ("the wildcard itself", [rule(("*.a.com",), ("GET",))], "http://x.a.com", "GET", [], None),
    ("later rules are tried for methods", [NO_HEADERS, EXACT], "http://a.com", "PUT", [], CONSENT_A),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rules", "origin", "method", "headers", "consent"),
    named(PREFLIGHTS),
)
def test_preflights(
    rules: list[CorsRule], origin: str, method: str, headers: list[str], consent: Consent | None
) -> None:
    assert cors.preflight(rules, origin=origin, method=method, headers=headers) == consent


ACTUAL = [
    ("no rules", [], "http://a.com", "GET", None, False),
    ("exact rule fits", [EXACT], "http://a.com", "GET", CONSENT_A, True),
    ("exact rule does not fit", [EXACT], "http://c.com", "GET", None, True),
    ("method does not fit", [EXACT], "http://a.com", "DELETE", None, True),
    ("open to all", [ANYONE], "http://c.com", "GET", CONSENT_ANY, False),
    ("exact before open", [EXACT, ANYONE], "http://a.com", "GET", CONSENT_A, True),
    ("open after exact", [EXACT, ANYONE], "http://c.com", "GET", CONSENT_ANY, False),
    ("headers do not matter", [NO_HEADERS], "http://a.com", "GET", Consent("http://a.com", True, (), 5), True),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rules", "origin", "method", "consent", "varies"),
    named(ACTUAL),
)
def test_actual_requests(
    rules: list[CorsRule], origin: str, method: str, consent: Consent | None, varies: bool
) -> None:
    assert cors.actual(rules, origin=origin, method=method) == consent
    assert cors.varies_by_origin(rules, origin=origin, method=method) == varies


def test_a_stored_name_that_no_response_can_contain_is_left_out() -> None:
    stored = EXACT._replace(exposed_headers=("x-ms-*", "x-\u0131d", "x-a\nx-b"))
    consent = cors.actual([stored], origin="http://a.com", method="GET")
    assert consent is not None
    assert consent.exposed_headers == ("x-ms-*",)


@pytest.mark.parametrize(
    ("rules", "varies"),
    [([], False), ([EXACT], True), ([ANYONE], False), ([EXACT, ANYONE], True), ([ANYONE, EXACT], False)],
)
def test_requests_without_an_origin(rules: list[CorsRule], varies: bool) -> None:
    assert cors.varies_by_origin(rules, origin=None, method="GET") == varies
