"""Limits that grew from version to version."""

from collections.abc import Sequence

from kyanite.wire.malformed import Malformed


def check_body_length(version: str, length: int, limits: Sequence[tuple[str, int]]) -> None:
    """Refuse a body that is longer than its version allows; ``limits`` are (since, most), the newest first."""
    most = most_of(version, limits)
    if length > most:
        raise Malformed("RequestBodyTooLarge", MaxLimit=str(most))


def most_of(version: str, limits: Sequence[tuple[str, int]]) -> int:
    """What a version allows."""
    return next(most for since, most in limits if version >= since)
