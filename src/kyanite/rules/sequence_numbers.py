"""The sequence number of a page blob: how a client may change it."""

from enum import Enum

import msgspec

from kyanite.rules.refusals import Reason, Refused

LARGEST = 2**63 - 1


class Action(Enum):
    UPDATE = "update"
    """Take the given number."""
    MAX = "max"
    """Take the given number if it is larger."""
    INCREMENT = "increment"
    """Count up by one."""


class Change(msgspec.Struct, frozen=True):
    action: Action
    number: int = 0
    """The given number; ``increment`` has none."""


def apply(current: int, change: Change) -> int:
    if change.action is Action.UPDATE:
        return change.number
    if change.action is Action.MAX:
        return max(current, change.number)
    if current == LARGEST:
        raise Refused(Reason.SEQUENCE_NUMBER_INCREMENT_TOO_LARGE)
    return current + 1
