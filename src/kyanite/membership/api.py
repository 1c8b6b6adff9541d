"""The contract for membership: which processes use a store, and which of them are alive.

Each process joins under an id of its own, never used before. What it writes for itself (segments, pinned reads, open
handles) carries this id as its *owner*, so that another process can clean up after it. Three promises make that safe:

*Alive* is decided by the operating system or a lease, never by what a process writes before it ends: however a process
dies, ``is_alive`` becomes false. It never becomes true again.

*Known.* An owner is durably listed before its process can write anything under its id. So ``dead_owners`` lists every
owner that is dead and may have left something behind.

*Forgotten* owners are dead. A process calls ``forget`` when nothing that the owner left is there any more.
"""

from typing import Protocol

OWNER_BYTES = 12
"""The length of an owner's id."""


class Membership(Protocol):
    @property
    def id(self) -> bytes:
        """The id of this process, OWNER_BYTES long."""

    def is_alive(self, owner: bytes) -> bool:
        """Whether the process with this id lives; false for an id that is not listed. May be called in any thread."""

    def dead_owners(self) -> list[bytes]:
        """Owners that are dead and not forgotten, the oldest first."""

    def forget(self, owner: bytes) -> None:
        """Stop listing a dead owner. Nothing happens if it is not listed."""

    def close(self) -> None:
        """Leave: from now on the other processes see this one as dead."""
