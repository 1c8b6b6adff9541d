"""Access tiers over REST: headers of requests, headers of answers, and elements of listings."""

from typing import Final

from kyanite.model.blobs.records import BLOCK_BLOB, BlobRecord
from kyanite.rules import tiers
from kyanite.rules.preconditions import NONE, Conditions
from kyanite.rules.refusals import Reason, Refused
from kyanite.rules.tiers import PRIORITIES, SMART, TIERS, Tiering
from kyanite.services.rest.headers import conditions_of, one_of
from kyanite.values import Instant
from kyanite.wire import http_date

_TIER: Final = "x-ms-access-tier"


def tier_of(headers: dict[str, str]) -> str:
    """The tier that a request names; empty when it names none."""
    return one_of(headers, _TIER, TIERS)


def priority_of(headers: dict[str, str]) -> str:
    return one_of(headers, "x-ms-rehydrate-priority", PRIORITIES)


def tier_times_of(headers: dict[str, str]) -> Conditions:
    """The conditions on when a tier was chosen. Their headers end like those of the usual conditions."""
    times = {
        name.removeprefix(f"{_TIER}-"): value
        for name, value in headers.items()
        if name.startswith(f"{_TIER}-if-")
    }
    return conditions_of(times) if times else NONE


def check_no_tier(headers: dict[str, str]) -> None:
    """Only block blobs have tiers in accounts of this kind."""
    if headers.get(_TIER):
        raise Refused(Reason.TIER_NOT_SUPPORTED)


def tier_headers(record: BlobRecord, now: Instant) -> list[tuple[str, str]]:
    if record.kind != BLOCK_BLOB:
        return []
    tiering = tiers.current(record.tiering, now)
    headers = [(_TIER, tiering.tier or tiers.DEFAULT)]
    if not tiering.tier:
        headers.append(("x-ms-access-tier-inferred", "true"))
    if tiering.tier == SMART:
        headers.append(("x-ms-smart-access-tier", tiers.DEFAULT))
    if tiering.rehydration is not None:
        headers.append(("x-ms-archive-status", _archive_status(tiering)))
        headers.append(("x-ms-rehydrate-priority", tiering.rehydration.priority))
    if tiering.changed_at is not None:
        headers.append(("x-ms-access-tier-change-time", http_date.encode(tiering.changed_at)))
    return headers


def tier_elements(record: BlobRecord, now: Instant) -> str:
    """The same in a listing, of a block blob for which a tier was chosen."""
    tiering = tiers.current(record.tiering, now)
    elements = f"<AccessTier>{tiering.tier}</AccessTier>"
    if tiering.tier == SMART:
        elements += f"<SmartAccessTier>{tiers.DEFAULT}</SmartAccessTier>"
    if tiering.rehydration is not None:
        elements += (
            f"<ArchiveStatus>{_archive_status(tiering)}</ArchiveStatus>"
            f"<RehydratePriority>{tiering.rehydration.priority}</RehydratePriority>"
        )
    if tiering.changed_at is not None:
        elements += f"<AccessTierChangeTime>{http_date.encode(tiering.changed_at)}</AccessTierChangeTime>"
    return elements


def _archive_status(tiering: Tiering) -> str:
    assert tiering.rehydration is not None
    return f"rehydrate-pending-to-{tiering.rehydration.tier.lower()}"
