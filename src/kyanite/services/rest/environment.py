"""What the server gives every service: the accounts, and the sources of time and random ids."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from kyanite.model.accounts import Account
from kyanite.model.requests.refusals import Refusals
from kyanite.rules.authorization import Principal
from kyanite.rules.roles import Caller, Grant
from kyanite.rules.served_hosts import LOOPBACK
from kyanite.values import Instant


class Identity(Protocol):
    """Whose bearer tokens are accepted, and which roles their callers have."""

    @property
    def challenge(self) -> str:
        """The value of WWW-Authenticate."""

    async def caller(self, token: str, account: str, now: Instant) -> Caller:
        """Whom a token for this account speaks for; Refused when it is not valid."""

    def grants(self, caller: Caller, account: str, service: str) -> tuple[Grant, ...]:
        """What the caller's roles grant in a service of an account."""

    @property
    def assigned_claims(self) -> Collection[str]:
        """The claims that roles are assigned by."""

    def fresh_secret(self) -> bytes:
        """New random bytes, to be stored with an account."""

    def delegation_secret(self, account: str, stored: bytes) -> bytes:
        """What the user delegation keys of an account are derived from; the store has a part of it only."""


@dataclass(frozen=True, slots=True)
class Environment:
    accounts: Mapping[str, Account]
    clock: Callable[[], Instant]
    """The time for what expires, such as a SAS; stored times are those of the transaction."""
    wall_clock: Callable[[], Instant]
    """The time that dates in requests are compared with. The clock of a testing server may be ahead of it."""
    fresh_guid: Callable[[], str]
    """A new random GUID in its canonical spelling."""
    services_by_port: Mapping[int, str] = field(default_factory=dict)
    """The words of the services that this server offers, by the ports they listen on."""
    names: Collection[str] = LOOPBACK
    """The names and addresses, as a URL has them, at which these ports are this server's."""
    identity: Identity | None = None
    """None when bearer tokens are not accepted."""
    refusals: Refusals = field(default_factory=Refusals)
    """Where refused requests are kept, for those who ask why."""
    principal: Principal | None = None
    """Who every caller is, where another check has admitted them: the console's. None where credentials decide."""
