"""The responses of the Blob service for each reason and code, beside those that all services share."""

from collections.abc import Mapping

from kyanite.rules.refusals import Reason
from kyanite.services.rest import errors as common
from kyanite.services.rest.context import Resource
from kyanite.services.rest.errors import WireError

_ANYWHERE: Mapping[Reason, WireError] = {
    **common.REASONS,
    **common.LEASE_ACTIONS,
    **common.COPIES,
    Reason.CONTAINER_ALREADY_EXISTS: WireError(
        409, "ContainerAlreadyExists", "The specified container already exists."
    ),
    Reason.CONTAINER_NOT_FOUND: WireError(
        404, "ContainerNotFound", "The specified container does not exist."
    ),
    Reason.BLOB_ALREADY_EXISTS: WireError(409, "BlobAlreadyExists", "The specified blob already exists."),
    Reason.BLOB_ARCHIVED: WireError(
        409, "BlobArchived", "This operation is not permitted on an archived blob."
    ),
    Reason.BLOB_BEING_REHYDRATED: WireError(
        409,
        "BlobBeingRehydrated",
        "This operation is not permitted because the blob is being rehydrated.",
    ),
    Reason.BLOB_IS_SEALED: WireError(
        409,
        "BlobIsSealed",
        "The specified blob is sealed and its contents can't be modified unless the blob is re-created after a "
        "delete.",
    ),
    Reason.BLOB_NOT_FOUND: WireError(404, "BlobNotFound", "The specified blob does not exist."),
    Reason.CURRENT_VERSION: WireError(
        403,
        "OperationNotAllowedOnRootBlob",
        "The current version of a blob cannot be deleted by its version ID.",
    ),
    Reason.PERMANENT_DELETE_NOT_ALLOWED: WireError(
        400,
        "InvalidQueryParameterValue",
        "Only a soft-deleted snapshot or version can be deleted permanently, and only if the account allows it.",
    ),
    Reason.DUPLICATE_TAG_NAMES: WireError(
        400, "DuplicateTagNames", "Two of the tags specified have the same name."
    ),
    Reason.EMPTY_TAG_NAME: WireError(400, "EmptyTagName", "The name of one of the tags specified is empty."),
    Reason.INVALID_TAG: WireError(
        400, "InvalidTag", "The tags specified are invalid. They have characters that are not permitted."
    ),
    Reason.TAGS_TOO_LARGE: WireError(
        400, "TagsTooLarge", "The tags specified exceed the maximum permissible limit."
    ),
    Reason.INVALID_BLOB_TYPE: WireError(
        409, "InvalidBlobType", "The blob type is invalid for this operation."
    ),
    Reason.INVALID_RANGE: WireError(
        416, "InvalidRange", "The range specified is invalid for the current size of the resource."
    ),
    Reason.INVALID_PAGE_RANGE: WireError(416, "InvalidPageRange", "The page range specified is invalid."),
    Reason.PREVIOUS_SNAPSHOT_NEWER: WireError(
        400,
        "PreviousSnapshotCannotBeNewer",
        "The prevsnapshot query parameter value cannot be newer than snapshot query parameter value.",
    ),
    Reason.PREVIOUS_SNAPSHOT_NOT_FOUND: WireError(
        409, "PreviousSnapshotNotFound", "The previous snapshot is not found."
    ),
    Reason.SEQUENCE_NUMBER_INCREMENT_TOO_LARGE: WireError(
        409,
        "SequenceNumberIncrementTooLarge",
        "The sequence number increment cannot be performed because it would result in overflow.",
    ),
    Reason.SNAPSHOTS_PRESENT: WireError(
        409, "SnapshotsPresent", "This operation is not permitted because the blob has snapshots."
    ),
    Reason.TIER_NOT_SUPPORTED: WireError(
        400, "AccessTierNotSupportedForBlobType", "The access tier is not supported for this blob type."
    ),
    Reason.INVALID_BLOB_OR_BLOCK: WireError(
        400, "InvalidBlobOrBlock", "The specified blob or block content is invalid."
    ),
    Reason.INVALID_BLOCK_LIST: WireError(400, "InvalidBlockList", "The specified block list is invalid."),
    Reason.BLOCK_COUNT_EXCEEDS_LIMIT: WireError(
        409,
        "BlockCountExceedsLimit",
        "The block count cannot exceed the maximum limit: 100,000 uncommitted or 50,000 committed blocks.",
    ),
    Reason.BLOB_IMMUTABLE_DUE_TO_POLICY: WireError(
        409,
        "BlobImmutableDueToPolicy",
        "This operation is not permitted because the blob is immutable due to a policy.",
    ),
    Reason.BLOB_IMMUTABLE_DUE_TO_LEGAL_HOLD: WireError(
        409,
        "BlobImmutableDueToLegalHold",
        "This operation is not permitted because the blob is immutable due to one or more legal holds.",
    ),
    Reason.IMMUTABILITY_POLICY_LOCKED: WireError(
        409,
        "BlobImmutableDueToPolicy",
        "The immutability policy of the blob is locked: it can be extended, but not shortened or unlocked.",
    ),
    Reason.IMMUTABILITY_POLICY_DELETE_ON_LOCKED_POLICY: WireError(
        409,
        "ImmutabilityPolicyDeleteOnLockedPolicy",
        "The immutability policy of the blob is locked: it cannot be deleted.",
    ),
    Reason.IMMUTABILITY_DATE_OUT_OF_RANGE: WireError(
        400,
        "InvalidHeaderValue",
        "The end of an immutability policy must be in the future, and not more than 146,000 days away.",
    ),
    Reason.VERSION_LEVEL_IMMUTABILITY_NOT_ENABLED: WireError(
        409,
        "ContainerImmutableStorageWithVersioningNotEnabled",
        "This operation needs version-level immutability, which the container does not have.",
    ),
    Reason.VERSIONING_NOT_ENABLED: WireError(
        409,
        "BlobVersioningNotEnabled",
        "Version-level immutability needs blob versioning, which the account does not have.",
    ),
    Reason.CONTAINER_IMMUTABILITY_POLICY_LOCKED: WireError(
        409,
        "ContainerImmutabilityPolicyLocked",
        "The requested operation is not allowed because the container has a locked immutability policy.",
    ),
    Reason.CONTAINER_HAS_LEGAL_HOLD: WireError(
        409,
        "ContainerHasLegalHold",
        "The requested operation is not allowed because the container has one or more legal holds.",
    ),
    Reason.CONTAINER_IMMUTABLE_STORAGE_WITH_VERSIONING_ENABLED: WireError(
        409,
        "ContainerImmutableStorageWithVersioningEnabled",
        "The requested operation is not allowed because the container has version-level immutability.",
    ),
    Reason.CONTAINER_PROTECTED_FROM_DELETION: WireError(
        409,
        "ContainerProtectedFromDeletion",
        "The requested operation is not allowed because the container has an immutability policy.",
    ),
    Reason.COPY_SOURCE_CONDITION_NOT_MET: WireError(
        412,
        "CannotVerifyCopySource",
        "The condition specified using HTTP conditional header(s) is not met.",
    ),
    Reason.COPY_SOURCE_NOT_MODIFIED: WireError(
        304,
        "CannotVerifyCopySource",
        "The condition specified using HTTP conditional header(s) is not met.",
    ),
    Reason.COPY_SOURCE_NOT_FOUND: WireError(
        404, "CannotVerifyCopySource", "The specified blob does not exist."
    ),
    Reason.MULTIPLE_CONDITIONS: WireError(
        400, "MultipleConditionHeadersNotSupported", "Multiple condition headers are not supported."
    ),
    Reason.COPY_SOURCE_TOO_LARGE: WireError(
        409,
        "CannotVerifyCopySource",
        "The source request body for copy source is too large and exceeds the maximum permissible limit.",
    ),
    Reason.APPEND_POSITION_CONDITION_NOT_MET: WireError(
        412, "AppendPositionConditionNotMet", "The append position condition specified was not met."
    ),
    Reason.MAX_BLOB_SIZE_CONDITION_NOT_MET: WireError(
        412, "MaxBlobSizeConditionNotMet", "The max blob size condition specified was not met."
    ),
    Reason.SEQUENCE_NUMBER_CONDITION_NOT_MET: WireError(
        412, "SequenceNumberConditionNotMet", "The sequence number condition specified was not met."
    ),
    Reason.UNAUTHORIZED_BLOB_OVERWRITE: WireError(
        403, "UnauthorizedBlobOverwrite", "This request is not authorized to perform blob overwrites."
    ),
}


REASONS: Mapping[Resource, Mapping[Reason, WireError]] = {
    Resource.SERVICE: _ANYWHERE,
    Resource.CONTAINER: {**_ANYWHERE, **common.lease_uses("Container", "container")},
    Resource.OBJECT: {**_ANYWHERE, **common.lease_uses("Blob", "blob")},
}

CODES: Mapping[str, WireError] = {
    **common.CODES,
    **{
        error.code: error
        for error in (
            _ANYWHERE[Reason.INVALID_PAGE_RANGE],
            WireError(
                400,
                "InvalidBlockId",
                "The specified block ID is invalid. The block ID must be Base64-encoded.",
            ),
            WireError(400, "BlockListTooLong", "The block list may not contain more than 50,000 blocks."),
            WireError(400, "InvalidBlobTier", "The specified blob tier is invalid."),
            WireError(
                400,
                "InvalidVersionForPageBlobOperation",
                "All operations on page blobs need a newer version.",
            ),
        )
    },
}
