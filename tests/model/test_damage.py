"""Damage that requests meet is counted each time and logged once in a while."""

import pytest

from kyanite.engine.api import Damaged
from kyanite.model import damage
from kyanite.model.damage import DamageReports


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_each_damage_is_logged_once_in_ten_minutes(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    reports = DamageReports(clock)
    for moment in (0, 1, 599, 600, 601, 1300):
        clock.now = moment
        reports.add(Damaged("Block 3 is damaged."), request_id=moment)
    assert reports.reads == 6
    assert [(each.getMessage(), vars(each)["request_id"]) for each in caplog.records] == [
        ("damaged", 0),
        ("damaged", 600),
        ("damaged", 1300),
    ]
    assert vars(caplog.records[0])["damage"] == "Block 3 is damaged."
    reports.add(Damaged("Block 4 is damaged."))
    assert len(caplog.records) == 4


def test_what_is_remembered_is_bounded(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(damage, "_REMEMBERED", 2)
    reports = DamageReports(Clock())
    for name in ("a", "b", "c", "a", "c"):
        reports.add(Damaged(name))
    assert [vars(each)["damage"] for each in caplog.records] == ["a", "b", "c", "a"]
