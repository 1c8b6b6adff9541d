"""The settings of an account as an operator names them: in the configuration file, and in ``kyanite account``.

Some are kept with the account and obeyed by every request (``AccountSettings``). Others are properties of the Blob
service, which transactions read, and which clients may set as well (``model/settings.py``).
"""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from kyanite.model.accounts import AccountSettings, SasPolicy
from kyanite.rules.account_settings import (
    period_seconds,
    period_text,
    problem_of_days,
    problem_of_kind,
    problem_of_sku,
)
from kyanite.service_properties import DeleteRetention, Retention, ServiceProperties

NO_SAS_POLICY = "none"
_SAS_ACTIONS = {"log": False, "block": True}


class SettingsChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Some settings and their values; the others stay as they are."""

    kind: str | UnsetType = UNSET
    sku: str | UnsetType = UNSET
    shared_key_access: bool | UnsetType = UNSET
    public_access: bool | UnsetType = UNSET
    require_https: bool | UnsetType = UNSET
    sas_policy: str | UnsetType = UNSET
    """``log 1.00:00:00`` or ``block 1.00:00:00``, for a day; or ``none``."""
    last_access_tracking: bool | UnsetType = UNSET
    version_level_immutability: bool | UnsetType = UNSET
    read_only: bool | UnsetType = UNSET
    versioning: bool | UnsetType = UNSET
    blob_soft_delete_days: int | UnsetType = UNSET
    """0 for none."""
    allow_permanent_delete: bool | UnsetType = UNSET
    container_soft_delete_days: int | UnsetType = UNSET

    def given(self) -> dict[str, Any]:
        """The settings that are named, and their values."""
        return {name: value for name, value in msgspec.structs.asdict(self).items() if value is not UNSET}


NO_CHANGE = SettingsChange()
SETTINGS = SettingsChange.__struct_fields__


def problem_of(change: SettingsChange) -> tuple[str, str] | None:
    """The first setting whose value is not honoured, and why."""
    checks: dict[str, Callable[[Any], str | None]] = {
        "kind": problem_of_kind,
        "sku": problem_of_sku,
        "sas_policy": _problem_of_sas_policy,
        "blob_soft_delete_days": problem_of_days,
        "container_soft_delete_days": problem_of_days,
    }
    for name, value in change.given().items():
        problem = checks[name](value) if name in checks else None
        if problem is not None:
            return name, problem
    if change.version_level_immutability is True and change.versioning is False:
        return "version_level_immutability", _NEEDS_VERSIONING
    return None


_NEEDS_VERSIONING = "it needs versioning"


def _problem_of_sas_policy(text: str) -> str | None:
    try:
        _sas_policy(text)
    except ValueError:
        return 'it is "log 1.00:00:00" or "block 1.00:00:00" with days, hours, minutes and seconds, or "none"'
    return None


def _sas_policy(text: str) -> SasPolicy | None:
    if text == NO_SAS_POLICY:
        return None
    action, _, period = text.partition(" ")
    seconds = period_seconds(period)
    if seconds is None or action not in _SAS_ACTIONS:
        raise ValueError(text)
    return SasPolicy(seconds, blocks=_SAS_ACTIONS[action])


def apply(change: SettingsChange, settings: AccountSettings) -> AccountSettings:
    """The settings of the account with those of a change that has no problem."""
    own = {name: value for name, value in change.given().items() if name in AccountSettings.__struct_fields__}
    if "sas_policy" in own:
        own["sas_policy"] = _sas_policy(own["sas_policy"])
    return msgspec.structs.replace(settings, **own)


def apply_to_service(change: SettingsChange, properties: ServiceProperties) -> ServiceProperties:
    """The properties of the Blob service likewise."""
    if change.versioning is not UNSET:
        properties = properties._replace(versioning=change.versioning)
    if change.container_soft_delete_days is not UNSET:
        days = change.container_soft_delete_days
        properties = properties._replace(container_retention=Retention(days or None))
    deletes = properties.delete_retention or DeleteRetention()
    if change.blob_soft_delete_days is not UNSET:
        deletes = deletes._replace(retention=Retention(change.blob_soft_delete_days or None))
    if change.allow_permanent_delete is not UNSET:
        deletes = deletes._replace(allow_permanent_delete=change.allow_permanent_delete)
    if deletes != (properties.delete_retention or DeleteRetention()):
        properties = properties._replace(delete_retention=deletes)
    return properties


def problem_of_both(settings: AccountSettings, properties: ServiceProperties) -> str | None:
    """Why these settings cannot be in force together."""
    if settings.version_level_immutability and not properties.versioning:
        return "version_level_immutability needs versioning"
    return None


def named(settings: AccountSettings, properties: ServiceProperties) -> dict[str, Any]:
    """All settings by the names that operators use."""
    deletes = properties.delete_retention or DeleteRetention()
    containers = properties.container_retention or Retention()
    policy = settings.sas_policy
    values = msgspec.structs.asdict(settings) | {
        "sas_policy": NO_SAS_POLICY
        if policy is None
        else f"{'block' if policy.blocks else 'log'} {period_text(policy.seconds)}",
        "versioning": bool(properties.versioning),
        "blob_soft_delete_days": deletes.retention.days or 0,
        "allow_permanent_delete": deletes.allow_permanent_delete,
        "container_soft_delete_days": containers.days or 0,
    }
    return {name: values[name] for name in SETTINGS}
