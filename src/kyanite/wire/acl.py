"""``SignedIdentifiers``: the stored access policies of a container, queue, table or share, as XML.

Every field of a policy may be left out; then the token that names the policy must have it. An empty policy is written
as its id alone, as in Azure. Times are read in any ISO 8601 form and written with seven decimals.
"""

from collections.abc import Iterable

import msgspec

from kyanite.values import Instant
from kyanite.wire import iso_time, xml
from kyanite.wire.malformed import Malformed

MAX_POLICIES = 5
MAX_ID_CHARACTERS = 64

EVERY_LETTER = "racwdxyltfmeopiu"
"""All permissions of all services."""


class SignedIdentifier(msgspec.Struct, frozen=True):
    id: str
    starts_at: Instant | None = None
    expires_at: Instant | None = None
    permissions: str | None = None


def decode(document: bytes, letters: str = EVERY_LETTER) -> list[SignedIdentifier]:
    """The policies in order, with these permissions only. An empty document means no policies."""
    if not document.strip():
        return []
    root = xml.decode(document, "SignedIdentifiers")
    policies = [_policy(element, letters) for element in root]
    ids = {policy.id for policy in policies}
    if len(policies) > MAX_POLICIES or len(ids) < len(policies):
        raise Malformed("InvalidXmlDocument")
    return policies


def encode(policies: Iterable[SignedIdentifier]) -> bytes:
    items = "".join(_text(policy) for policy in policies)
    return xml.document(xml.wrapped("SignedIdentifiers", items))


def _policy(element: xml.Element, letters: str) -> SignedIdentifier:
    if element.name != "SignedIdentifier":
        raise xml.unsupported_node(element.name)
    identifier = element.required_child("Id")
    if not 1 <= len(identifier.text) <= MAX_ID_CHARACTERS:
        raise xml.bad_node("Id", identifier.text)
    policy = element.child("AccessPolicy") or xml.Element("AccessPolicy")
    return SignedIdentifier(
        identifier.text,
        starts_at=_time(policy, "Start"),
        expires_at=_time(policy, "Expiry"),
        permissions=_permissions(policy, letters),
    )


def _time(policy: xml.Element, name: str) -> Instant | None:
    text = policy.optional_text(name)
    if text is None:
        return None
    instant = iso_time.decode(text)
    if instant is None:
        raise xml.bad_node(name, text)
    return instant


def _permissions(policy: xml.Element, letters: str) -> str | None:
    given = policy.optional_text("Permission")
    if given is None:
        return None
    if not set(given).issubset(letters) or len(set(given)) < len(given):
        raise xml.bad_node("Permission", given)
    return given


def _text(policy: SignedIdentifier) -> str:
    start = "" if policy.starts_at is None else f"<Start>{iso_time.encode(policy.starts_at)}</Start>"
    expiry = "" if policy.expires_at is None else f"<Expiry>{iso_time.encode(policy.expires_at)}</Expiry>"
    permission = "" if policy.permissions is None else f"<Permission>{policy.permissions}</Permission>"
    inside = start + expiry + permission
    access = f"<AccessPolicy>{inside}</AccessPolicy>" if inside else ""
    return f"<SignedIdentifier><Id>{xml.escape(policy.id)}</Id>{access}</SignedIdentifier>"
