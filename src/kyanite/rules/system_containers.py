"""Containers whose names begin with ``$``: what each is for, and what clients may do with it.

    $root             blobs in it are addressed without a container; otherwise a container as any other
    $web              the files of a static website; otherwise a container as any other
    $logs             what Storage Analytics writes: clients read it and delete blobs in it; it exists once logging has
                      been turned on, and is listed only where system containers are asked for
    $blobchangefeed   what the change feed writes: clients read it; it is never listed

No container can be renamed to one of these names or from one: the name is what makes it what it is.
"""

from collections.abc import Mapping

from kyanite.rules.names import SPECIAL_CONTAINERS
from kyanite.rules.refusals import Explained, Reason, Refused

LOGS = "$logs"
_CHANGE_FEED = "$blobchangefeed"

UNLISTED = frozenset((LOGS, _CHANGE_FEED))
"""What a list of containers does not show."""
NEVER_LISTED = frozenset((_CHANGE_FEED,))
"""What it does not show either when system containers are asked for."""

SERVER_WRITTEN: Mapping[str, frozenset[str]] = {
    LOGS: frozenset(("Delete Blob",)),
    _CHANGE_FEED: frozenset(("Delete Blob", "Delete Container")),
}
"""Containers that the server alone writes, and the operations that write and are allowed to clients all the same.
Without a change feed its container is one that a client made with an earlier version of the server: it may be deleted.
"""


def check_write(container: str, operation: str) -> None:
    """Refuse an operation that writes, if only the server writes this container."""
    allowed = SERVER_WRITTEN.get(container)
    if allowed is not None and operation not in allowed:
        raise Refused(
            Reason.AUTHORIZATION_FAILURE,
            Explained(f"The container {container} is written by the server only."),
        )


def check_rename(source: str, target: str) -> None:
    for name in (source, target):
        if name in SPECIAL_CONTAINERS:
            raise Refused(
                Reason.INVALID_RESOURCE_NAME,
                Explained(f"The container {name} cannot be renamed or replaced."),
            )
