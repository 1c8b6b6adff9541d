"""Attributes by their names."""

import pytest

from kyanite.rules import file_attributes
from kyanite.rules.file_attributes import Attributes, read, text_of

A = Attributes


@pytest.mark.parametrize(
    ("text", "attributes"),
    [
        ("None", A.NORMAL),
        ("ReadOnly", A.READ_ONLY),
        ("readonly|HIDDEN", A.READ_ONLY | A.HIDDEN),
        ("Archive | System", A.ARCHIVE | A.SYSTEM),
        ("Temporary|Offline|NotContentIndexed|NoScrubData", A(0x100 | 0x1000 | 0x2000 | 0x20000)),
    ],
)
def test_a_list_of_names_is_read(text: str, attributes: Attributes) -> None:
    assert read(text, of_directory=False) == attributes


@pytest.mark.parametrize("text", ["", "|", "Bogus", "ReadOnly|", "None|Hidden", "Directory", "0x1"])
def test_other_lists_are_not(text: str) -> None:
    assert read(text, of_directory=False) is None


def test_a_directory_is_always_one() -> None:
    assert read("None", of_directory=True) == A.DIRECTORY
    assert read("Hidden", of_directory=True) == A.DIRECTORY | A.HIDDEN
    assert read("Directory|ReadOnly", of_directory=True) == A.DIRECTORY | A.READ_ONLY
    assert read("Directory|Directory", of_directory=True) == A.DIRECTORY
    assert read("Temporary", of_directory=True) is None


def test_they_are_formatted_by_their_names() -> None:
    assert text_of(A.ARCHIVE) == "Archive"
    assert text_of(A.NORMAL) == text_of(0) == "None"
    assert text_of(A.READ_ONLY | A.DIRECTORY) == "ReadOnly | Directory"
    assert read(text_of(A.READ_ONLY | A.HIDDEN | A.ARCHIVE), of_directory=False) == A(0x23)


@pytest.mark.parametrize(
    ("wanted", "of_file", "of_directory"),
    [
        (0x80, 0x80, 0x10),
        (0x21, 0x21, 0x31),
        (0x80 | 0x2, 0x2, 0x12),
        (0x10, None, 0x10),
        (0x100, 0x100, None),
        (0x20000 | 0x3000, 0x23000, 0x23010),
        (0x4A00, 0x80, 0x10),
    ],
)
def test_attributes_that_smb_clients_set(wanted: int, of_file: int | None, of_directory: int | None) -> None:
    assert file_attributes.changed(wanted, of_directory=False) == of_file
    assert file_attributes.changed(wanted, of_directory=True) == of_directory
