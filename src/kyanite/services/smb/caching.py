"""Oplock levels and lease contexts of CREATE, to and from what the model grants."""

from collections.abc import Mapping

from kyanite.model.files.opens.caching import NO_CACHING, CachingRequest, Granted
from kyanite.model.files.opens.records import key_of_lease
from kyanite.rules.oplocks import ALL, Caching
from kyanite.wire.smb2.create import CreateRequest, OplockLevel
from kyanite.wire.smb2.create_contexts import LEASE_BREAK_IN_PROGRESS, LEASE_PARENT_KEY_SET, LeaseContext

_STATES: Mapping[int, Caching] = {
    OplockLevel.II: Caching.READ,
    OplockLevel.EXCLUSIVE: Caching.READ | Caching.WRITE,
    OplockLevel.BATCH: ALL,
}
_LEVELS: Mapping[Caching, OplockLevel] = {
    Caching.NONE: OplockLevel.NONE,
    Caching.READ: OplockLevel.II,
    Caching.READ | Caching.WRITE: OplockLevel.EXCLUSIVE,
    ALL: OplockLevel.BATCH,
}


def requested(wanted: CreateRequest, client_guid: bytes) -> CachingRequest:
    """What a CREATE asks for. The context of a lease counts only with the level that says so."""
    lease = wanted.contexts.lease
    if wanted.oplock_level == OplockLevel.LEASE and lease is not None:
        return requested_lease(lease, client_guid)
    state = _STATES.get(wanted.oplock_level)
    return NO_CACHING if state is None else CachingRequest(state)


def requested_lease(lease: LeaseContext, client_guid: bytes) -> CachingRequest:
    key = key_of_lease(client_guid, lease.key)
    return CachingRequest(Caching(lease.state & ALL.value), key, lease.version, lease.epoch)


def level_of(granted: Granted) -> OplockLevel:
    """The level in the response. A lease is granted with a context, even if it is for nothing."""
    return OplockLevel.LEASE if granted.version else _LEVELS[granted.state]


def granted_lease(wanted: LeaseContext, granted: Granted) -> LeaseContext:
    flags = wanted.flags & LEASE_PARENT_KEY_SET
    if granted.is_breaking:
        flags |= LEASE_BREAK_IN_PROGRESS
    parent_key = wanted.parent_key if flags & LEASE_PARENT_KEY_SET else bytes(16)
    return LeaseContext(wanted.key, granted.state.value, flags, granted.version, parent_key, granted.epoch)
