"""What a caller may do: the grant that a request came with, held against what its operation needs.

A grant is the account's key, an account SAS, a service SAS, or nothing at all (anonymous). What an operation
needs is a column of its operations table, written with the letters of the REST reference:

    Access(account="o cw", service="cw")                # Put Blob: on an object, create or write
    Access(account="o a&u", service="a&u")              # Insert Or Merge Entity: add and update, both
    Access(account="o r", service="r", public="blob")   # Get Blob: also for anyone, if the container says so
    Access(account="c w")                               # Set Container Metadata: never with a service SAS
    Access(account="* *", service="*")                  # Get Account Information: any valid token
    Access()                                            # Set Container ACL: the key only

The refusals and their order are those of the service: first whether the token is in force here and now, then
service, resource type and permission.
"""

from dataclasses import dataclass
from email.utils import format_datetime
from functools import cached_property
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Protocol, assert_never

from kyanite.edm import SasKeyRange
from kyanite.rules.refusals import Reason, Refused
from kyanite.values import Instant, datetime_from_instant

ANY = "*"

_SERVICE_LETTERS = {"blob": "b", "dfs": "b", "queue": "q", "table": "t", "file": "f"}
_WHOLE_CONTAINERS = frozenset(("c", "s", ""))

# Since which version a request without credentials is asked for some. Before, there was nothing to be seen.
_CHALLENGED_SINCE = {
    "blob": "2019-12-12",
    "queue": "2019-12-12",
    "table": "2020-12-06",
    "file": "2022-11-02",
    "dfs": "2017-11-09",
}


@dataclass(frozen=True)
class Access:
    """What an operation needs. None: such a grant is never enough."""

    account: str | None = None
    """The resource type (s, c, o) and the letters an account SAS needs: any of them, or all when joined by
    ``&``.
    """
    service: str | None = None
    """The letters a service SAS needs."""
    public: str | None = None
    """The least public level at which anyone may: ``blob`` or ``container``."""

    @cached_property
    def account_need(self) -> tuple[str, str]:
        """The resource type and the letters, apart."""
        resource_type, _, letters = (self.account or "").partition(" ")
        return resource_type, letters


@dataclass(frozen=True, slots=True)
class OwnerKey:
    """The account's own key opens everything."""


@dataclass(frozen=True, slots=True)
class AccountGrant:
    """An account SAS used on a service."""

    service: str
    """The service that the request was sent to."""
    services: str
    resource_types: str
    permissions: str


@dataclass(frozen=True, slots=True)
class ServiceGrant:
    """A service SAS whose signature fits the resource of the request."""

    resource: str
    """What was shared: b, bs, bv, c, d, f or s; empty for a queue or table."""
    permissions: str
    keys: SasKeyRange | None = None
    """Which entities of a table were shared; None for anything else, and for all of them."""


@dataclass(frozen=True, slots=True)
class Anonymous:
    """No credentials. ``level`` is the container's public access: empty, ``blob`` or ``container``."""

    level: str = ""
    refusal: Reason = Reason.NO_AUTHENTICATION_INFORMATION


Grant = OwnerKey | AccountGrant | ServiceGrant | Anonymous

OWNER = OwnerKey()


def check(grant: Grant, access: Access) -> None:
    """Refuse what the grant does not allow."""
    if grant is OWNER:
        return
    match grant:
        case OwnerKey():
            return
        case AccountGrant():
            _check_account(grant, access)
        case ServiceGrant():
            _check_service(grant, access)
        case Anonymous():
            if not _is_public(grant.level, access.public):
                raise Refused(grant.refusal)
        case _:
            assert_never(grant)


def may_overwrite(grant: Grant) -> bool:
    """Whether what exists may be replaced: create without write makes new things only."""
    match grant:
        case OwnerKey():
            return True
        case AccountGrant() | ServiceGrant():
            return "w" in grant.permissions
        case Anonymous():
            return False
        case _:
            assert_never(grant)


def refusal_without_credentials(service: str, version: str) -> Reason:
    """How a request is turned away that has no credentials and needs some."""
    challenged = version >= _CHALLENGED_SINCE[service]
    return Reason.NO_AUTHENTICATION_INFORMATION if challenged else Reason.RESOURCE_NOT_FOUND


def check_in_force(starts_at: Instant | None, expires_at: Instant, now: Instant) -> None:
    """Refuse a token before its time and from its expiry on."""
    if (starts_at is None or starts_at <= now) and now < expires_at:
        return
    start = "" if starts_at is None else f"Start [{_http_date(starts_at)}] - "
    raise _unauthentic(
        f"Signature not valid in the specified time frame: {start}Expiry [{_http_date(expires_at)}] - "
        f"Current [{_http_date(now)}]"
    )


def check_protocol(*, https_only: bool, secure: bool) -> None:
    if https_only and not secure:
        raise Refused(Reason.PROTOCOL_MISMATCH)


def check_source(addresses: tuple[int, int] | None, peer: str) -> None:
    """Refuse a peer outside the range, both ends inclusive. A token can name IPv4 addresses only."""
    if addresses is None:
        return
    first, last = addresses
    address = _ipv4(peer)
    if address is None or not first <= address <= last:
        raise Refused(Reason.SOURCE_IP_MISMATCH, SourceIP=peer)


class Policy(Protocol):
    """A stored access policy. None is left to the token."""

    @property
    def starts_at(self) -> Instant | None: ...

    @property
    def expires_at(self) -> Instant | None: ...

    @property
    def permissions(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Agreement:
    """What token and stored policy say together."""

    permissions: str
    starts_at: Instant | None
    expires_at: Instant


def agree(
    policy: Policy | None, *, permissions: str | None, starts_at: Instant | None, expires_at: Instant | None
) -> Agreement:
    """Complete a token with the stored policy it names; ``policy`` is None when there is none of that name.

    A field may come from either, never from both. Live answers to the latter are 403 with the sentence below,
    though the documentation says 400.
    """
    if policy is None:
        raise _unauthentic("Signature did not match. The stored access policy that it names does not exist.")
    pairs = (
        (permissions, policy.permissions),
        (starts_at, policy.starts_at),
        (expires_at, policy.expires_at),
    )
    if any(ours is not None and theirs is not None for ours, theirs in pairs):
        raise _unauthentic(
            "Access policy fields can be associated with signature or SAS identifier but not both"
        )
    permissions = permissions if permissions is not None else policy.permissions
    expires_at = expires_at if expires_at is not None else policy.expires_at
    if permissions is None or expires_at is None:
        raise _unauthentic("Signature fields not well formed.")
    return Agreement(permissions, starts_at if starts_at is not None else policy.starts_at, expires_at)


def _check_account(grant: AccountGrant, access: Access) -> None:
    if access.account is None:
        raise Refused(Reason.AUTHORIZATION_FAILURE)
    if _SERVICE_LETTERS[grant.service] not in grant.services:
        raise Refused(Reason.SERVICE_MISMATCH)
    resource_type, letters = access.account_need
    if resource_type not in grant.resource_types and resource_type != ANY:
        raise Refused(Reason.RESOURCE_TYPE_MISMATCH)
    if not _has(grant.permissions, letters):
        raise Refused(Reason.PERMISSION_MISMATCH)


def _check_service(grant: ServiceGrant, access: Access) -> None:
    if access.service is None:
        raise Refused(Reason.AUTHORIZATION_FAILURE)
    on_container = access.account is not None and access.account[0] == "c"
    if on_container and grant.resource not in _WHOLE_CONTAINERS:
        raise _unauthentic("The specified signed resource is not allowed for this resource level")
    if not _has(grant.permissions, access.service):
        raise Refused(Reason.PERMISSION_MISMATCH)


def _has(permissions: str, letters: str) -> bool:
    if letters in permissions or letters == ANY:
        return True
    if "&" in letters:
        return all(letter in permissions for letter in letters.split("&"))
    return not set(letters).isdisjoint(permissions)


def _is_public(level: str, needed: str | None) -> bool:
    return (
        level == "container" if needed == "container" else needed == "blob" and level in {"blob", "container"}
    )


def _ipv4(peer: str) -> int | None:
    try:
        address: IPv4Address | IPv6Address | None = ip_address(peer)
    except ValueError:
        return None
    if isinstance(address, IPv6Address):
        address = address.ipv4_mapped
    return None if address is None else int(address)


def _http_date(instant: Instant) -> str:
    return format_datetime(datetime_from_instant(instant), usegmt=True)


def _unauthentic(sentence: str) -> Refused:
    return Refused(Reason.AUTHENTICATION_FAILED, AuthenticationErrorDetail=sentence)
