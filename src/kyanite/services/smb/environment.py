"""What the server gives the SMB service: the accounts, the time, chance, and how strict it is."""

import os
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kyanite.model.accounts import Account
from kyanite.model.requests.refusals import Refusals
from kyanite.services.smb.breaks import BreakDelivery
from kyanite.services.smb.change_feeds import ChangeFeeds
from kyanite.services.smb.sessions.sealed_keys import SECRET_BYTES
from kyanite.services.smb.write_queue import WriteQueues
from kyanite.values import Instant
from kyanite.wire.smb2.transport import Memory, OwnMemory


class CompletedRequest(NamedTuple):
    """What logs and metrics tell of a request."""

    command: int
    status: int
    account: str
    """Empty before a logon."""
    client_address: str
    seconds: float
    received_bytes: int
    refusal_id: str = ""
    """Under which a refusal is kept, if the request was refused by a rule."""
    share: str = ""


OnCompleted = Callable[[CompletedRequest], None]


@dataclass(slots=True)
class SmbEnvironment:
    """Never changed, but for ``on_completed``: somebody may begin to watch requests."""

    accounts: Mapping[str, Account]
    clock: Callable[[], Instant]
    server_guid: bytes
    """Of this server: the same in every worker, and after a restart."""
    requires_encryption: bool = False
    is_durable: bool = True
    """Whether a WRITE is answered when its bytes are on disk; else that is promised by FLUSH and CLOSE only."""
    random_bytes: Callable[[int], bytes] = os.urandom
    secret: bytes = field(default_factory=lambda: os.urandom(SECRET_BYTES))
    """Known to all workers of this server, and in memory only."""
    on_completed: OnCompleted | None = None
    """Called after each request, if anyone wants to know."""
    refusals: Refusals = field(default_factory=Refusals)
    """Where refused requests are kept, for those who ask why."""
    memory: Memory = field(default_factory=OwnMemory)
    change_feeds: ChangeFeeds = field(default_factory=ChangeFeeds)
    write_queues: WriteQueues = field(default_factory=WriteQueues)
    on_accounts_removed: list[Callable[[Collection[str]], Awaitable[None]]] = field(default_factory=list)
    """What the server calls when it no longer serves some accounts."""
    breaks: BreakDelivery = field(default_factory=BreakDelivery)
    pending_creates: set[bytes] = field(default_factory=set)
    """The client and the create guid of each CREATE that this process carries out and that has one."""
