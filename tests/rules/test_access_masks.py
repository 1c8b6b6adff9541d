"""Access masks: generic rights, the most that can be granted, and what share modes know of a mask."""

import pytest

from kyanite.rules import access_masks
from kyanite.rules.share_modes import Rights

READ, WRITE, DELETE = Rights.READ, Rights.WRITE, Rights.DELETE


@pytest.mark.parametrize(
    ("desired", "granted", "of_read_only"),
    [
        (0x80000000, 0x00120089, 0x00120089),
        (0x40000000, 0x00120116, 0x00120116),
        (0x20000000, 0x001200A0, 0x001200A0),
        (0x10000000, 0x001F01FF, 0x001F01FF),
        (0xE0000000, 0x001201BF, 0x001201BF),
        (0x02000000, 0x001F01FF, 0x001F01F9),
        (0x02000002, 0x001F01FF, 0x001F01FB),
        (0x80010000, 0x00130089, 0x00130089),
        (0x00000001, 0x00000001, 0x00000001),
        (0, 0, 0),
    ],
)
def test_granted(desired: int, granted: int, of_read_only: int) -> None:
    assert access_masks.granted(desired) == granted
    assert access_masks.granted(desired, is_read_only=True) == of_read_only


@pytest.mark.parametrize(
    ("mask", "rights"),
    [
        (0x1, READ),
        (0x20, READ),
        (0x2, WRITE),
        (0x4, WRITE),
        (0x10000, DELETE),
        (0x10007, READ | WRITE | DELETE),
        (0x0012019F, READ | WRITE),
        (0x001F01FF, READ | WRITE | DELETE),
        # EAs, attributes, children, the descriptor, and waiting for the handle.
        (0x8 | 0x10 | 0x40 | 0x80 | 0x100 | 0x20000 | 0x40000 | 0x80000 | 0x100000, Rights.NONE),
        (0, Rights.NONE),
    ],
)
def test_rights_of_a_mask(mask: int, rights: Rights) -> None:
    assert access_masks.rights_of(mask) is rights


def test_sharing_has_the_bits_of_rights() -> None:
    assert [access_masks.sharing_of(number) for number in (0, 1, 2, 4, 7)] == [
        Rights.NONE,
        READ,
        WRITE,
        DELETE,
        READ | WRITE | DELETE,
    ]
