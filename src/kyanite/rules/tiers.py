"""Access tiers of block blobs: which exist, how one is chosen, and how an archived blob is rehydrated.

    Hot, Cool, Cold, Smart   online
    Archive                  offline: it has properties, and can be copied to another tier, rehydrated or deleted

A blob that is being rehydrated stays archived until the rehydration is ready. No timer moves it: its tier follows from
the instants stored with it. On this server every tier is the same disk, so rehydration is quick; it takes time at all
because clients wait for it.
"""

from typing import NamedTuple

from kyanite.rules.refusals import Reason, Refused
from kyanite.values import TICKS_PER_SECOND, Instant

HOT = "Hot"
SMART = "Smart"
ARCHIVE = "Archive"
TIERS = (HOT, "Cool", "Cold", SMART, ARCHIVE)
DEFAULT = HOT
"""The tier of a blob for which none was chosen."""

HIGH = "High"
STANDARD = "Standard"
PRIORITIES = (HIGH, STANDARD)
_SECONDS = {HIGH: 10, STANDARD: 60}


class Rehydration(NamedTuple):
    """The pending change of an archived blob to another tier."""

    tier: str
    priority: str
    ready_at: Instant


class Tiering(NamedTuple):
    """The stored state of a blob's tier."""

    tier: str = ""
    """Empty until a client chooses one."""
    changed_at: Instant | None = None
    rehydration: Rehydration | None = None


def chosen(tier: str, now: Instant) -> Tiering:
    """For a new blob: the tier that the client names, if any."""
    return Tiering(tier, now if tier else None)


def current(tiering: Tiering, now: Instant) -> Tiering:
    """The state now: a rehydration that is ready has ended."""
    pending = tiering.rehydration
    if pending is None or now < pending.ready_at:
        return tiering
    return Tiering(pending.tier, pending.ready_at)


def change(tiering: Tiering, wanted: str, priority: str, now: Instant) -> Tiering:
    """Change the tier. Leaving Archive takes time, less with high priority, and cannot be cancelled."""
    tiering = current(tiering, now)
    pending = tiering.rehydration
    if pending is not None:
        if wanted != pending.tier:
            raise Refused(Reason.BLOB_BEING_REHYDRATED)
        return tiering if priority != HIGH else tiering._replace(rehydration=_sooner(pending, now))
    if tiering.tier == wanted:
        return tiering
    if tiering.tier == ARCHIVE:
        return tiering._replace(rehydration=_rehydration(wanted, priority, now))
    return chosen(wanted, now)


def copied(source: Tiering, wanted: str, priority: str, now: Instant) -> Tiering:
    """For a copy: an archived source needs an explicit tier, which the copy reaches by rehydration."""
    source = current(source, now)
    if source.tier != ARCHIVE:
        return chosen(wanted, now)
    if source.rehydration is not None or not wanted:
        check_online(source, now)
    copy = chosen(ARCHIVE, now)
    return copy if wanted == ARCHIVE else copy._replace(rehydration=_rehydration(wanted, priority, now))


def check_online(tiering: Tiering, now: Instant) -> None:
    """Refuse to read or change an archived blob."""
    tiering = current(tiering, now)
    if tiering.rehydration is not None:
        raise Refused(Reason.BLOB_BEING_REHYDRATED)
    if tiering.tier == ARCHIVE:
        raise Refused(Reason.BLOB_ARCHIVED)


def _rehydration(tier: str, priority: str, now: Instant) -> Rehydration:
    priority = priority or STANDARD
    return Rehydration(tier, priority, Instant(now + _SECONDS[priority] * TICKS_PER_SECOND))


def _sooner(pending: Rehydration, now: Instant) -> Rehydration:
    if pending.priority == HIGH:
        return pending
    quick = _rehydration(pending.tier, HIGH, now)
    return quick if quick.ready_at < pending.ready_at else pending._replace(priority=HIGH)
