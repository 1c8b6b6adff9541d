"""``Cors``: the cross-origin rules of a service, as an element of its properties.

All five elements of a rule are required, though the lists of headers may be empty. Lists are separated by commas.
"""

import re

from kyanite.service_properties import CorsRule
from kyanite.wire import xml

MAX_RULES = 5
MAX_CHARACTERS = 2048
"""Of all rules together, without the tags."""
MAX_ORIGINS = 64
MAX_LITERAL_HEADERS = 64
MAX_PREFIXED_HEADERS = 2
MAX_ITEM_CHARACTERS = 256
MAX_AGE_SECONDS = 2**31 - 1

_VISIBLE = re.compile(r"[!-~]+")
"""What names of headers are made of: responses contain those that a rule exposes."""

METHODS = frozenset(("DELETE", "GET", "HEAD", "MERGE", "PATCH", "POST", "OPTIONS", "PUT"))


def decode(element: xml.Element) -> tuple[CorsRule, ...]:
    """The rules in order. Raises Malformed."""
    if len(element.children) > MAX_RULES or any(child.name != "CorsRule" for child in element):
        raise xml.invalid_document()
    if sum(len(child.text) for rule in element for child in rule) > MAX_CHARACTERS:
        raise xml.invalid_document()
    return tuple(_rule(child) for child in element)


def encode(rules: tuple[CorsRule, ...]) -> str:
    """The content of the ``Cors`` element."""
    return "".join(f"<CorsRule>{_rule_text(rule)}</CorsRule>" for rule in rules)


def _rule(element: xml.Element) -> CorsRule:
    return CorsRule(
        allowed_origins=_origins(element),
        allowed_methods=_methods(element),
        max_age_seconds=element.number("MaxAgeInSeconds", minimum=0, maximum=MAX_AGE_SECONDS),
        exposed_headers=_headers(element, "ExposedHeaders"),
        allowed_headers=_headers(element, "AllowedHeaders"),
    )


def _origins(element: xml.Element) -> tuple[str, ...]:
    origins = _list(element, "AllowedOrigins")
    if not 1 <= len(origins) <= MAX_ORIGINS:
        raise xml.bad_node("AllowedOrigins", ",".join(origins))
    return origins


def _methods(element: xml.Element) -> tuple[str, ...]:
    methods = _list(element, "AllowedMethods")
    if not methods or not METHODS.issuperset(methods):
        raise xml.bad_node("AllowedMethods", ",".join(methods))
    return methods


def _headers(element: xml.Element, name: str) -> tuple[str, ...]:
    headers = _list(element, name)
    if not all(_VISIBLE.fullmatch(header) for header in headers):
        raise xml.bad_node(name, ",".join(headers))
    prefixed = sum(header.endswith("*") and header != "*" for header in headers)
    if prefixed > MAX_PREFIXED_HEADERS or len(headers) - prefixed > MAX_LITERAL_HEADERS:
        raise xml.bad_node(name, ",".join(headers))
    return headers


def _list(element: xml.Element, name: str) -> tuple[str, ...]:
    text = element.required_child(name).text
    items = tuple(item.strip() for item in text.split(",") if item.strip())
    if any(len(item) > MAX_ITEM_CHARACTERS for item in items):
        raise xml.bad_node(name, text)
    return items


def _rule_text(rule: CorsRule) -> str:
    return (
        xml.element("AllowedMethods", ",".join(rule.allowed_methods))
        + xml.element("AllowedOrigins", ",".join(rule.allowed_origins))
        + xml.element("AllowedHeaders", ",".join(rule.allowed_headers))
        + xml.element("ExposedHeaders", ",".join(rule.exposed_headers))
        + f"<MaxAgeInSeconds>{rule.max_age_seconds}</MaxAgeInSeconds>"
    )
