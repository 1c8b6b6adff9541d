"""Oplocks and leases: what clients may cache of a file, and what others' doings take from them.

One model serves both (MS-FSA §2.1.4.12, §2.1.5.18). A grant lets its owner cache what it reads, what it writes, and its
handle after the application has closed it. The owner of an oplock is one open; the owner of a lease is a key, which any
number of opens of one client may name. An oplock of level II is READ, an exclusive one READ and WRITE, and a batch
oplock all three; but an oplock breaks to READ or to nothing.

A break is a message to the owner. While the owner has WRITE or HANDLE it must acknowledge: it writes back or closes
first. Some events wait for that. Nothing here waits: the functions return what to send and whether to wait.
"""

from collections.abc import Hashable, Iterable
from enum import Enum, Flag, auto
from typing import NamedTuple

from kyanite.values import Instant, later

BREAK_SECONDS = 35
"""How long an owner may take to acknowledge, as Windows has it."""


class Caching(Flag):
    NONE = 0
    READ = 1
    HANDLE = 2
    WRITE = 4


ALL = Caching.READ | Caching.HANDLE | Caching.WRITE
VALID_LEASES = frozenset(
    (Caching.NONE, Caching.READ, Caching.READ | Caching.HANDLE, Caching.READ | Caching.WRITE, ALL)
)
"""Asking for any other state of a lease is asking for none."""

_STAT_ACCESS = 0x00000080 | 0x00000100 | 0x00100000
"""Reading and writing attributes, and waiting for the handle."""
_READ_CONTROL = 0x00020000


def is_stat_open(access: int, *, against_lease: bool) -> bool:
    """Whether an open looks at attributes only, so that it breaks nothing. Leases let it read the owner as well."""
    return not access & ~(_STAT_ACCESS | (_READ_CONTROL if against_lease else 0))


class Event(Enum):
    """What others do with the file."""

    OPEN = auto()
    OVERWRITE = auto()
    """An open that empties the file, and any write through REST."""
    SHARING_VIOLATION = auto()
    """An open that a sharing mode stands against: the owner may close a handle that it only caches."""
    WRITE = auto()
    """A write or a change of size through another handle."""
    LOCK = auto()
    RENAME_OR_DELETE = auto()
    """Of the file, of what a rename replaces, or of a directory above."""


_KEEPS = {
    Event.OPEN: Caching.READ | Caching.HANDLE,
    Event.OVERWRITE: Caching.NONE,
    Event.SHARING_VIOLATION: Caching.READ | Caching.WRITE,
    Event.WRITE: Caching.NONE,
    Event.LOCK: Caching.NONE,
    Event.RENAME_OR_DELETE: Caching.READ | Caching.WRITE,
}
_WAITS_FOR = {
    Event.OPEN: Caching.WRITE,
    Event.OVERWRITE: Caching.WRITE,
    Event.SHARING_VIOLATION: Caching.HANDLE,
    Event.WRITE: Caching.WRITE,
    Event.LOCK: Caching.WRITE,
    Event.RENAME_OR_DELETE: Caching.HANDLE,
}
"""An event waits while an owner has this."""
_SELF_BREAKS = (Event.WRITE, Event.LOCK)
"""What ends an oplock of level II even if its own open does it."""


class Grant(NamedTuple):
    owner: Hashable
    state: Caching
    is_lease: bool
    epoch: int = 0
    """Counts the changes of a lease of version 2."""
    requested: Caching | None = None
    """What the message asks the owner to break to; None while it is not breaking."""
    required: Caching = Caching.NONE
    """What all events since then need it to break to."""
    ends_at: Instant | None = None
    """When the break is over even without an acknowledgement."""

    @property
    def is_breaking(self) -> bool:
        return self.requested is not None


class Break(NamedTuple):
    """A message to the owner of a grant."""

    current: Caching
    to: Caching
    is_acknowledged: bool
    """Whether the owner must answer."""


class Broken(NamedTuple):
    grant: Grant
    message: Break | None
    waits: bool
    """Whether the event must wait for the owner."""


def break_for(
    event: Event, grant: Grant, now: Instant, *, is_own: bool = False, has_waited: bool = False
) -> Broken:
    """What an event does to a grant. ``is_own`` says that the owner itself does it.

    An event that ``has_waited`` goes on waiting while the break does, even if others have prolonged it.
    """
    is_level_ii = not grant.is_lease and grant.state is Caching.READ
    if is_own and not (is_level_ii and event in _SELF_BREAKS):
        return Broken(grant, None, waits=False)
    goes_on_waiting = has_waited and grant.is_breaking
    target = grant.state & _KEEPS[event]
    if target == grant.state:
        return Broken(grant, None, goes_on_waiting)
    if not grant.is_lease:
        target &= Caching.READ
    waits = goes_on_waiting or bool(grant.state & _WAITS_FOR[event])
    if grant.is_breaking:
        return Broken(grant._replace(required=grant.required & target), None, waits)
    broken, message = _send(grant._replace(epoch=grant.epoch + 1), target, target, now)
    return Broken(broken, message, waits)


def _send(grant: Grant, to: Caching, required: Caching, now: Instant) -> tuple[Grant, Break]:
    """Tell the owner. Without WRITE and HANDLE it has nothing to do first, and the break is done when it is sent."""
    if grant.state & (Caching.WRITE | Caching.HANDLE):
        broken = grant._replace(requested=to, required=required, ends_at=later(now, BREAK_SECONDS))
        return broken, Break(grant.state, to, is_acknowledged=True)
    return _finished(grant, to), Break(grant.state, to, is_acknowledged=False)


class AcknowledgementError(Enum):
    NOT_BREAKING = auto()
    TOO_MUCH = auto()
    """The owner keeps more than the message allows."""


class Acknowledged(NamedTuple):
    grant: Grant
    message: Break | None
    """The next step, if others need more than the last message said. They wait until the break is done."""


def acknowledge(grant: Grant, kept: Caching, now: Instant) -> Acknowledged | AcknowledgementError:
    """The owner keeps so much. Further breaks go by way of READ, as Windows does, and are part of the same change."""
    if grant.requested is None:
        return AcknowledgementError.NOT_BREAKING
    if kept & ~grant.requested:
        return AcknowledgementError.TOO_MUCH
    required = grant.required
    finished = _finished(grant, kept)
    if not kept & ~required:
        return Acknowledged(finished, None)
    to = required | Caching.READ if kept & (Caching.WRITE | Caching.HANDLE) else required
    return Acknowledged(*_send(finished, to, required, now))


def expire(grant: Grant, now: Instant) -> Grant:
    """A grant whose owner has not acknowledged in time is for nothing, whatever was required, as in Windows."""
    if grant.ends_at is None or now < grant.ends_at:
        return grant
    return _finished(grant, Caching.NONE)


def _finished(grant: Grant, state: Caching) -> Grant:
    return grant._replace(state=state, requested=None, required=Caching.NONE, ends_at=None)


class OtherOpen(NamedTuple):
    """An open of the same file by another owner, after its breaks."""

    state: Caching
    is_lease: bool
    is_stat: bool = False


def grantable(
    wanted: Caching, others: Iterable[OtherOpen], *, is_lease: bool, has_byte_locks: bool = False
) -> Caching:
    """How much of what an open asks for it can have beside the others."""
    if has_byte_locks or (is_lease and wanted not in VALID_LEASES):
        return Caching.NONE
    state = wanted
    for other in others:
        if other.state or not other.is_stat:
            state &= ~Caching.WRITE
            if not is_lease:
                state &= Caching.READ
        if is_lease and other.state and not other.is_lease:
            state &= ~Caching.HANDLE
        if not is_lease and other.is_lease and other.state & Caching.HANDLE:
            return Caching.NONE
    return state


def upgrade(grant: Grant, wanted: Caching, possible: Caching) -> Grant:
    """The lease of a key that another open names: it grows if all that is wanted is possible, and never shrinks."""
    grows = wanted & grant.state == grant.state and wanted != grant.state
    if grant.is_breaking or not grows or possible != wanted:
        return grant
    return grant._replace(state=wanted, epoch=grant.epoch + 1)
