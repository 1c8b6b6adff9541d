"""Settings as operators name them, and what they are stored as."""

import msgspec
import pytest

from kyanite.model.accounts import DEFAULT_SETTINGS, AccountSettings, SasPolicy
from kyanite.server.accounts.settings import (
    SETTINGS,
    SettingsChange,
    apply,
    apply_to_service,
    named,
    problem_of,
    problem_of_both,
)
from kyanite.service_properties import INITIAL, DeleteRetention, Retention

DEFAULTS = {
    "kind": "StorageV2",
    "sku": "Standard_RAGRS",
    "shared_key_access": True,
    "public_access": True,
    "require_https": False,
    "sas_policy": "none",
    "last_access_tracking": False,
    "version_level_immutability": False,
    "read_only": False,
    "versioning": False,
    "blob_soft_delete_days": 0,
    "allow_permanent_delete": False,
    "container_soft_delete_days": 0,
}


def test_defaults() -> None:
    assert named(DEFAULT_SETTINGS, INITIAL) == DEFAULTS
    assert set(DEFAULTS) == set(SETTINGS)


@pytest.mark.parametrize("name", SETTINGS)
def test_each_setting_is_stored_where_it_is_read(name: str) -> None:
    others: dict[str, object] = {
        "kind": "StorageV2",
        "sku": "Standard_LRS",
        "sas_policy": "block 2.03:04:05",
        "blob_soft_delete_days": 7,
        "container_soft_delete_days": 365,
    }
    value = others.get(name, not DEFAULTS[name])
    change = msgspec.convert({name: value}, SettingsChange)
    assert problem_of(change) is None
    after = named(apply(change, DEFAULT_SETTINGS), apply_to_service(change, INITIAL))
    assert after == DEFAULTS | {name: value}
    back = msgspec.convert({name: DEFAULTS[name]}, SettingsChange)
    settings = apply(back, apply(change, DEFAULT_SETTINGS))
    assert named(settings, apply_to_service(back, apply_to_service(change, INITIAL))) == DEFAULTS


def test_a_change_leaves_the_rest() -> None:
    change = SettingsChange(blob_soft_delete_days=7)
    both = apply_to_service(SettingsChange(allow_permanent_delete=True), apply_to_service(change, INITIAL))
    assert both.delete_retention == DeleteRetention(Retention(7), allow_permanent_delete=True)
    assert apply_to_service(SettingsChange(sku="Standard_LRS"), INITIAL) is INITIAL
    assert apply(SettingsChange(sas_policy="log 00:00:10"), DEFAULT_SETTINGS).sas_policy == SasPolicy(10)


@pytest.mark.parametrize(
    ("change", "setting"),
    [
        (SettingsChange(kind="FileStorage"), "kind"),
        (SettingsChange(sku="Premium_LRS"), "sku"),
        (SettingsChange(sas_policy="forbid 1.00:00:00"), "sas_policy"),
        (SettingsChange(sas_policy="log"), "sas_policy"),
        (SettingsChange(sas_policy="log 00:00:00"), "sas_policy"),
        (SettingsChange(sas_policy=""), "sas_policy"),
        (SettingsChange(blob_soft_delete_days=366), "blob_soft_delete_days"),
        (SettingsChange(container_soft_delete_days=-1), "container_soft_delete_days"),
        (SettingsChange(version_level_immutability=True, versioning=False), "version_level_immutability"),
    ],
)
def test_what_is_not_honoured(change: SettingsChange, setting: str) -> None:
    problem = problem_of(change)
    assert problem is not None
    assert problem[0] == setting


def test_version_level_immutability_needs_versioning() -> None:
    settings = AccountSettings(version_level_immutability=True)
    assert problem_of_both(settings, INITIAL) == "version_level_immutability needs versioning"
    assert problem_of_both(settings, INITIAL._replace(versioning=True)) is None
    assert problem_of_both(DEFAULT_SETTINGS, INITIAL) is None
