"""What a rule answers, as a value."""

from collections.abc import Callable

from kyanite.rules.refusals import Reason, Refused


def reason_of(check: Callable[[], object]) -> Reason | None:
    """Why the check refuses, or None when it does not."""
    try:
        check()
    except Refused as refused:
        return refused.reason
    return None
