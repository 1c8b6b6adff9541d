"""What a worker knows of its clients: sessions, the shares they have connected to, and the files they have open.

All of it ends with the connection, except durable opens. What others must know of an open is not here but in the rows
of its handle (``model/files/opens``): its access and share mode, its locks, its delete mark, and what it may cache.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Protocol

from kyanite.engine.api import Snapshot
from kyanite.model.accounts import Account
from kyanite.model.files import tree
from kyanite.model.files.actors import SmbActor
from kyanite.model.files.guesses import Rows
from kyanite.model.files.opens import description, open_files
from kyanite.model.files.opens.changes import KeptTimes
from kyanite.model.files.opens.description import Description
from kyanite.model.files.share import ShareKey
from kyanite.model.files.tree import FilePath, Found, Tree
from kyanite.rules.refusals import Reason, Refused
from kyanite.rules.wildcards import Pattern
from kyanite.services.smb.breaks import BreakTarget
from kyanite.services.smb.pending_write import PendingWrites
from kyanite.services.smb.sessions.logon import Logon
from kyanite.services.smb.sessions.negotiation import Negotiated
from kyanite.services.smb.sessions.security import SessionSecurity
from kyanite.services.smb.watch import Watch
from kyanite.wire.smb2.body import FileId
from kyanite.wire.smb2.crypto import NO_HASH


class Waiting(Protocol):
    """A request that waits for something other than the engine."""

    def interrupt_at_close(self) -> None:
        """End the wait, since what the request is about is being closed."""


@dataclass(eq=False, slots=True)
class TreeConnect:
    """A share that a session has connected to."""

    id: int
    account: Account
    share: ShareKey | None
    """None for IPC$."""
    share_id: int = 0
    """The share of that name when the client connected. One that was made later is another share."""
    opens: "dict[int, Open]" = field(default_factory=dict)
    """By the volatile part of their ids."""
    requires_encryption: bool = False

    def load(self, snap: Snapshot) -> Tree:
        """The share as it is now."""
        assert self.share is not None, "IPC$ has no files."
        return self._checked(tree.open_tree(snap, self.share))

    def load_path(self, snap: Snapshot, names: tuple[str, ...]) -> tuple[Tree, Rows]:
        """The same, and rows of a path in it that were read together with it."""
        assert self.share is not None, "IPC$ has no files."
        found, rows = tree.open_path(snap, FilePath(self.share, names), with_root=True)
        return self._checked(found), rows

    def _checked(self, found: Tree) -> Tree:
        if found.id != self.share_id:
            raise Refused(Reason.SHARE_NOT_FOUND)
        return found


@dataclass(eq=False, slots=True)
class Scan:
    """A listing of a directory that goes on from request to request."""

    pattern: Pattern
    """As the first request gave it. It stays until the directory is reopened."""
    dots: int = 0
    """How many of ``.`` and ``..`` were passed."""
    first: str | None = ""
    """The folded name at which the next buffer begins; None when there is nothing left."""
    is_begun: bool = False
    """Whether a request was answered already."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """One buffer at a time is read."""


@dataclass(eq=False, slots=True)
class Open:
    """A file, a directory or a pipe that a client has open."""

    tree: TreeConnect
    id: FileId
    """The persistent part is the id of the handle."""
    file_id: int
    """The id of the entry: 0 for the root directory."""
    access: int
    """The access mask that was granted."""
    options: int
    is_directory: bool
    snapshot: FilePath | None = None
    """Of an open of a share snapshot, which has no handle row: what it opened."""
    channel_sequence: int = 0
    """The latest that a request has named (MS-SMB2 §3.3.5.2.10)."""
    waiting: set[Waiting] = field(default_factory=set)
    """Requests that wait and end when this is closed."""
    position: int = 0
    """As FilePositionInformation or the last READ has set it. Nothing uses it."""
    scan: "Scan | None" = None
    """Of a directory: how far QUERY_DIRECTORY has come."""
    keeps_last_write: bool = False
    """Whether changes through this open leave LastWriteTime alone, because its client has set it."""
    keeps_change: bool = False
    """The same for ChangeTime."""
    allocation_size: int = 0
    """What the client has reserved beyond the length of the file. It ends with the open, and costs nothing."""
    watch: Watch | None = None
    """Of a directory that the client watches."""
    writes: PendingWrites = field(default_factory=PendingWrites)
    """Requests that depend on earlier WRITEs of this open wait for ``writes.drained()``."""
    is_used: bool = False
    """Whether a request has named it: its client has got the response to the CREATE, and does not repeat that."""
    is_durable: bool = False
    """Whether its handle may stay when the connection is lost."""
    break_target: BreakTarget | None = None
    """Kept here as long as its client may cache what is open."""

    @property
    def handle_id(self) -> int:
        return self.id.persistent

    @property
    def actor(self) -> SmbActor:
        return SmbActor(self.handle_id)

    @property
    def kept_times(self) -> KeptTimes:
        return KeptTimes(self.keeps_last_write, self.keeps_change)

    def find(self, snap: Snapshot) -> Found:
        """What is open, wherever it is now. Refused when the handle was closed from outside with all others."""
        if self.snapshot is not None:
            return tree.load(snap, self.snapshot, None)
        return open_files.find(snap, self.tree.load(snap), self.file_id)

    def describe(self, snap: Snapshot) -> Description:
        """The same with its path. Refused when this handle was closed from outside."""
        if self.snapshot is not None:
            return description.describe_at_snapshot(snap, self.snapshot)
        return description.describe(snap, self.tree.load(snap), self.file_id, self.handle_id)


@dataclass(eq=False, slots=True)
class Session:
    """A client that has logged on as an account."""

    id: int
    account: Account
    user: str
    """As the client spelled it, with its domain."""
    workstation: str = ""
    security: SessionSecurity | None = None
    """None in tests only: whoever logs on has keys."""
    trees: dict[int, TreeConnect] = field(default_factory=dict)

    @property
    def open_count(self) -> int:
        return sum(len(each.opens) for each in self.trees.values())


@dataclass(eq=False, slots=True)
class PendingLogon:
    """A session that is being set up, or set up again."""

    logon: Logon
    integrity_hash: bytes
    """With the messages of this logon so far, in 3.1.1."""


@dataclass(eq=False, slots=True)
class ClientState:
    """What a connection knows of its client."""

    address: str
    port: int
    negotiated: Negotiated | None = None
    integrity_hash: bytes = NO_HASH
    """With the two messages of the negotiation, in 3.1.1."""
    sessions: dict[int, Session] = field(default_factory=dict)
    logons: dict[int, PendingLogon] = field(default_factory=dict)
    """By the id that the session has, or will have."""
    last_tree_id: int = 0
