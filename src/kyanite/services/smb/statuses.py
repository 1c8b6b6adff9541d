"""The NTSTATUS for each reason to refuse (the table of Azure's and Windows' codes for the same situations)."""

from collections.abc import Mapping

from kyanite.rules.refusals import Reason
from kyanite.wire.smb2.status import Status

STATUSES: Mapping[Reason, Status] = {
    Reason.SHARE_NOT_FOUND: Status.NETWORK_NAME_DELETED,
    Reason.SHARE_SNAPSHOT_NOT_FOUND: Status.OBJECT_NAME_NOT_FOUND,
    Reason.SHARE_SIZE_LIMIT_REACHED: Status.DISK_FULL,
    Reason.PARENT_NOT_FOUND: Status.OBJECT_PATH_NOT_FOUND,
    Reason.PATH_NOT_FOUND: Status.OBJECT_NAME_NOT_FOUND,
    Reason.PATH_ALREADY_EXISTS: Status.OBJECT_NAME_COLLISION,
    Reason.INVALID_PATH_NAME: Status.OBJECT_NAME_INVALID,
    Reason.DIRECTORY_NOT_EMPTY: Status.DIRECTORY_NOT_EMPTY,
    Reason.INVALID_PERMISSION: Status.INVALID_PARAMETER,
    Reason.SHARING_VIOLATION: Status.SHARING_VIOLATION,
    Reason.DELETE_PENDING: Status.DELETE_PENDING,
    Reason.CANNOT_DELETE_FILE_OR_DIRECTORY: Status.CANNOT_DELETE,
    Reason.READ_ONLY_ATTRIBUTE: Status.ACCESS_DENIED,
    Reason.FILE_LOCK_CONFLICT: Status.FILE_LOCK_CONFLICT,
    Reason.LOCK_NOT_GRANTED: Status.LOCK_NOT_GRANTED,
    Reason.INVALID_LOCK_RANGE: Status.INVALID_LOCK_RANGE,
    Reason.LOCK_LIMIT_REACHED: Status.INSUFFICIENT_RESOURCES,
    Reason.HANDLE_CLOSED: Status.FILE_CLOSED,
    Reason.HANDLE_LIMIT_REACHED: Status.INSUFFICIENT_RESOURCES,
}
