"""Which settings of a storage account are honoured, and what they mean for a request.

Azure has more kinds and skus of accounts. Those that would behave differently from what this server does are refused.
"""

import re

from kyanite.values import TICKS_PER_SECOND, Instant

KIND = "StorageV2"
_READABLE_SECONDARY: dict[str, bool] = {
    "Standard_LRS": False,
    "Standard_ZRS": False,
    "Standard_GRS": False,
    "Standard_RAGRS": True,
    "Standard_GZRS": False,
    "Standard_RAGZRS": True,
}
"""By sku: whether clients may read from the secondary location."""

SOFT_DELETE_DAYS_MAX = 365

NOT_HONOURED = {
    "hierarchical_namespace": "this version has no Data Lake",
    "change_feed": "this version writes no change feed",
    "encryption_scopes": "this version has no encryption scopes",
}
"""Settings that Azure has and this server does not, and why."""

_PERIOD = re.compile(r"(?:([0-9]{1,5})\.)?([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9])", re.ASCII)


def problem_of_kind(kind: str) -> str | None:
    """Why an account cannot be of this kind."""
    return (
        None
        if kind == KIND
        else f"accounts of the kind {kind} would behave differently: only {KIND} is there"
    )


def problem_of_sku(sku: str) -> str | None:
    if sku in _READABLE_SECONDARY:
        return None
    return f"accounts with {sku} would behave differently: there are {', '.join(_READABLE_SECONDARY)}"


def problem_of_days(days: int) -> str | None:
    """Of a retention, where 0 is none."""
    if 0 <= days <= SOFT_DELETE_DAYS_MAX:
        return None
    return f"a retention is 1 to {SOFT_DELETE_DAYS_MAX} days, or 0 for none"


def has_readable_secondary(sku: str) -> bool:
    return _READABLE_SECONDARY.get(sku, False)


def period_seconds(text: str) -> int | None:
    """Of ``days.hours:minutes:seconds``, as Azure has it, such as ``1.12:00:00``. None for what is no such period."""
    match = _PERIOD.fullmatch(text)
    if match is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds or None


def period_text(seconds: int) -> str:
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"{days}.{hours:02}:{minutes:02}:{seconds:02}"


def is_valid_for_too_long(
    seconds_max: int, starts_at: Instant | None, expires_at: Instant, now: Instant
) -> bool:
    """Whether a shared access signature is valid for longer than a policy of its account recommends.

    One without a start is valid from when it was made, which is not known: at least from now on.
    """
    return expires_at - (now if starts_at is None else starts_at) > seconds_max * TICKS_PER_SECOND
