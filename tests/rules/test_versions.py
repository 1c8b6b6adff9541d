"""The published tables of versioning and of soft delete while versioning is off and on, unabridged.

The states of a name: ``-`` nothing, ``U`` a base blob without a version id, ``C`` a current version, ``P`` previous
versions only. What other tests cannot see here, such as the version ids, is tested with stored blobs
(``tests/model/blobs/test_versions.py``).
"""

import pytest

from kyanite.rules import versions
from kyanite.rules.refusals import Reason
from kyanite.rules.versions import NO_HISTORY, Base, Former, History
from tests.rules.refusing import reason_of

STATES = {"-": Base.ABSENT, "U": Base.UNVERSIONED, "C": Base.CURRENT, "P": Base.ABSENT}
SWITCHES = {"on": History(versioning=True), "off": NO_HISTORY}
NOTHING, LOST, VERSION = Former.NOTHING, Former.LOST, Former.VERSION
DELETED_SNAPSHOT, DELETED_BLOB = Former.DELETED_SNAPSHOT, Former.DELETED_BLOB

# fmt: off
TRANSITIONS = [
    # state, switch, replaced by Put Blob and its kin, by Set Metadata or Snapshot, by Delete Blob
    ("-", "on",  NOTHING, NOTHING, NOTHING),
    ("U", "on",  VERSION, VERSION, VERSION),
    ("C", "on",  VERSION, VERSION, VERSION),
    ("P", "on",  NOTHING, NOTHING, NOTHING),
    ("-", "off", NOTHING, NOTHING, NOTHING),
    ("C", "off", VERSION, VERSION, VERSION),
    ("U", "off", LOST,    NOTHING, LOST),
    ("P", "off", NOTHING, NOTHING, NOTHING),
]

SOFT_DELETE = [
    # versioning, archived, state, replaced, Set Metadata or Snapshot, Delete Blob
    ("off", False, "-", NOTHING,          NOTHING, NOTHING),
    ("off", False, "U", DELETED_SNAPSHOT, NOTHING, DELETED_BLOB),
    ("off", True,  "U", LOST,             NOTHING, DELETED_BLOB),
    ("off", False, "C", VERSION,          VERSION, VERSION),
    ("off", False, "P", NOTHING,          NOTHING, NOTHING),
    ("on",  False, "-", NOTHING,          NOTHING, NOTHING),
    ("on",  False, "U", VERSION,          VERSION, VERSION),
    ("on",  True,  "U", VERSION,          VERSION, VERSION),
    ("on",  False, "C", VERSION,          VERSION, VERSION),
    ("on",  False, "P", NOTHING,          NOTHING, NOTHING),
]
# fmt: on


@pytest.mark.parametrize(("state", "switch", "replaced", "revised", "deleted"), TRANSITIONS)
def test_transitions(state: str, switch: str, replaced: Former, revised: Former, deleted: Former) -> None:
    base, history = STATES[state], SWITCHES[switch]
    assert versions.replaced(base, history) is replaced
    assert versions.revised(base, history) is revised
    assert versions.deleted(base, history) is deleted


@pytest.mark.parametrize(("switch", "is_archived", "state", "replaced", "revised", "deleted"), SOFT_DELETE)
def test_transitions_while_soft_delete_is_on(
    switch: str, is_archived: bool, state: str, replaced: Former, revised: Former, deleted: Former
) -> None:
    base, history = STATES[state], SWITCHES[switch]._replace(retention_days=7)
    assert versions.replaced(base, history, is_archived=is_archived) is replaced
    assert versions.revised(base, history) is revised
    assert versions.deleted(base, history) is deleted


def test_what_is_kept() -> None:
    assert {VERSION, DELETED_SNAPSHOT, DELETED_BLOB} == versions.KEPT


BLOCK, PAGE = 0, 1

# fmt: off
TYPES = [
    # what is replaced, what becomes of it, previous versions, deleted ones: what a new page blob does
    (None,  NOTHING,          None,  None,  False),
    (None,  NOTHING,          PAGE,  None,  False),
    (None,  NOTHING,          None,  PAGE,  False),
    (None,  NOTHING,          BLOCK, None,  Reason.INVALID_BLOB_TYPE),
    (None,  NOTHING,          BLOCK, BLOCK, Reason.INVALID_BLOB_TYPE),
    (None,  NOTHING,          None,  BLOCK, True),
    (BLOCK, LOST,             None,  None,  False),
    (BLOCK, DELETED_SNAPSHOT, None,  None,  False),
    (BLOCK, DELETED_SNAPSHOT, None,  BLOCK, Reason.INVALID_BLOB_TYPE),
    (BLOCK, LOST,             BLOCK, None,  Reason.INVALID_BLOB_TYPE),
    (BLOCK, VERSION,          None,  None,  Reason.INVALID_BLOB_TYPE),
    (PAGE,  VERSION,          PAGE,  PAGE,  False),
]
# fmt: on


@pytest.mark.parametrize(("former", "becomes", "previous", "deleted", "expected"), TYPES)
def test_all_versions_of_a_name_have_one_type(
    former: int | None,
    becomes: Former,
    previous: int | None,
    deleted: int | None,
    expected: bool | Reason,
) -> None:
    def check() -> bool:
        return versions.check_type(
            PAGE, former=former, becomes=becomes, versions=previous, deleted_versions=deleted
        )

    if isinstance(expected, Reason):
        assert reason_of(check) is expected
    else:
        assert check() is expected
