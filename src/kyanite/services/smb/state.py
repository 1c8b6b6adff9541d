"""What a worker knows of its clients: sessions, the shares they have connected to, and the files they have open.

All of it ends with the connection, except durable opens. What others must know of an open is not here but in the rows
of its handle (``model/files/opens``): its access and share mode, its locks, its delete mark, and what it may cache.
"""

from dataclasses import dataclass, field

from kyanite.engine.api import Snapshot
from kyanite.model.accounts import Account
from kyanite.model.files import tree
from kyanite.model.files.actors import SmbActor
from kyanite.model.files.opens import handles
from kyanite.model.files.share import ShareKey
from kyanite.model.files.tree import FilePath, Found, Tree
from kyanite.rules.refusals import Reason, Refused
from kyanite.services.smb.watch import Watch
from kyanite.wire.smb2.body import FileId


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

    def load(self, snap: Snapshot) -> Tree:
        """The share as it is now."""
        assert self.share is not None, "IPC$ has no files."
        found = tree.open_tree(snap, self.share)
        if found.id != self.share_id:
            raise Refused(Reason.SHARE_NOT_FOUND)
        return found


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
    watch: Watch | None = None
    """Of a directory that the client watches."""

    @property
    def handle_id(self) -> int:
        return self.id.persistent

    @property
    def actor(self) -> SmbActor:
        return SmbActor(self.handle_id)

    def find(self, snap: Snapshot) -> Found:
        """What is open, wherever it is now. Refused when the handle was closed from outside with all others."""
        if self.snapshot is not None:
            return tree.load(snap, self.snapshot, None)
        return handles.find(snap, self.tree.load(snap), self.file_id)


@dataclass(eq=False, slots=True)
class Session:
    """A client that has logged on as an account."""

    id: int
    account: Account
    user: str
    """As the client spelled it, with its domain."""
    workstation: str = ""
    trees: dict[int, TreeConnect] = field(default_factory=dict)
