"""The responses of the File service for each reason and code, beside those that all services share."""

from collections.abc import Mapping

from kyanite.rules.refusals import Reason
from kyanite.services.rest import errors as common
from kyanite.services.rest.context import Resource
from kyanite.services.rest.errors import WireError

_ANYWHERE: Mapping[Reason, WireError] = {
    **common.REASONS,
    **common.LEASE_ACTIONS,
    **common.COPIES,
    Reason.SHARE_ALREADY_EXISTS: WireError(409, "ShareAlreadyExists", "The specified share already exists."),
    Reason.SHARE_NOT_FOUND: WireError(404, "ShareNotFound", "The specified share does not exist."),
    Reason.SHARE_SNAPSHOT_NOT_FOUND: WireError(
        404, "ShareSnapshotNotFound", "The specified share snapshot does not exist."
    ),
    Reason.SHARE_SNAPSHOT_COUNT_EXCEEDED: WireError(
        409, "ShareSnapshotCountExceeded", "The total number of snapshots for the share is over the limit."
    ),
    Reason.SHARE_HAS_SNAPSHOTS: WireError(
        409,
        "ShareHasSnapshots",
        "The share has snapshots and the operation requires no snapshots.",
    ),
    Reason.SHARE_SNAPSHOT_LEASED: WireError(
        409,
        "DeleteShareWhenSnapshotLeased",
        "Unable to delete share because one or more share snapshots have active leases.",
    ),
    Reason.SHARE_SIZE_LIMIT_REACHED: WireError(
        409, "ShareSizeLimitReached", "The share size limit has been reached."
    ),
    Reason.SHARE_PROTOCOL_MISMATCH: WireError(
        400, "InvalidInput", "The operation is not supported by shares of this protocol."
    ),
    Reason.PREVIOUS_SNAPSHOT_NOT_FOUND: WireError(
        409, "PreviousSnapshotNotFound", "The previous snapshot is not found."
    ),
    Reason.PREVIOUS_SNAPSHOT_NEWER: WireError(
        400, "PreviousSnapshotCannotBeNewer", "The prevsharesnapshot query parameter cannot be newer."
    ),
    Reason.FILE_GENERATION_MISMATCH: WireError(
        409, "FileGenerationMismatch", "The file has been recreated since the previous snapshot was taken."
    ),
    Reason.PARENT_NOT_FOUND: WireError(404, "ParentNotFound", "The specified parent path does not exist."),
    Reason.PATH_NOT_FOUND: common.REASONS[Reason.RESOURCE_NOT_FOUND],
    Reason.PATH_ALREADY_EXISTS: WireError(
        409, "ResourceAlreadyExists", "The specified resource already exists."
    ),
    Reason.PATH_TYPE_MISMATCH: WireError(
        409,
        "ResourceTypeMismatch",
        "The specified resource type does not match the type of the existing resource.",
    ),
    Reason.DIRECTORY_NOT_EMPTY: WireError(409, "DirectoryNotEmpty", "The specified directory is not empty."),
    Reason.PERMISSION_NOT_FOUND: WireError(
        400, "FileInvalidPermissionKey", "The specified file permission key does not exist in the share."
    ),
    Reason.INVALID_PERMISSION: WireError(
        400, "FileInvalidPermission", "The specified file permission is not valid."
    ),
    Reason.SHARING_VIOLATION: WireError(
        409, "SharingViolation", "The specified resource may be in use by an SMB client."
    ),
    # The list of codes calls it DeletePending; the article on concurrency, which wins, SMBDeletePending.
    Reason.DELETE_PENDING: WireError(
        409, "SMBDeletePending", "The specified resource is marked for deletion by an SMB client."
    ),
    Reason.FILE_LOCK_CONFLICT: WireError(
        409, "FileLockConflict", "A portion of the specified file is locked by an SMB client."
    ),
    # The page on locks says 412; the list of codes, and what clients have seen, 409.
    Reason.READ_ONLY_ATTRIBUTE: WireError(
        409, "ReadOnlyAttribute", "The specified resource is read-only and cannot be modified at this time."
    ),
    Reason.CANNOT_DELETE_FILE_OR_DIRECTORY: WireError(
        409,
        "CannotDeleteFileOrDirectory",
        "The file or directory could not be deleted because it is in use by an SMB client.",
    ),
    Reason.NOT_RECURSIVE: WireError(
        400, "InvalidHeaderValue", "A file has no handles below it: x-ms-recursive is for directories."
    ),
    Reason.INVALID_PATH_NAME: WireError(
        400, "InvalidFileOrDirectoryPathName", "The specified file or directory path name is invalid."
    ),
    Reason.INVALID_RANGE: WireError(
        416, "InvalidRange", "The range specified is invalid for the current size of the resource."
    ),
    Reason.COPY_SOURCE_NOT_FOUND: WireError(
        404, "CannotVerifyCopySource", "The specified resource does not exist."
    ),
}

REASONS: Mapping[Resource, Mapping[Reason, WireError]] = {
    Resource.SERVICE: _ANYWHERE,
    Resource.CONTAINER: {**_ANYWHERE, **common.lease_uses("Share", "share")},
    Resource.OBJECT: {**_ANYWHERE, **common.lease_uses("File", "file")},
}

CODES: Mapping[str, WireError] = {
    **common.CODES,
    "FileShareProvisionedIopsInvalid": WireError(
        400, "FileShareProvisionedIopsInvalid", "The specified provisioned IOPS is not valid for the share."
    ),
    "FileShareProvisionedBandwidthInvalid": WireError(
        400,
        "FileShareProvisionedBandwidthInvalid",
        "The specified provisioned bandwidth is not valid for the share.",
    ),
}
