"""The processes of all nodes that serve one store, as rows of its engine.

    B  0 owner   a process that is alive; written once, when it joins
    B  1 owner   its heartbeat, which it rewrites every few seconds
    B  2 owner   a process that was declared dead, until what it left is cleaned up
    B  3 owner   the last change of an account that the process obeys
    B  4         the process that does the maintenance for all
    B  5         the secret that all nodes share

The row that a process is alive is its fencing token. Every transaction of a process reads it (``check_alive``), and
whoever declares the process dead deletes it. So a process that was paused and declared dead meanwhile commits nothing
any more, whatever it believes to hold: the rows of its handles, locks and sessions, or the extents of its uploads,
belong to those that clean up after it. The token never changes, so reading it conflicts with nothing but its deletion.

A heartbeat is no sign of death by itself: an observer has to have seen it unchanged for long (``server/nodes``), and
``declare_dead`` checks in its transaction that it still is.
"""

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from kyanite.engine.api import EngineBusy, Snapshot, Transaction
from kyanite.model import keys
from kyanite.model.records import Record, encode
from kyanite.values import Instant, later

TOPIC = b"members"
"""Notified when a process has joined or is dead, and when a new one does the maintenance."""
CONFIRMED = b"account changes confirmed"
"""Notified when a process obeys a change."""

NO_CHANGE = Instant(0)
"""What a process confirms before it has read any account: less than the instant of any change."""


class DeclaredDead(EngineBusy):
    """The other processes have declared this one dead, so nothing was written. It ends and is started again."""


class ContentNotShared(Exception):
    """Another node serves the store, and one of the two could not read content of the other."""

    def __init__(self, node: str) -> None:
        super().__init__(node)
        self.node = node


class Member(Record, frozen=True):
    """A process that is alive."""

    node: str
    """The name of its node, for people."""
    process: str
    """What the node calls it."""
    joined_at: Instant
    dead_after_seconds: float
    """For how long its heartbeat may stay the same."""
    has_own_extents: bool = False
    """Whether other nodes cannot read the content that it stores."""


class Heartbeat(Record, frozen=True):
    count: int
    at: Instant


class Members(NamedTuple):
    """All processes at one instant."""

    at: Instant
    living: dict[bytes, Member]
    heartbeats: dict[bytes, Heartbeat]
    dead: list[bytes]
    """The oldest first."""


decode_member: Callable[[bytes], Member] = msgspec.msgpack.Decoder(Member).decode
decode_heartbeat: Callable[[bytes], Heartbeat] = msgspec.msgpack.Decoder(Heartbeat).decode


def check_alive(snap: Snapshot, owner: bytes) -> None:
    if snap.get(keys.living_member(owner)) is None:
        raise DeclaredDead("The other processes of this store have declared this one dead.")


def join(
    tx: Transaction,
    owner: bytes,
    *,
    node: str,
    process: str,
    dead_after_seconds: float,
    has_own_extents: bool = False,
) -> None:
    """To be committed durably, before anything carries the id of this process. Raises ContentNotShared."""
    for _, value in _rows(tx, keys.LIVING_MEMBERS):
        other = decode_member(value)
        if other.node != node and (has_own_extents or other.has_own_extents):
            raise ContentNotShared(other.node)
    member = Member(node, process, tx.now, dead_after_seconds, has_own_extents)
    tx.put(keys.living_member(owner), encode(member))
    tx.put(keys.heartbeat(owner), encode(Heartbeat(0, tx.now)))
    tx.notify(TOPIC)


def renew(tx: Transaction, owner: bytes) -> None:
    check_alive(tx, owner)
    stored = tx.get(keys.heartbeat(owner))
    assert stored is not None, "A process that is alive has lost its heartbeat."
    tx.put(keys.heartbeat(owner), encode(Heartbeat(decode_heartbeat(stored).count + 1, tx.now)))


def load(snap: Snapshot) -> Members:
    living = {
        keys.owner_of_member(key): decode_member(value) for key, value in _rows(snap, keys.LIVING_MEMBERS)
    }
    heartbeats = {
        keys.owner_of_member(key): decode_heartbeat(value) for key, value in _rows(snap, keys.HEARTBEATS)
    }
    dead = [keys.owner_of_member(key) for key, _ in _rows(snap, keys.DEAD_MEMBERS)]
    return Members(snap.now, living, heartbeats, dead)


def _rows(snap: Snapshot, prefix: bytes) -> list[tuple[bytes, bytes]]:
    return list(snap.scan(prefix, keys.after(prefix)))


def declare_dead(tx: Transaction, owner: bytes, observed: Heartbeat | None = None) -> bool:
    """Take the fencing token of a process away. False if there is none.

    ``observed`` is the heartbeat that an observer has read for too long: a process that has renewed it since is alive.
    None for a process that is known to have ended.
    """
    stored, heartbeat = tx.get_many((keys.living_member(owner), keys.heartbeat(owner)))
    if stored is None or heartbeat is None:
        return False
    if observed is not None and (
        decode_heartbeat(heartbeat) != observed
        or later(observed.at, decode_member(stored).dead_after_seconds) > tx.now
    ):
        return False
    for key in (keys.living_member(owner), keys.heartbeat(owner), keys.confirmation(owner)):
        tx.delete(key)
    if tx.get(keys.MAINTAINER) == owner:
        tx.delete(keys.MAINTAINER)
    tx.put(keys.dead_member(owner), b"")
    tx.notify(TOPIC)
    return True


def forget(tx: Transaction, owner: bytes) -> None:
    """Nothing that the dead process left is there any more."""
    tx.delete(keys.dead_member(owner))


def living_nodes(snap: Snapshot) -> set[str]:
    """The names of the nodes that have a process that is alive; none if the engine is one machine's."""
    return {decode_member(value).node for _, value in _rows(snap, keys.LIVING_MEMBERS)}


def is_served(snap: Snapshot) -> bool:
    """Whether any process that is alive serves accounts."""
    behind = [keys.living_member(keys.owner_of_member(key)) for key, _ in _rows(snap, keys.CONFIRMATIONS)]
    return any(member is not None for member in snap.get_many(behind))


# --- What one process does for all


def is_maintenance_free(snap: Snapshot) -> bool:
    """Whether no process that is alive does the maintenance."""
    holder = snap.get(keys.MAINTAINER)
    return holder is None or snap.get(keys.living_member(holder)) is None


def take_maintenance(tx: Transaction, owner: bytes) -> bool:
    """Let this process do the maintenance from now on. False if another one does."""
    if is_maintenance_free(tx):
        tx.put(keys.MAINTAINER, owner)
        return True
    return False


# --- Changes of accounts that every process has to obey


def confirm(tx: Transaction, owner: bytes, changed_at: Instant) -> None:
    """This process obeys all changes of accounts up to this one."""
    tx.put(keys.confirmation(owner), keys.number(changed_at))
    tx.notify(CONFIRMED)


def unconfirmed(snap: Snapshot, changed_at: Instant) -> list[str]:
    """The processes that may not obey a change yet. One that has confirmed nothing has read no account yet."""
    behind = [
        keys.owner_of_member(key)
        for key, value in _rows(snap, keys.CONFIRMATIONS)
        if int.from_bytes(value, "big") < changed_at
    ]
    stored = snap.get_many([keys.living_member(owner) for owner in behind])
    return [_name_of(decode_member(member)) for member in stored if member is not None]


def _name_of(member: Member) -> str:
    return f"{member.process} of node {member.node}"


# --- What all nodes know


def share_secret(tx: Transaction, fresh: bytes) -> bytes:
    """The secret of the store. The first caller stores a fresh one."""
    stored = tx.get(keys.SHARED_SECRET)
    if stored is None:
        tx.put(keys.SHARED_SECRET, fresh)
        return fresh
    return stored
