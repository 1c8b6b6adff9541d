"""Every conditional header, alone and beside others, as the tables of the service describe them."""

from collections.abc import Callable

import pytest

from kyanite.rules import preconditions
from kyanite.rules.preconditions import NONE, Conditions
from kyanite.rules.refusals import Reason
from kyanite.values import TICKS_PER_SECOND, ETag, Instant
from tests.rules.refusing import reason_of

TAG = ETag("0x8DE24A1B2C3D4E5")
OTHER = "0x8DE24A1B2C3D4E6"
NOON = Instant(638_500_320_000_000_000)
MODIFIED = Instant(NOON + 7_000_000)
"""The resource was last modified at 12:00:00.7, which its Last-Modified shows as 12:00:00."""

EARLIER = Instant(NOON - TICKS_PER_SECOND)
SAME = NOON
LATER = Instant(NOON + TICKS_PER_SECOND)

OK = "ok"
NOT_MET = Reason.CONDITION_NOT_MET
NOT_MODIFIED = Reason.NOT_MODIFIED
UNSATISFIABLE = Reason.UNSATISFIABLE_CONDITION
SOURCE = Reason.SOURCE_CONDITION_NOT_MET
SOURCE_NOT_MET = Reason.COPY_SOURCE_CONDITION_NOT_MET
SOURCE_NOT_MODIFIED = Reason.COPY_SOURCE_NOT_MODIFIED
EXISTS = Reason.BLOB_ALREADY_EXISTS
MULTIPLE = Reason.MULTIPLE_CONDITIONS


def given(
    match: str | None = None,
    none_match: str | None = None,
    *,
    modified: Instant | None = None,
    unmodified: Instant | None = None,
) -> Conditions:
    """Conditions as a client would write them: ETags in one text, separated by commas."""
    return Conditions(
        None if match is None else tuple(match.split(",")),
        None if none_match is None else tuple(none_match.split(",")),
        modified,
        unmodified,
    )


def answer(check: Callable[[], None]) -> Reason | str:
    return reason_of(check) or OK


# One header

# fmt: off
ONE: list[tuple[str, Conditions, Reason | str, Reason | str, Reason | str]] = [
    #                                                                    read          write    creating write
    ("none",                         given(),                            OK,           OK,      OK),
    ("If-Match: its ETag",           given(TAG),                         OK,           OK,      OK),
    ("If-Match: another",            given(OTHER),                       NOT_MET,      NOT_MET, NOT_MET),
    ("If-Match: *",                  given("*"),                         OK,           OK,      OK),
    ("If-None-Match: its ETag",      given(None, TAG),                   NOT_MODIFIED, NOT_MET, NOT_MET),
    ("If-None-Match: another",       given(None, OTHER),                 OK,           OK,      OK),
    ("If-None-Match: *",             given(None, "*"),                   UNSATISFIABLE, NOT_MET, EXISTS),
    ("If-Modified-Since: earlier",   given(modified=EARLIER),            OK,           OK,      OK),
    ("If-Modified-Since: same",      given(modified=SAME),               NOT_MODIFIED, NOT_MET, NOT_MET),
    ("If-Modified-Since: later",     given(modified=LATER),              NOT_MODIFIED, NOT_MET, NOT_MET),
    ("If-Unmodified-Since: earlier", given(unmodified=EARLIER),          NOT_MET,      NOT_MET, NOT_MET),
    ("If-Unmodified-Since: same",    given(unmodified=SAME),             OK,           OK,      OK),
    ("If-Unmodified-Since: later",   given(unmodified=LATER),            OK,           OK,      OK),
]
# fmt: on


@pytest.mark.parametrize(
    ("description", "conditions", "read", "write", "creating"), ONE, ids=[row[0] for row in ONE]
)
def test_one_condition(
    description: str, conditions: Conditions, read: Reason | str, write: Reason | str, creating: Reason | str
) -> None:
    assert answer(lambda: preconditions.check_read(conditions, TAG, MODIFIED)) == read
    assert answer(lambda: preconditions.check_write(conditions, TAG, MODIFIED, creates=False)) == write
    assert answer(lambda: preconditions.check_write(conditions, TAG, MODIFIED, creates=True)) == creating
    source = OK if read == OK else SOURCE
    assert answer(lambda: preconditions.check_source(conditions, TAG, MODIFIED)) == source, description
    by_url = {OK: OK, NOT_MET: SOURCE_NOT_MET}.get(read, SOURCE_NOT_MODIFIED)
    assert answer(lambda: preconditions.check_source_read(conditions, TAG, MODIFIED)) == by_url, description


@pytest.mark.parametrize("fraction", [0, 1, 7_000_000, 9_999_999])
def test_a_fraction_of_a_second_is_never_a_modification(fraction: int) -> None:
    modified_at = Instant(NOON + fraction)
    since, unmodified = given(modified=NOON), given(unmodified=NOON)
    assert answer(lambda: preconditions.check_read(since, TAG, modified_at)) is NOT_MODIFIED
    assert answer(lambda: preconditions.check_read(unmodified, TAG, modified_at)) == OK
    assert answer(lambda: preconditions.check_write(since, TAG, modified_at, creates=True)) is NOT_MET
    assert answer(lambda: preconditions.check_write(unmodified, TAG, modified_at, creates=True)) == OK
    assert answer(lambda: preconditions.check_time_write(since, modified_at)) is NOT_MET
    assert answer(lambda: preconditions.check_time_write(unmodified, modified_at)) == OK


# Several headers on a read

READS = [
    ("both of the strong pair hold", given(TAG, unmodified=SAME), OK),
    ("If-Match fails", given(OTHER, unmodified=SAME), NOT_MET),
    ("If-Unmodified-Since fails", given(TAG, unmodified=EARLIER), NOT_MET),
    ("both of the strong pair fail", given(OTHER, unmodified=EARLIER), NOT_MET),
    ("both of the weak pair hold", given(None, OTHER, modified=EARLIER), OK),
    ("only If-None-Match fails", given(None, TAG, modified=EARLIER), OK),
    ("only If-Modified-Since fails", given(None, OTHER, modified=SAME), OK),
    ("both of the weak pair fail", given(None, TAG, modified=SAME), NOT_MODIFIED),
    ("If-Match and If-Modified-Since fail: the stronger wins", given(OTHER, modified=SAME), NOT_MET),
    ("If-Match and If-None-Match fail: the stronger wins", given(OTHER, TAG), NOT_MET),
    ("If-Match holds, If-None-Match fails", given(TAG, TAG), NOT_MODIFIED),
    ("If-Match holds, If-Modified-Since fails", given(TAG, modified=SAME), NOT_MODIFIED),
    ("the two times enclose it", given(modified=EARLIER, unmodified=SAME), OK),
    ("the two times are before it", given(modified=EARLIER, unmodified=EARLIER), NOT_MET),
    ("the two times are after it", given(modified=LATER, unmodified=LATER), NOT_MODIFIED),
    ("all four hold", given(TAG, OTHER, modified=EARLIER, unmodified=SAME), OK),
    ("all four, one of the weak fails", given(TAG, OTHER, modified=SAME, unmodified=SAME), OK),
    ("all four fail", given(OTHER, TAG, modified=SAME, unmodified=EARLIER), NOT_MET),
    ("If-Match lists it", given(f"{OTHER},{TAG}"), OK),
    ("If-Match lists others", given(f"{OTHER},0x1"), NOT_MET),
    ("If-None-Match lists it", given(None, f"{OTHER},{TAG}"), NOT_MODIFIED),
    ("If-None-Match lists others", given(None, f"{OTHER},0x1"), OK),
    ("If-None-Match: * beside If-Modified-Since", given(None, "*", modified=EARLIER), UNSATISFIABLE),
    ("If-None-Match: * beside a failing If-Match", given(OTHER, "*"), UNSATISFIABLE),
    ("If-None-Match lists *", given(None, f"{OTHER},*"), UNSATISFIABLE),
]


@pytest.mark.parametrize(("description", "conditions", "expected"), READS, ids=[row[0] for row in READS])
def test_several_conditions_on_a_read(
    description: str, conditions: Conditions, expected: Reason | str
) -> None:
    assert answer(lambda: preconditions.check_read(conditions, TAG, MODIFIED)) == expected, description


@pytest.mark.parametrize(
    ("description", "conditions", "expected"),
    [row for row in READS if row[2] is not UNSATISFIABLE],
    ids=[row[0] for row in READS if row[2] is not UNSATISFIABLE],
)
def test_several_conditions_on_a_source(
    description: str, conditions: Conditions, expected: Reason | str
) -> None:
    source = OK if expected == OK else SOURCE
    assert answer(lambda: preconditions.check_source(conditions, TAG, MODIFIED)) == source, description
    by_url = {OK: OK, NOT_MET: SOURCE_NOT_MET}.get(expected, SOURCE_NOT_MODIFIED)
    assert answer(lambda: preconditions.check_source_read(conditions, TAG, MODIFIED)) == by_url, description


# Several headers on a write

WRITES = [
    ("If-Match decides: met", given(TAG, unmodified=EARLIER), OK),
    ("If-Match decides: not met", given(OTHER, unmodified=LATER), NOT_MET),
    ("If-Match: * decides", given("*", unmodified=EARLIER), OK),
    ("If-None-Match decides: met", given(None, OTHER, modified=LATER), OK),
    ("If-None-Match decides: not met", given(None, TAG, modified=EARLIER), NOT_MET),
    ("If-None-Match: * decides", given(None, "*", modified=EARLIER), EXISTS),
    ("both ETag headers", given(TAG, OTHER), MULTIPLE),
    ("both ETag headers with *", given("*", "*"), MULTIPLE),
    ("both times", given(modified=EARLIER, unmodified=SAME), MULTIPLE),
    ("If-Match beside If-Modified-Since", given(TAG, modified=EARLIER), MULTIPLE),
    ("If-None-Match beside If-Unmodified-Since", given(None, OTHER, unmodified=SAME), MULTIPLE),
    ("all but If-Match", given(None, OTHER, modified=EARLIER, unmodified=SAME), MULTIPLE),
    ("all but If-None-Match", given(TAG, modified=EARLIER, unmodified=SAME), MULTIPLE),
    ("all but If-Modified-Since", given(TAG, OTHER, unmodified=SAME), MULTIPLE),
    ("all but If-Unmodified-Since", given(TAG, OTHER, modified=EARLIER), MULTIPLE),
    ("all four", given(TAG, OTHER, modified=EARLIER, unmodified=SAME), MULTIPLE),
    ("a list in If-Match", given(f"{TAG},{OTHER}"), MULTIPLE),
    ("a list in If-None-Match", given(None, f"{OTHER},0x1"), MULTIPLE),
    ("a list with *", given(None, f"{OTHER},*"), MULTIPLE),
]


@pytest.mark.parametrize(("description", "conditions", "expected"), WRITES, ids=[row[0] for row in WRITES])
def test_several_conditions_on_a_write(
    description: str, conditions: Conditions, expected: Reason | str
) -> None:
    assert answer(lambda: preconditions.check_write(conditions, TAG, MODIFIED, creates=True)) == expected, (
        description
    )
    if expected is EXISTS:
        expected = NOT_MET
    assert answer(lambda: preconditions.check_write(conditions, TAG, MODIFIED, creates=False)) == expected, (
        description
    )


# Where nothing exists yet

MISSING = [
    ("none", given(), OK),
    ("If-Match: some ETag", given(TAG), NOT_MET),
    ("If-Match: *", given("*"), NOT_MET),
    ("If-None-Match: some ETag", given(None, TAG), OK),
    ("If-None-Match: *", given(None, "*"), OK),
    ("If-Modified-Since", given(modified=LATER), OK),
    ("If-Unmodified-Since", given(unmodified=EARLIER), OK),
    ("If-Match beside If-Unmodified-Since", given("*", unmodified=LATER), NOT_MET),
    ("If-None-Match beside If-Modified-Since", given(None, "*", modified=LATER), OK),
    ("a combination that is not allowed", given("*", "*"), MULTIPLE),
]


@pytest.mark.parametrize(("description", "conditions", "expected"), MISSING, ids=[row[0] for row in MISSING])
def test_creating_what_is_missing(description: str, conditions: Conditions, expected: Reason | str) -> None:
    assert answer(lambda: preconditions.check_write(conditions, None, None, creates=True)) == expected, (
        description
    )


@pytest.mark.parametrize(
    ("description", "conditions", "creates", "expected"),
    [
        ("a creating write passes", given(None, "*"), True, OK),
        ("also beside a time", given(None, "*", modified=LATER), True, OK),
        ("any other write does not", given(None, "*"), False, NOT_MET),
        ("an ETag is still enforced", given(None, TAG), True, NOT_MET),
        ("If-Match is still enforced", given(OTHER), True, NOT_MET),
        ("and so are the combinations", given("*", "*"), True, MULTIPLE),
    ],
)
def test_the_holder_of_the_lease_may_overwrite(
    description: str, conditions: Conditions, creates: bool, expected: Reason | str
) -> None:
    assert (
        answer(
            lambda: preconditions.check_write(conditions, TAG, MODIFIED, creates=creates, holds_lease=True)
        )
        == expected
    ), description


# What takes time conditions only

TIMES = [
    ("none", given(), OK),
    ("modified since an earlier time", given(modified=EARLIER), OK),
    ("modified since the same second", given(modified=SAME), NOT_MET),
    ("unmodified since an earlier time", given(unmodified=EARLIER), NOT_MET),
    ("unmodified since the same second", given(unmodified=SAME), OK),
    ("both", given(modified=EARLIER, unmodified=SAME), MULTIPLE),
    ("ETag conditions are not looked at", given(OTHER, TAG), OK),
    ("nor beside a time", given(OTHER, TAG, modified=EARLIER), OK),
]


@pytest.mark.parametrize(("description", "conditions", "expected"), TIMES, ids=[row[0] for row in TIMES])
def test_time_conditions_alone(description: str, conditions: Conditions, expected: Reason | str) -> None:
    assert answer(lambda: preconditions.check_time_write(conditions, MODIFIED)) == expected, description


def test_no_conditions_compare_equal_to_the_shared_value() -> None:
    """``is NONE`` is only a short cut; conditions without any header mean the same."""
    assert given() == NONE
    assert answer(lambda: preconditions.check_write(NONE, None, None, creates=True)) == OK
    assert answer(lambda: preconditions.check_read(NONE, TAG, MODIFIED)) == OK
    assert answer(lambda: preconditions.check_source(NONE, TAG, MODIFIED)) == OK
    assert answer(lambda: preconditions.check_source_read(NONE, TAG, MODIFIED)) == OK
    assert answer(lambda: preconditions.check_time_write(NONE, MODIFIED)) == OK


# Append, page


POSITION = Reason.APPEND_POSITION_CONDITION_NOT_MET
SIZE = Reason.MAX_BLOB_SIZE_CONDITION_NOT_MET


@pytest.mark.parametrize(
    ("description", "position", "max_size", "expected"),
    [
        ("none", None, None, OK),
        ("the position is the length", 100, None, OK),
        ("the position is before the end", 99, None, POSITION),
        ("the position is after the end", 101, None, POSITION),
        ("the position is 0, and there is something", 0, None, POSITION),
        ("the size just fits", None, 110, OK),
        ("the size is one too small", None, 109, SIZE),
        ("the blob is larger already", None, 50, SIZE),
        ("both hold", 100, 110, OK),
        ("both fail: the position is reported", 99, 109, POSITION),
    ],
)
def test_appending_ten_bytes_to_a_hundred(
    description: str, position: int | None, max_size: int | None, expected: Reason | str
) -> None:
    assert (
        answer(lambda: preconditions.check_append(100, 10, position=position, max_size=max_size)) == expected
    ), description


SEQUENCE = Reason.SEQUENCE_NUMBER_CONDITION_NOT_MET


@pytest.mark.parametrize(
    ("le", "lt", "eq", "expected"),
    [
        (None, None, None, OK),
        (6, None, None, SEQUENCE),
        (7, None, None, OK),
        (8, None, None, OK),
        (None, 6, None, SEQUENCE),
        (None, 7, None, SEQUENCE),
        (None, 8, None, OK),
        (None, None, 6, SEQUENCE),
        (None, None, 7, OK),
        (None, None, 8, SEQUENCE),
        (0, None, None, SEQUENCE),
        (7, 8, 7, OK),
        (7, 7, 7, SEQUENCE),
    ],
)
def test_a_sequence_number_of_seven(
    le: int | None, lt: int | None, eq: int | None, expected: Reason | str
) -> None:
    assert answer(lambda: preconditions.check_sequence_number(7, le=le, lt=lt, eq=eq)) == expected
