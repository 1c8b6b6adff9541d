"""Shared access signatures: of the account, of one resource, or by the key of a user."""

import base64
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from kyanite.services.console import lists
from kyanite.services.console.client import BadInput, path_of
from kyanite.services.console.visit import Visit
from kyanite.services.rest.versions import NEWEST
from kyanite.values import TICKS_PER_SECOND, Instant, iso_text
from kyanite.wire import sas
from kyanite.wire.http import Response
from kyanite.wire.malformed import Malformed
from kyanite.wire.sas_encoding import SignedResource, encode

_MINUTES_MAX = 366 * 24 * 60
_DELEGATION_MINUTES_MAX = 7 * 24 * 60
_KINDS = ("account", "service", "user")


@dataclass(frozen=True, slots=True)
class Wish:
    """What the form asks for."""

    kind: str
    service: str
    container: str
    name: str
    permissions: str
    minutes: int
    services: str
    types: str
    https_only: bool
    addresses: str


def _wish(visit: Visit) -> Wish:
    kind = visit.get("kind", "account")
    if kind not in _KINDS:
        raise BadInput("There is no such kind of signature.")
    service = visit.get("service", "blob")
    if service not in ("blob", "queue", "table", "file"):
        raise BadInput("There is no such service.")
    longest = _DELEGATION_MINUTES_MAX if kind == "user" else _MINUTES_MAX
    return Wish(
        kind,
        service,
        visit.get("container").strip(),
        visit.get("name"),
        visit.get("permissions", "rl").strip(),
        max(1, visit.number("minutes", 60, longest)),
        visit.get("services", "bqtf").strip(),
        visit.get("types", "sco").strip(),
        bool(visit.get("https_only")),
        visit.get("addresses").strip(),
    )


async def show_signatures(visit: Visit) -> Response:
    _ = visit.account
    return _page(visit, _wish(visit))


def _page(visit: Visit, wish: Wish, token: str = "", url: str = "") -> Response:
    return visit.page(
        "signatures.html",
        wish=wish,
        token=token,
        url=url,
        has_tokens=visit.environment.identity is not None,
        section="sas",
    )


async def make_signature(visit: Visit) -> Response:
    wish, account = _wish(visit), visit.account
    fields = _fields(visit, wish)
    key = account.keys[0]
    if wish.kind == "user":
        key = await _delegated(visit, wish, fields)
    elif not account.settings.shared_key_access:
        raise BadInput(
            "The keys of this account open nothing, so a signature by one of them would not either."
        )
    resource = SignedResource(wish.service, account.name, wish.container, wish.name)
    try:
        token = encode(fields, resource, key)
    except Malformed:
        raise BadInput(
            "These do not make a signature: a letter or an address cannot be used, or they do not go together."
        ) from None
    base = visit.endpoints().get(wish.service, "")
    path = "" if wish.kind == "account" else path_of(*filter(None, (wish.container, wish.name)))
    return _page(visit, wish, token, f"{base}{path}?{token}")


def _fields(visit: Visit, wish: Wish) -> dict[str, str]:
    expires = Instant(visit.environment.clock() + wish.minutes * 60 * TICKS_PER_SECOND)
    fields = {"sv": NEWEST, "se": f"{iso_text(expires)[:19]}Z", "sip": wish.addresses}
    if wish.https_only:
        fields["spr"] = "https"
    if wish.kind == "account":
        fields |= {"ss": _ordered(wish.services, "bqtf"), "srt": _ordered(wish.types, "sco")}
        return fields | {"sp": _ordered(wish.permissions, sas.ACCOUNT_PERMISSIONS)}
    if not wish.container:
        raise BadInput("A signature for one resource needs the name of a container, queue, table or share.")
    if wish.service in ("blob", "file"):
        fields["sr"] = {"blob": "bc", "file": "fs"}[wish.service][0 if wish.name else 1]
    elif wish.service == "table":
        fields["tn"] = wish.container
    return fields | {
        "sp": _ordered(wish.permissions, sas.permission_order(wish.service, fields.get("sr", "")))
    }


def _ordered(letters: str, order: str) -> str:
    """In the order that the service wants."""
    for letter in letters:
        if letter not in order:
            raise BadInput(f"There is no letter {letter!r} here: there are {order}.")
    return "".join(letter for letter in order if letter in letters)


async def _delegated(visit: Visit, wish: Wish, fields: dict[str, str]) -> bytes:
    """Get a key for the user whose token was given, and state it in the fields."""
    token = visit.get("token").strip()
    if not token:
        raise BadInput("A signature by the key of a user needs a bearer token of that user.")
    starts = f"{iso_text(visit.environment.clock())[:19]}Z"
    body = f"<KeyInfo><Start>{starts}</Start><Expiry>{fields['se']}</Expiry></KeyInfo>".encode()
    query = {"restype": "service", "comp": "userdelegationkey"}
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/xml"}
    found = (await visit.public_client.call(wish.service, "POST", "/", query, headers, body)).xml
    fields |= _stated(found)
    return base64.b64decode(lists.text(found, "Value"))


def _stated(key: Element) -> dict[str, str]:
    names = {
        "skoid": "SignedOid",
        "sktid": "SignedTid",
        "skt": "SignedStart",
        "ske": "SignedExpiry",
        "sks": "SignedService",
        "skv": "SignedVersion",
    }
    return {field: lists.text(key, name) for field, name in names.items()}
