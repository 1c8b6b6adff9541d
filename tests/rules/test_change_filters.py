"""Which kinds of change a modification is."""

from typing import Any, NamedTuple

import pytest

from kyanite.rules.change_filters import Filter, of_modification, of_name


class Described(NamedTuple):
    attributes: int = 0x20
    length: int = 10
    content: object = b"a"
    last_write_at: int = 1
    created_at: int = 1
    permission: bytes = b"p"


@pytest.mark.parametrize(
    ("change", "kinds"),
    [
        ({}, 0),
        ({"attributes": 0x22}, Filter.ATTRIBUTES),
        ({"length": 11}, Filter.SIZE),
        ({"last_write_at": 2}, Filter.LAST_WRITE),
        ({"content": b"b"}, Filter.LAST_WRITE),
        ({"created_at": 2}, Filter.CREATION),
        ({"permission": b"q"}, Filter.SECURITY),
        ({"length": 11, "last_write_at": 2, "content": b"b"}, Filter.SIZE | Filter.LAST_WRITE),
    ],
)
def test_a_modification_is_of_the_kinds_of_what_differs(change: dict[str, Any], kinds: int) -> None:
    assert of_modification(Described(), Described()._replace(**change)) == kinds


def test_names_of_files_and_directories_are_filtered_apart() -> None:
    assert of_name(is_directory=False) == 1
    assert of_name(is_directory=True) == 2
