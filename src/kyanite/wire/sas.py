"""Shared access signatures: decoding the token in a query, and the text that its signature covers.

There are three kinds. An *account SAS* (``ss``, ``srt``) is for services and resource types. A *service SAS* is for one
blob, container, queue, table, file or share, and may leave times and permissions to a stored access policy (``si``). A
*user delegation SAS* (``skoid``) is signed with a key that an OAuth user has requested. ``rules/authorization.py``
decides what a token allows; here it is only decoded. A token that breaks the grammar is refused as in Azure, with
``AuthenticationFailed`` and a sentence about the error.

Which fields are signed depends on the service and on the token's version, ``sv``: see ``sas_layouts.py``.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from kyanite.edm import SasKeyRange
from kyanite.values import Instant
from kyanite.wire import iso_time, shared_key
from kyanite.wire.malformed import Malformed
from kyanite.wire.sas_layouts import (
    OVERRIDES,
    SIGNED_FIELDS,
    DelegatedLines,
    delegated_lines,
    signs_overrides,
    string_to_sign_parts,
)
from kyanite.wire.uri import CACHED_QUERY_LENGTH, Query
from kyanite.wire.user_delegation import DelegationKey

_MOMENTARY: Final = frozenset(("bs", "bv"))
_OBJECTS: Final = frozenset(("b", "bs", "bv", "f"))

_ACCOUNT_FIRST_VERSION: Final = "2015-04-05"
_ACCOUNT_SCOPE_SINCE: Final = "2020-12-06"
_SERVICE_WORD_SINCE: Final = "2015-02-21"

_DELEGATION_MARK: Final = "skoid"
_FIELDS: Final = SIGNED_FIELDS | {"sig", "ss", "srt", "tn", "sdd"}
_PERMISSION_ORDERS: Final[Mapping[str, str]] = {
    "blob": "racwdxyltfmeopi",
    "dfs": "racwdxyltfmeopi",
    "queue": "raup",
    "table": "raud",
    "file": "rcwdl",
}
ACCOUNT_PERMISSIONS: Final = "rwdylacuptfix"
# The resources of the Blob service that a token can be for, and since which version.
_RESOURCES: Final[Mapping[str, str]] = {
    "b": "",
    "c": "",
    "bs": "2018-11-09",
    "bv": "2018-11-09",
    "d": "2020-02-10",
}
_VERSION: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_ADDRESS: Final = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Terms:
    """When, from where and how a token can be used: the same for every kind of token."""

    starts_at: Instant | None
    expires_at: Instant | None
    addresses: tuple[int, int] | None
    """First and last IPv4 address, as numbers, inclusive."""
    https_only: bool


@dataclass(frozen=True, slots=True)
class ResponseOverrides:
    """Headers of the response to a GET that the token replaces."""

    cache_control: str | None
    content_disposition: str | None
    content_encoding: str | None
    content_language: str | None
    content_type: str | None


@dataclass(frozen=True, slots=True)
class AccountSas:
    version: str
    signature: str
    terms: Terms
    services: str
    """Letters of ``bqtf``."""
    resource_types: str
    """Letters of ``sco``."""
    permissions: str
    signed: str
    """The string-to-sign without the account."""

    def string_to_sign(self, account: str) -> str:
        return f"{account}\n{self.signed}\n"


@dataclass(frozen=True, slots=True)
class ServiceSas:
    version: str
    signature: str
    terms: Terms
    service: str
    resource: str
    """``b``, ``bs``, ``bv``, ``c``, ``d``, ``f`` or ``s``; empty for queues and tables."""
    permissions: str | None
    """None when the stored access policy has them."""
    identifier: str | None
    overrides: ResponseOverrides | None
    """None also when the signature does not cover them: anyone could have added them to the URL."""
    table: str | None
    keys: SasKeyRange | None
    directory_depth: int | None
    signed: tuple[str, ...]
    """The string-to-sign, cut where the request fills in the resource and, since 2018-11-09, the moment. Empty in a
    user delegation SAS, which has lines of its own."""

    def string_to_sign(self, account: str, container: str, name: str = "", moment: str = "") -> str:
        """The text for the resource of a request. ``moment`` is its snapshot or version, if any."""
        resource = self.canonicalized_resource(account, container, name)
        if len(self.signed) == 2:
            return resource.join(self.signed)
        before, between, after = self.signed
        return f"{before}{resource}{between}{moment if self.resource in _MOMENTARY else ''}{after}"

    def canonicalized_resource(self, account: str, container: str, name: str) -> str:
        inside = f"/{name}" if name and self.resource in _OBJECTS else ""
        if self.resource == "d":
            inside = _ancestor(name, self.directory_depth or 0)
        if self.service == "table":
            container = container.lower()
        word = "blob" if self.service == "dfs" else self.service
        return f"{'/' + word if self.version >= _SERVICE_WORD_SINCE else ''}/{account}/{container}{inside}"


@dataclass(frozen=True, slots=True)
class UserDelegationSas:
    """A token that is signed with a key which an OAuth user, the delegator, has requested."""

    sas: ServiceSas
    """What it allows, for what and when, as in any service SAS."""
    key: DelegationKey
    """The key that it says it is signed with."""
    authorized_agent: str
    unauthorized_agent: str
    user_id: str
    """The object id of the only user that may use it; empty for everyone who has it."""
    encryption_scope: str
    header_names: tuple[str, ...]
    parameter_names: tuple[str, ...]
    """The headers and parameters that a request must have with the values that were signed."""
    lines: DelegatedLines

    def string_to_sign(
        self,
        account: str,
        container: str,
        name: str,
        moment: str,
        headers: dict[str, str],
        parameters: dict[str, str],
    ) -> str:
        """The text for a request with these headers and parameters, both by lower-case name."""
        return self.lines.text(
            self.sas.canonicalized_resource(account, container, name),
            moment if self.sas.resource in _MOMENTARY else "",
            "".join(f"{each}:{_given(headers, each)}\n" for each in self.header_names),
            "".join(f"\n{each}:{_given(parameters, each)}" for each in self.parameter_names),
        )


def _given(values: Mapping[str, str], name: str) -> str:
    """A value that was signed; without it, or with a line break in it, no signature fits."""
    value = values.get(name.lower())
    if value is None or "\n" in value:
        raise _not_well_formed(
            f"The signature covers the header or parameter {name}, which the request lacks."
        )
    return value


Sas = AccountSas | ServiceSas | UserDelegationSas
_TOKENS: Final = (AccountSas, ServiceSas, UserDelegationSas)


def decode(query: Query, service: str) -> Sas | None:
    """The token in a query, or None. ``service`` is the one that the request was sent to."""
    if "sig" not in query.first:
        return None
    derived = query.derived.get(service)
    if isinstance(derived, _TOKENS):
        return derived
    found = tuple([pair for pair in query.pairs if pair[0] in _FIELDS])
    token = (_cached if query.size <= CACHED_QUERY_LENGTH else _decode)(found, service)
    if token is not None:
        query.derived[service] = token
    return token


def verify(keys: Sequence[bytes], text: str, signature: str) -> bool:
    """Whether the signature is that of the text under any of the keys.

    The last thousand valid signatures are cached by everything they depend on: the key, the text (and so the resource,
    the times and the permissions) and the signature itself. What a token allows now is never cached.
    """
    return any(_is_confirmed(key, text, signature) for key in keys)


def _is_confirmed(key: bytes, text: str, signature: str) -> bool:
    try:
        _confirm(key, text, signature)
    except _WrongSignatureError:
        return False
    return True


class _WrongSignatureError(Exception):
    """Raised, and so not cached: only clients with a key can fill the cache."""


@lru_cache(maxsize=1024)
def _confirm(key: bytes, text: str, signature: str) -> None:
    if not shared_key.matches((key,), text, signature):
        raise _WrongSignatureError


def _decode(found: tuple[tuple[str, str], ...], service: str) -> Sas | None:
    fields = dict(found)
    if "sig" not in fields:
        return None
    if len(fields) != len(found) or any("\n" in text for text in fields.values()):
        raise _not_well_formed("A field is there twice, or has a line break.")
    version = fields.get("sv", "")
    if version and not _VERSION.fullmatch(version):
        raise _wrong(("sv", False))
    if "ss" in fields or "srt" in fields:
        return _account_sas(fields, version)
    if _DELEGATION_MARK in fields:
        return _user_delegation_sas(fields, version, service)
    return _service_sas(fields, version, service)


_cached: Final = lru_cache(maxsize=256)(_decode)
"""For queries with a known token and something new, such as a pop receipt."""


def _account_sas(fields: Mapping[str, str], version: str) -> AccountSas:
    services, types, permissions = fields.get("ss", ""), fields.get("srt", ""), fields.get("sp", "")
    well_formed = (
        version >= _ACCOUNT_FIRST_VERSION
        and _is_subset(services, "bqtf")
        and _is_subset(types, "sco")
        and _is_subset(permissions, ACCOUNT_PERMISSIONS)
        and "se" in fields
        and "si" not in fields
        and "sr" not in fields
    )
    if not well_formed:
        raise _wrong(
            ("sv", version >= _ACCOUNT_FIRST_VERSION),
            ("ss", _is_subset(services, "bqtf")),
            ("srt", _is_subset(types, "sco")),
            ("sp", _is_subset(permissions, ACCOUNT_PERMISSIONS)),
            ("se", "se" in fields),
            ("si", "si" not in fields),
            ("sr", "sr" not in fields),
        )
    names = ["sp", "ss", "srt", "st", "se", "sip", "spr", "sv"]
    if version >= _ACCOUNT_SCOPE_SINCE:
        names.append("ses")
    return AccountSas(
        version=version,
        signature=fields["sig"],
        terms=_terms(fields),
        services=services,
        resource_types=types,
        permissions=permissions,
        signed="\n".join(fields.get(name, "") for name in names),
    )


def _service_sas(fields: Mapping[str, str], version: str, service: str) -> ServiceSas:
    resource = fields.get("sr", "")
    if not _is_resource(resource, service, version) or (service == "table" and not fields.get("tn")):
        raise _wrong(("sr", _is_resource(resource, service, version)), ("tn", False))
    permissions, identifier = fields.get("sp") or None, fields.get("si") or None
    if permissions is not None and not _is_ordered(permissions, permission_order(service, resource)):
        order = permission_order(service, resource)
        raise _not_well_formed(
            f"The permissions (sp) are {permissions!r}; they are letters of {order}, in this order."
        )
    if identifier is None and (permissions is None or "se" not in fields):
        raise _wrong(("sp", permissions is not None), ("se", False))
    return ServiceSas(
        version=version,
        signature=fields["sig"],
        terms=_terms(fields),
        service=service,
        resource=resource,
        permissions=permissions,
        identifier=identifier,
        overrides=_overrides(fields) if signs_overrides(service, version) else None,
        table=fields.get("tn"),
        keys=_key_range(fields) if service == "table" else None,
        directory_depth=_depth(fields) if resource == "d" else None,
        signed=string_to_sign_parts(service, version, fields),
    )


def _user_delegation_sas(fields: Mapping[str, str], version: str, service: str) -> UserDelegationSas:
    resource = fields.get("sr", "")
    lines = delegated_lines(service, version, fields)
    permissions = fields.get("sp", "")
    well_formed = (
        lines is not None
        and _is_resource(resource, service, version)
        and permissions != ""
        and _is_ordered(permissions, permission_order(service, resource))
        and "se" in fields
        and "si" not in fields
        and _VERSION.fullmatch(fields.get("skv", ""))
    )
    starts_at, expires_at = _time(fields.get("skt")), _time(fields.get("ske"))
    if not well_formed or lines is None or starts_at is None or expires_at is None:
        raise _wrong(
            ("sv", lines is not None),
            ("sr", _is_resource(resource, service, version)),
            ("sp", permissions and _is_ordered(permissions, permission_order(service, resource))),
            ("se", "se" in fields),
            ("si", "si" not in fields),
            ("skv", _VERSION.fullmatch(fields.get("skv", ""))),
            ("skt", starts_at is not None),
            ("ske", expires_at is not None),
        )
    key = DelegationKey(
        fields.get("skoid", ""),
        fields.get("sktid", ""),
        starts_at,
        expires_at,
        fields.get("sks", ""),
        fields["skv"],
        fields.get("skdutid", ""),
    )
    sas = ServiceSas(
        version=version,
        signature=fields["sig"],
        terms=_terms(fields),
        service=service,
        resource=resource,
        permissions=permissions,
        identifier=None,
        overrides=None if service == "queue" else _overrides(fields),
        table=None,
        keys=None,
        directory_depth=_depth(fields) if resource == "d" else None,
        signed=(),
    )
    return UserDelegationSas(
        sas=sas,
        key=key,
        authorized_agent=fields.get("saoid", ""),
        unauthorized_agent=fields.get("suoid", ""),
        user_id=fields.get("sduoid", ""),
        encryption_scope=fields.get("ses", ""),
        header_names=_names(fields.get("srh", "")),
        parameter_names=_names(fields.get("srq", "")),
        lines=lines,
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()


def _is_resource(resource: str, service: str, version: str) -> bool:
    match service:
        case "blob" | "dfs":
            return resource in _RESOURCES and version >= _RESOURCES[resource]
        case "file":
            return resource in {"f", "s"}
        case _:
            return not resource


def permission_order(service: str, resource: str) -> str:
    """Only a share can be listed: a token for one file has no ``l``."""
    return "rcwd" if (service, resource) == ("file", "f") else _PERMISSION_ORDERS[service]


def _is_ordered(letters: str, order: str) -> bool:
    """Whether the letters are some of the order's, each once, in its order."""
    remaining = iter(order)
    return all(letter in remaining for letter in letters)


def _is_subset(letters: str, allowed: str) -> bool:
    return bool(letters) and set(letters) <= set(allowed)


def _terms(fields: Mapping[str, str]) -> Terms:
    protocol = fields.get("spr", "https,http")
    if protocol not in {"https", "https,http"}:
        raise _wrong(("spr", False))
    return Terms(
        starts_at=_time(fields.get("st")),
        expires_at=_time(fields.get("se")),
        addresses=_addresses(fields["sip"]) if "sip" in fields else None,
        https_only=protocol == "https",
    )


def _time(text: str | None) -> Instant | None:
    if text is None:
        return None
    instant = iso_time.decode(text)
    if instant is None:
        raise _not_well_formed(f"A time of the signature (st, se, skt, ske) is {text!r}, which is none.")
    return instant


def _addresses(text: str) -> tuple[int, int]:
    first, dash, last = text.partition("-")
    low = _address(first)
    high = _address(last) if dash else low
    if high < low:
        raise _wrong(("sip", False))
    return low, high


def _address(text: str) -> int:
    match = _ADDRESS.fullmatch(text)
    parts = [int(part) for part in match.groups()] if match else [256]
    if max(parts) > 255:
        raise _wrong(("sip", False))
    return int.from_bytes(bytes(parts), "big")


def _overrides(fields: Mapping[str, str]) -> ResponseOverrides | None:
    values = [fields.get(name) or None for name in OVERRIDES]
    return ResponseOverrides(*values) if any(values) else None


def _key_range(fields: Mapping[str, str]) -> SasKeyRange:
    """An empty key is signed like a missing one, so it means the same. A row key needs its partition key."""
    keys = SasKeyRange(*(fields.get(name) or None for name in ("spk", "srk", "epk", "erk")))
    starts_with_row = keys.start_row is not None and keys.start_partition is None
    ends_with_row = keys.end_row is not None and keys.end_partition is None
    if starts_with_row or ends_with_row:
        raise _wrong(("spk", not starts_with_row), ("epk", not ends_with_row))
    return keys


def _depth(fields: Mapping[str, str]) -> int:
    text = fields.get("sdd", "")
    if not (text.isascii() and text.isdigit() and len(text) <= 3):
        raise _wrong(("sdd", False))
    return int(text)


def _ancestor(name: str, depth: int) -> str:
    """The directory that many levels down above a name: a directory's token is for everything below it."""
    return "".join(f"/{part}" for part in name.split("/")[:depth])


def _not_well_formed(why: str) -> Malformed:
    malformed = Malformed(
        "AuthenticationFailed", AuthenticationErrorDetail="Signature fields not well formed."
    )
    malformed.why = why
    return malformed


def _wrong(*checks: tuple[str, object]) -> Malformed:
    """For fields of which one is not right: the first of these that is not."""
    field = next((field for field, is_right in checks if not is_right), "")
    return _not_well_formed(f"The field {field} is missing, not valid, or not allowed in such a signature.")
