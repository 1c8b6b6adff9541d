"""The window of message ids."""

import pytest

from kyanite.services.smb.connections.credits import CREDITS_MAX, CreditWindow


def test_the_first_id_is_granted() -> None:
    window = CreditWindow()
    assert not window.use(1, 1)
    assert window.use(0, 1)
    assert not window.use(0, 1)
    assert not window.use(1, 1)


def test_ids_in_any_order_and_each_once() -> None:
    window = CreditWindow()
    window.use(0, 1)
    assert window.grant(1, 8) == 8
    for message_id in (3, 1, 8, 2):
        assert window.use(message_id, 1), message_id
        assert not window.use(message_id, 1), message_id
    assert not window.use(9, 1)
    assert window.use(4, 4)
    assert not window.use(7, 1)
    assert window.grant(1, 1) == 1
    assert window.use(9, 1)


@pytest.mark.parametrize(("message_id", "charge"), [(1, 5), (4, 2), (5, 1), (2**63, 1), (1, 65535)])
def test_a_charge_beyond_the_window(message_id: int, charge: int) -> None:
    window = CreditWindow()
    window.use(0, 1)
    window.grant(1, 4)
    assert not window.use(message_id, charge)
    assert window.use(1, 4)


def test_a_charge_that_overlaps_a_used_id() -> None:
    window = CreditWindow()
    window.use(0, 1)
    window.grant(1, 10)
    assert window.use(4, 1)
    assert not window.use(2, 3)
    assert window.use(2, 2)
    assert window.use(1, 1)
    assert window.use(5, 6)


@pytest.mark.parametrize(
    ("charge", "requested", "grants_more", "granted"),
    [
        (1, 0, True, 1),
        (1, 1, True, 1),
        (1, 33, True, 33),
        (16, 1, True, 16),
        (16, 33, True, 48),
        (1, 65535, True, CREDITS_MAX),
        (1, 8192, False, 1),
    ],
)
def test_what_is_granted(charge: int, requested: int, grants_more: bool, granted: int) -> None:
    window = CreditWindow()
    window.use(0, 1)
    window.grant(1, charge)
    assert window.use(1, charge)
    assert window.grant(charge, requested, grants_more=grants_more) == granted


def test_a_skipped_id_stops_the_window_and_leaves_the_client_one_credit() -> None:
    window = CreditWindow()
    window.use(0, 1)
    window.grant(1, CREDITS_MAX)
    granted = 0
    for message_id in range(2, CREDITS_MAX + 1):
        assert window.use(message_id, 1)
        granted += window.grant(1, 1)
    assert granted == 0
    assert not window.use(CREDITS_MAX + 1, 1)
    assert window.use(1, 1)
    assert window.grant(1, CREDITS_MAX) == CREDITS_MAX


def test_a_client_is_never_without_credits() -> None:
    window = CreditWindow()
    assert window.use(0, 1)
    for message_id in range(1, 100):
        assert window.grant(0, 0) == 1
        assert window.use(message_id, 1)
