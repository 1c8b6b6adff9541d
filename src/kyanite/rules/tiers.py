"""Access tiers of block blobs: which there are, how one is chosen, and how an archived blob comes back.

    Hot, Cool, Cold, Smart   online
    Archive                  offline: it can be told about, copied to another tier, asked back and deleted

A blob that has been asked back stays archived until its time has come. No timer brings it back: where it is follows
from the instants stored with it. On this server every tier is the same disk, so the time is short; it is there because
clients wait for it.
"""

from typing import NamedTuple

from kyanite.rules.refusals import Reason, Refused
from kyanite.values import TICKS_PER_SECOND, Instant

HOT = "Hot"
SMART = "Smart"
ARCHIVE = "Archive"
TIERS = (HOT, "Cool", "Cold", SMART, ARCHIVE)
DEFAULT = HOT
"""Where a blob is for which no tier was chosen."""

HIGH = "High"
STANDARD = "Standard"
PRIORITIES = (HIGH, STANDARD)
_SECONDS = {HIGH: 10, STANDARD: 60}


class Rehydration(NamedTuple):
    """An archived blob has been asked back."""

    tier: str
    priority: str
    ready_at: Instant


class Tiering(NamedTuple):
    """What is stored with a blob about its tier."""

    tier: str = ""
    """Empty while nobody has chosen one."""
    changed_at: Instant | None = None
    rehydration: Rehydration | None = None


def chosen(tier: str, now: Instant) -> Tiering:
    """Of a blob that is created: in the tier that the client names, if it names one."""
    return Tiering(tier, now if tier else None)


def settled(tiering: Tiering, now: Instant) -> Tiering:
    """As it is now: a rehydration whose time has come is over."""
    pending = tiering.rehydration
    if pending is None or now < pending.ready_at:
        return tiering
    return Tiering(pending.tier, pending.ready_at)


def change(tiering: Tiering, wanted: str, priority: str, now: Instant) -> Tiering:
    """Put the blob into a tier. Out of the archive it comes later, sooner with a high priority, and surely."""
    tiering = settled(tiering, now)
    pending = tiering.rehydration
    if pending is not None:
        if wanted != pending.tier:
            raise Refused(Reason.BLOB_BEING_REHYDRATED)
        return tiering if priority != HIGH else tiering._replace(rehydration=_sooner(pending, now))
    if tiering.tier == wanted:
        return tiering
    if tiering.tier == ARCHIVE:
        return tiering._replace(rehydration=_asked_back(wanted, priority, now))
    return chosen(wanted, now)


def copied(source: Tiering, wanted: str, priority: str, now: Instant) -> Tiering:
    """Of a copy: an archived source can be copied only to a tier that is named, where the copy will be later."""
    source = settled(source, now)
    if source.tier != ARCHIVE:
        return chosen(wanted, now)
    if source.rehydration is not None or not wanted:
        check_online(source, now)
    copy = chosen(ARCHIVE, now)
    return copy if wanted == ARCHIVE else copy._replace(rehydration=_asked_back(wanted, priority, now))


def check_online(tiering: Tiering, now: Instant) -> None:
    """Refuse to read or change what is archived."""
    tiering = settled(tiering, now)
    if tiering.rehydration is not None:
        raise Refused(Reason.BLOB_BEING_REHYDRATED)
    if tiering.tier == ARCHIVE:
        raise Refused(Reason.BLOB_ARCHIVED)


def _asked_back(tier: str, priority: str, now: Instant) -> Rehydration:
    priority = priority or STANDARD
    return Rehydration(tier, priority, Instant(now + _SECONDS[priority] * TICKS_PER_SECOND))


def _sooner(pending: Rehydration, now: Instant) -> Rehydration:
    if pending.priority == HIGH:
        return pending
    asked = _asked_back(pending.tier, HIGH, now)
    return asked if asked.ready_at < pending.ready_at else pending._replace(priority=HIGH)
