"""The reasons for which an open handle refuses something to others."""

from kyanite.rules.refusals import Reason

CONFLICTS = frozenset(
    (
        Reason.ACCESS_DENIED,
        Reason.CANNOT_DELETE_FILE_OR_DIRECTORY,
        Reason.DELETE_PENDING,
        Reason.FILE_LOCK_CONFLICT,
        Reason.HANDLE_LIMIT_REACHED,
        Reason.LOCK_NOT_GRANTED,
        Reason.SHARING_VIOLATION,
    )
)
