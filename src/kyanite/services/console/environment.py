"""What the server gives the console."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass

from kyanite.model.accounts import Account
from kyanite.model.requests.refusals import Explanation
from kyanite.model.requests.tail import Completed, Wanted
from kyanite.services.rest.environment import Identity
from kyanite.values import Instant
from kyanite.wire.http import Handler


@dataclass(frozen=True, slots=True)
class ConsoleEnvironment:
    accounts: Mapping[str, Account]
    clock: Callable[[], Instant]
    fresh_guid: Callable[[], str]
    own: Mapping[str, Handler]
    """The services that are offered, by name. They take every request as one of the account's owner."""
    public: Mapping[str, Handler]
    """The same services as clients reach them, by their credentials."""
    addresses: Mapping[str, tuple[str, int]]
    """Host and port of every service, SMB included."""
    secret: bytes
    """What sessions and forms are signed with: the same in all workers and nodes."""
    needs_sign_in: bool
    hosts: frozenset[str]
    """The names and addresses by which browsers may reach the console."""
    proxied: frozenset[str]
    """Those of them that are not this machine's: whoever comes by one has to sign in."""
    stopping: asyncio.Event
    """Set when the server stops: then endless responses end."""
    watch: Callable[[Wanted], AsyncGenerator[Completed, None]]
    """The requests of all processes as they are completed."""
    explain: Callable[[str, str | None], Awaitable[Explanation | None]]
    """Why the request with this id was refused; with an account, only if it was for that."""
    identity: Identity | None
    """None when bearer tokens are not accepted."""
    signs_in_by_token: bool
    """Whether a token opens the console: not one of an issuer for development."""
    well_known_keys: frozenset[bytes]
    """Keys that everyone knows, and that nobody signs in with."""
