"""Tiers of block blobs: the table of changes, and what an archived blob allows."""

import pytest

from kyanite.rules import tiers
from kyanite.rules.refusals import Reason, Refused
from kyanite.rules.tiers import Rehydration, Tiering
from kyanite.values import TICKS_PER_SECOND, Instant

NOW = Instant(1_000 * TICKS_PER_SECOND)
BEFORE = Instant(500 * TICKS_PER_SECOND)


def after(seconds: int) -> Instant:
    return Instant(NOW + seconds * TICKS_PER_SECOND)


INFERRED = Tiering()
COOL = Tiering("Cool", BEFORE)
ARCHIVED = Tiering("Archive", BEFORE)
PENDING = Tiering("Archive", BEFORE, Rehydration("Hot", "Standard", after(30)))
URGENT = Tiering("Archive", BEFORE, Rehydration("Hot", "High", after(5)))
ALMOST = Tiering("Archive", BEFORE, Rehydration("Hot", "Standard", after(3)))
OVER = Tiering("Archive", BEFORE, Rehydration("Hot", "Standard", NOW))


def back(tier: str, priority: str, seconds: int, changed_at: Instant = BEFORE) -> Tiering:
    return Tiering("Archive", changed_at, Rehydration(tier, priority, after(seconds)))


CHANGES = [
    ("a tier is chosen", INFERRED, "Cool", "", Tiering("Cool", NOW)),
    ("the tier that was inferred is chosen", INFERRED, "Hot", "", Tiering("Hot", NOW)),
    ("another tier", COOL, "Cold", "", Tiering("Cold", NOW)),
    ("the same tier changes nothing", COOL, "Cool", "", COOL),
    ("a priority means nothing online", COOL, "Hot", "High", Tiering("Hot", NOW)),
    ("into the archive", COOL, "Archive", "", Tiering("Archive", NOW)),
    ("archived again", ARCHIVED, "Archive", "", ARCHIVED),
    ("out of the archive", ARCHIVED, "Hot", "", back("Hot", "Standard", 60)),
    ("out of the archive, soon", ARCHIVED, "Cool", "High", back("Cool", "High", 10)),
    ("requested again", PENDING, "Hot", "Standard", PENDING),
    ("requested again, without a priority", PENDING, "Hot", "", PENDING),
    ("requested sooner", PENDING, "Hot", "High", back("Hot", "High", 10)),
    ("requested sooner than possible", ALMOST, "Hot", "High", back("Hot", "High", 3)),
    ("never later", URGENT, "Hot", "Standard", URGENT),
    ("sooner twice", URGENT, "Hot", "High", URGENT),
    ("to another tier while it comes", PENDING, "Cool", "", Reason.BLOB_BEING_REHYDRATED),
    ("back to the archive while it comes", PENDING, "Archive", "", Reason.BLOB_BEING_REHYDRATED),
    ("the same tier once it is there", OVER, "Hot", "", Tiering("Hot", NOW)),
    ("another once it is there", OVER, "Archive", "", Tiering("Archive", NOW)),
]


@pytest.mark.parametrize(
    ("description", "before", "wanted", "priority", "expected"), CHANGES, ids=[row[0] for row in CHANGES]
)
def test_a_change(
    description: str, before: Tiering, wanted: str, priority: str, expected: Tiering | Reason
) -> None:
    try:
        found: Tiering | Reason = tiers.change(before, wanted, priority, NOW)
    except Refused as refusal:
        found = refusal.reason
    assert found == expected, description


COPIES = [
    ("without a tier", COOL, "", INFERRED),
    ("to a tier", COOL, "Cold", Tiering("Cold", NOW)),
    ("into the archive", COOL, "Archive", Tiering("Archive", NOW)),
    ("of an archived blob, without a tier", ARCHIVED, "", Reason.BLOB_ARCHIVED),
    ("of an archived blob, to the archive", ARCHIVED, "Archive", Tiering("Archive", NOW)),
    ("of an archived blob, online", ARCHIVED, "Hot", back("Hot", "High", 10, NOW)),
    ("of one that is coming back", PENDING, "Hot", Reason.BLOB_BEING_REHYDRATED),
    ("of one that has come back", OVER, "", INFERRED),
]


@pytest.mark.parametrize(
    ("description", "source", "wanted", "expected"), COPIES, ids=[row[0] for row in COPIES]
)
def test_a_copy(description: str, source: Tiering, wanted: str, expected: Tiering | Reason) -> None:
    try:
        found: Tiering | Reason = tiers.copied(source, wanted, "High", NOW)
    except Refused as refusal:
        found = refusal.reason
    assert found == expected, description


@pytest.mark.parametrize(
    ("tiering", "expected"),
    [
        (INFERRED, None),
        (COOL, None),
        (ARCHIVED, Reason.BLOB_ARCHIVED),
        (PENDING, Reason.BLOB_BEING_REHYDRATED),
        (OVER, None),
    ],
)
def test_only_what_is_online_can_be_read(tiering: Tiering, expected: Reason | None) -> None:
    if expected is None:
        tiers.check_online(tiering, NOW)
        return
    with pytest.raises(Refused) as caught:
        tiers.check_online(tiering, NOW)
    assert caught.value.reason is expected


def test_the_instant_decides() -> None:
    pending = Tiering("Archive", BEFORE, Rehydration("Cold", "High", NOW))
    assert tiers.current(pending, Instant(NOW - 1)) == pending
    assert tiers.current(pending, NOW) == Tiering("Cold", NOW)


def test_a_tier_that_was_not_named_is_inferred() -> None:
    assert tiers.chosen("", NOW) == INFERRED
    assert tiers.chosen("Cool", NOW) == Tiering("Cool", NOW)
