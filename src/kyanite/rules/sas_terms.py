"""When, from where and over which protocol a shared access signature may be used, and its stored access policy."""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final, NamedTuple, Protocol

from kyanite.rules.refusals import AuthenticationProblem, CallerAddress, Reason, Refused
from kyanite.values import Instant, datetime_from_instant

_FIELDS: Final = ("sp", "st", "se")
"""The fields of a token that a stored access policy may have instead."""


class TimeFacts(NamedTuple):
    """When a token is valid, and when it was used."""

    starts_at: Instant | None
    expires_at: Instant
    at: Instant
    is_of_key: bool
    """Whether the times are those of the user delegation key that the token is signed with."""


class AddressFacts(NamedTuple):
    """The IPv4 addresses that a token allows, as numbers."""

    first: int
    last: int


class PolicyFacts(NamedTuple):
    """What is wrong with a token and the stored access policy that it names."""

    exists: bool
    in_both: tuple[str, ...] = ()
    """Fields that both of them have."""
    in_neither: tuple[str, ...] = ()


def check_time(
    starts_at: Instant | None, expires_at: Instant, now: Instant, *, is_of_key: bool = False
) -> None:
    """Refuse a token, or one that is signed with a user delegation key, before the start and from the expiry on."""
    if (starts_at is None or starts_at <= now) and now < expires_at:
        return
    start = "" if starts_at is None else f"Start [{_http_date(starts_at)}] - "
    raise _unauthentic(
        f"Signature not valid in the specified time frame: {start}Expiry [{_http_date(expires_at)}] - "
        f"Current [{_http_date(now)}]",
        TimeFacts(starts_at, expires_at, now, is_of_key),
    )


def check_protocol(*, https_only: bool, secure: bool) -> None:
    if https_only and not secure:
        raise Refused(Reason.PROTOCOL_MISMATCH)


def check_address(addresses: tuple[int, int] | None, address: str) -> None:
    """Refuse a caller outside the range, both ends inclusive. A token can name IPv4 addresses only."""
    if addresses is None:
        return
    first, last = addresses
    number = _ipv4(address)
    if number is None or not first <= number <= last:
        raise Refused(Reason.SOURCE_IP_MISMATCH, CallerAddress(address), AddressFacts(first, last))


class Policy(Protocol):
    """A stored access policy. A field that is None is left to the token."""

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

    A field may come from either, never from both. The live service refuses the latter with 403 and the sentence
    below, though the documentation says 400.
    """
    if policy is None:
        raise _unauthentic(
            "Signature did not match. The stored access policy that it names does not exist.",
            PolicyFacts(exists=False),
        )
    pairs = (
        (permissions, policy.permissions),
        (starts_at, policy.starts_at),
        (expires_at, policy.expires_at),
    )
    if any(of_token is not None and of_policy is not None for of_token, of_policy in pairs):
        in_both = [field for field, pair in zip(_FIELDS, pairs, strict=True) if None not in pair]
        raise _unauthentic(
            "Access policy fields can be associated with signature or SAS identifier but not both",
            PolicyFacts(exists=True, in_both=tuple(in_both)),
        )
    permissions = permissions if permissions is not None else policy.permissions
    expires_at = expires_at if expires_at is not None else policy.expires_at
    if permissions is None or expires_at is None:
        missing = [field for field, value in (("sp", permissions), ("se", expires_at)) if value is None]
        raise _unauthentic(
            "Signature fields not well formed.", PolicyFacts(exists=True, in_neither=tuple(missing))
        )
    return Agreement(permissions, starts_at if starts_at is not None else policy.starts_at, expires_at)


def _ipv4(text: str) -> int | None:
    try:
        address: IPv4Address | IPv6Address | None = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv6Address):
        address = address.ipv4_mapped
    return None if address is None else int(address)


def _http_date(instant: Instant) -> str:
    # Imported here, since only the text of a refusal needs it, and it imports much.
    from email.utils import format_datetime

    return format_datetime(datetime_from_instant(instant), usegmt=True)


def _unauthentic(sentence: str, facts: object) -> Refused:
    return Refused(Reason.AUTHENTICATION_FAILED, AuthenticationProblem(sentence), facts)
