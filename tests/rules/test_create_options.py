"""CREATE: the order of its checks, and the table of dispositions for what exists and what is missing."""

from functools import partial

import pytest

from kyanite.rules import create_options
from kyanite.rules.create_options import Action, CreateTerms, Disposition
from kyanite.rules.refusals import Reason
from tests.rules.refusing import reason_of

TERMS = CreateTerms(0x001F01FF, 0, 7, Disposition.OPEN, 0)
DIRECTORY, FILE, DELETE_ON_CLOSE = 0x1, 0x40, 0x1000
READ_ONLY, HIDDEN, SYSTEM, ARCHIVE = 0x1, 0x2, 0x4, 0x20

# From the first check to the last: what is wrong, and the reason. Of two that are wrong the first counts.
WRONG: list[tuple[dict[str, int], Reason]] = [
    ({"impersonation_level": 4}, Reason.BAD_IMPERSONATION_LEVEL),
    ({"options": 0x00102080}, Reason.NOT_SUPPORTED),
    ({"options": 0xFF000000}, Reason.INVALID_PARAMETER),
    ({"options": DIRECTORY | FILE}, Reason.INVALID_PARAMETER),
    ({"options": DELETE_ON_CLOSE, "desired_access": 0x1}, Reason.INVALID_PARAMETER),
    ({"desired_access": 0}, Reason.ACCESS_DENIED),
    ({"desired_access": 0x0CE0FE00}, Reason.ACCESS_DENIED),
    ({"share_access": 8}, Reason.INVALID_PARAMETER),
    ({"disposition": 6}, Reason.INVALID_PARAMETER),
    ({"file_attributes": 0xFFFF8048}, Reason.INVALID_PARAMETER),
    ({"desired_access": 0x01000000}, Reason.PRIVILEGE_NOT_HELD),
    ({"options": DIRECTORY, "file_attributes": 0x100}, Reason.INVALID_PARAMETER),
    ({"options": DIRECTORY, "disposition": Disposition.OVERWRITE}, Reason.INVALID_PARAMETER),
]


@pytest.mark.parametrize(("wrong", "reason"), WRONG)
def test_what_is_wrong(wrong: dict[str, int], reason: Reason) -> None:
    assert reason_of(lambda: create_options.check(TERMS._replace(**wrong))) is reason


@pytest.mark.parametrize("first", range(len(WRONG)))
def test_the_first_that_is_wrong_counts(first: int) -> None:
    earlier, reason = WRONG[first]
    for later, _ in WRONG[first + 1 :]:
        if not earlier.keys() & later.keys():
            both = TERMS._replace(**earlier, **later)
            assert reason_of(partial(create_options.check, both)) is reason


@pytest.mark.parametrize("bit", [1 << number for number in range(24)])
def test_the_other_options_are_accepted(bit: int) -> None:
    terms = TERMS._replace(options=bit)
    reason = reason_of(lambda: create_options.check(terms))
    assert reason is (Reason.NOT_SUPPORTED if bit & 0x00102080 else None)


# By disposition: what exists as a file, as a directory; what is missing.
TABLE: dict[Disposition, tuple[Action | Reason, Action | Reason, bool]] = {
    Disposition.SUPERSEDE: (Action.SUPERSEDED, Reason.INVALID_PARAMETER, True),
    Disposition.OPEN: (Action.OPENED, Action.OPENED, False),
    Disposition.CREATE: (Reason.PATH_ALREADY_EXISTS, Reason.PATH_ALREADY_EXISTS, True),
    Disposition.OPEN_IF: (Action.OPENED, Action.OPENED, True),
    Disposition.OVERWRITE: (Action.OVERWRITTEN, Reason.INVALID_PARAMETER, False),
    Disposition.OVERWRITE_IF: (Action.OVERWRITTEN, Reason.INVALID_PARAMETER, True),
}


@pytest.mark.parametrize("disposition", TABLE)
@pytest.mark.parametrize("is_directory", [False, True])
def test_dispositions_of_what_exists(disposition: Disposition, is_directory: bool) -> None:
    expected = TABLE[disposition][is_directory]
    terms = TERMS._replace(disposition=disposition)
    found: list[Action] = []
    reason = reason_of(lambda: found.append(create_options.on_existing(terms, is_directory=is_directory)))
    assert (found[0] if found else reason) is expected


@pytest.mark.parametrize("disposition", TABLE)
def test_dispositions_of_what_is_missing(disposition: Disposition) -> None:
    reason = reason_of(lambda: create_options.check_missing(disposition))
    assert reason is (None if TABLE[disposition][2] else Reason.PATH_NOT_FOUND)


@pytest.mark.parametrize(
    ("disposition", "options", "is_directory", "reason"),
    [
        (Disposition.OPEN, DIRECTORY, True, None),
        (Disposition.OPEN, DIRECTORY, False, Reason.NOT_A_DIRECTORY),
        (Disposition.OPEN, FILE, True, Reason.FILE_IS_A_DIRECTORY),
        (Disposition.OPEN, FILE, False, None),
        (Disposition.CREATE, DIRECTORY, False, Reason.PATH_ALREADY_EXISTS),
        (Disposition.CREATE, FILE, True, Reason.FILE_IS_A_DIRECTORY),
        (Disposition.OVERWRITE, FILE, True, Reason.FILE_IS_A_DIRECTORY),
    ],
)
def test_the_kind_that_is_wanted(
    disposition: Disposition, options: int, is_directory: bool, reason: Reason | None
) -> None:
    terms = TERMS._replace(disposition=disposition, options=options)
    assert reason_of(lambda: create_options.on_existing(terms, is_directory=is_directory)) is reason


@pytest.mark.parametrize(
    ("terms", "attributes", "action", "is_directory", "reason"),
    [
        ({"desired_access": 0x2}, READ_ONLY, Action.OPENED, False, Reason.READ_ONLY_ATTRIBUTE),
        ({"desired_access": 0x4}, READ_ONLY, Action.OPENED, False, Reason.READ_ONLY_ATTRIBUTE),
        ({"desired_access": 0x40000000}, READ_ONLY, Action.OPENED, False, Reason.READ_ONLY_ATTRIBUTE),
        ({"desired_access": 0x2}, READ_ONLY, Action.OPENED, True, None),
        ({"desired_access": 0x10081}, READ_ONLY, Action.OPENED, False, None),
        ({"desired_access": 0x02000000}, READ_ONLY, Action.OPENED, False, None),
        ({"desired_access": 0x1}, READ_ONLY, Action.OVERWRITTEN, False, Reason.READ_ONLY_ATTRIBUTE),
        (
            {"options": DELETE_ON_CLOSE},
            READ_ONLY,
            Action.OPENED,
            False,
            Reason.CANNOT_DELETE_FILE_OR_DIRECTORY,
        ),
        (
            {"options": DELETE_ON_CLOSE},
            READ_ONLY,
            Action.OPENED,
            True,
            Reason.CANNOT_DELETE_FILE_OR_DIRECTORY,
        ),
        ({}, HIDDEN, Action.OVERWRITTEN, False, Reason.ACCESS_DENIED),
        ({}, SYSTEM, Action.SUPERSEDED, False, Reason.ACCESS_DENIED),
        ({"file_attributes": HIDDEN}, HIDDEN | SYSTEM, Action.OVERWRITTEN, False, Reason.ACCESS_DENIED),
        ({"file_attributes": HIDDEN | SYSTEM}, HIDDEN, Action.OVERWRITTEN, False, None),
        ({}, HIDDEN | SYSTEM, Action.OPENED, False, None),
    ],
)
def test_what_attributes_forbid(
    terms: dict[str, int], attributes: int, action: Action, is_directory: bool, reason: Reason | None
) -> None:
    wanted = TERMS._replace(**terms)

    def check() -> None:
        create_options.check_attributes(wanted, attributes, action, is_directory=is_directory)

    assert reason_of(check) is reason


@pytest.mark.parametrize(
    ("requested", "of_file", "of_directory"),
    [
        (0, ARCHIVE, 0x10),
        (0x80, ARCHIVE, 0x10),
        (0x10, ARCHIVE, 0x10),
        (READ_ONLY | HIDDEN | SYSTEM, 0x27, 0x17),
        (0x7FB7, 0x3127, 0x3017),
    ],
)
def test_new_attributes(requested: int, of_file: int, of_directory: int) -> None:
    assert create_options.new_attributes(requested, of_directory=False) == of_file
    assert create_options.new_attributes(requested, of_directory=True) == of_directory
