"""The closed list of reasons for which a request can be refused.

A rule or a model transaction raises ``Refused`` with one of these, and perhaps with a detail, which the response shows
to the client. Each service's ``errors.py`` has a table of the responses; a test walks the enum and fails when a service
that can meet a reason has no row for it. Nothing here knows how a protocol formats a refusal.

Beside the detail a refusal may have *facts*: what was asked and what was stored, as values. No response shows them.
They are kept for those who ask later why a request was refused (``model/requests``). A kind of facts is defined beside
the rule that decides.
"""

from enum import Enum, auto

import msgspec

from kyanite.values import ETag


class Reason(Enum):
    # Settings of accounts
    ACCOUNT_REQUIRES_HTTPS = auto()
    KEY_BASED_AUTHENTICATION_NOT_PERMITTED = auto()
    PUBLIC_ACCESS_NOT_PERMITTED = auto()
    SETTING_IS_FIXED = auto()
    # Containers
    CONTAINER_ALREADY_EXISTS = auto()
    CONTAINER_NOT_FOUND = auto()
    # Blobs
    BLOB_ALREADY_EXISTS = auto()
    BLOB_ARCHIVED = auto()
    BLOB_BEING_REHYDRATED = auto()
    BLOB_IS_SEALED = auto()
    BLOB_NOT_FOUND = auto()
    CURRENT_VERSION = auto()
    PERMANENT_DELETE_NOT_ALLOWED = auto()
    INVALID_BLOB_TYPE = auto()
    INVALID_RANGE = auto()
    INVALID_PAGE_RANGE = auto()
    PREVIOUS_SNAPSHOT_NEWER = auto()
    SEQUENCE_NUMBER_INCREMENT_TOO_LARGE = auto()
    SNAPSHOTS_PRESENT = auto()
    TIER_NOT_SUPPORTED = auto()
    INVALID_BLOB_OR_BLOCK = auto()
    INVALID_BLOCK_LIST = auto()
    BLOCK_COUNT_EXCEEDS_LIMIT = auto()
    COPY_ID_MISMATCH = auto()
    COPY_SOURCE_CONDITION_NOT_MET = auto()
    COPY_SOURCE_NOT_AVAILABLE = auto()
    COPY_SOURCE_NOT_FOUND = auto()
    COPY_SOURCE_NOT_MODIFIED = auto()
    COPY_SOURCE_TOO_LARGE = auto()
    NO_PENDING_COPY_OPERATION = auto()
    # Immutability
    BLOB_IMMUTABLE_DUE_TO_LEGAL_HOLD = auto()
    BLOB_IMMUTABLE_DUE_TO_POLICY = auto()
    CONTAINER_HAS_LEGAL_HOLD = auto()
    CONTAINER_IMMUTABILITY_POLICY_LOCKED = auto()
    CONTAINER_IMMUTABLE_STORAGE_WITH_VERSIONING_ENABLED = auto()
    CONTAINER_PROTECTED_FROM_DELETION = auto()
    IMMUTABILITY_DATE_OUT_OF_RANGE = auto()
    IMMUTABILITY_POLICY_DELETE_ON_LOCKED_POLICY = auto()
    IMMUTABILITY_POLICY_LOCKED = auto()
    PROTECTION_CANNOT_CHANGE = auto()
    VERSION_LEVEL_IMMUTABILITY_NOT_ENABLED = auto()
    VERSIONING_NOT_ENABLED = auto()
    # Queues
    QUEUE_ALREADY_EXISTS = auto()
    QUEUE_NOT_FOUND = auto()
    MESSAGE_NOT_FOUND = auto()
    INVISIBLE_UNTIL_EXPIRY = auto()
    INVISIBLE_BEYOND_EXPIRY = auto()
    # Tables
    TABLE_ALREADY_EXISTS = auto()
    TABLE_NOT_FOUND = auto()
    ENTITY_ALREADY_EXISTS = auto()
    ENTITY_NOT_FOUND = auto()
    UPDATE_CONDITION_NOT_SATISFIED = auto()
    KEY_VALUE_TOO_LARGE = auto()
    KEY_OUT_OF_RANGE = auto()
    PROPERTIES_NEED_VALUE = auto()
    PROPERTY_NAME_INVALID = auto()
    PROPERTY_NAME_TOO_LONG = auto()
    PROPERTY_VALUE_TOO_LARGE = auto()
    TOO_MANY_PROPERTIES = auto()
    ENTITY_TOO_LARGE = auto()
    TOO_MANY_CHANGES = auto()
    DIFFERENT_PARTITIONS = auto()
    DUPLICATE_ROW = auto()
    # Shares, directories and files
    SHARE_ALREADY_EXISTS = auto()
    SHARE_NOT_FOUND = auto()
    SHARE_SNAPSHOT_NOT_FOUND = auto()
    SHARE_SNAPSHOT_COUNT_EXCEEDED = auto()
    SHARE_HAS_SNAPSHOTS = auto()
    SHARE_SNAPSHOT_LEASED = auto()
    SHARE_SIZE_LIMIT_REACHED = auto()
    SHARE_PROTOCOL_MISMATCH = auto()
    PREVIOUS_SNAPSHOT_NOT_FOUND = auto()
    FILE_GENERATION_MISMATCH = auto()
    PARENT_NOT_FOUND = auto()
    PATH_NOT_FOUND = auto()
    PATH_ALREADY_EXISTS = auto()
    PATH_TYPE_MISMATCH = auto()
    DIRECTORY_NOT_EMPTY = auto()
    PERMISSION_NOT_FOUND = auto()
    INVALID_PERMISSION = auto()
    # Open handles
    SHARING_VIOLATION = auto()
    DELETE_PENDING = auto()
    FILE_LOCK_CONFLICT = auto()
    READ_ONLY_ATTRIBUTE = auto()
    CANNOT_DELETE_FILE_OR_DIRECTORY = auto()
    NOT_RECURSIVE = auto()
    HANDLE_CLOSED = auto()
    HANDLE_LIMIT_REACHED = auto()
    CLIENT_CACHE_FLUSH_DELAY = auto()
    CREATE_GUID_IN_USE = auto()
    LEASE_KEY_IN_USE = auto()
    LEASE_KEY_NOT_FOUND = auto()
    LOCK_LIMIT_REACHED = auto()
    LOCK_NOT_GRANTED = auto()
    INVALID_LOCK_RANGE = auto()
    # Opening over SMB
    ACCESS_DENIED = auto()
    BAD_IMPERSONATION_LEVEL = auto()
    FILE_IS_A_DIRECTORY = auto()
    INVALID_PARAMETER = auto()
    NOT_A_DIRECTORY = auto()
    NOT_SUPPORTED = auto()
    PATH_OUTSIDE_SHARE = auto()
    PRIVILEGE_NOT_HELD = auto()
    SNAPSHOT_IS_READ_ONLY = auto()
    # Conditions
    CONDITION_NOT_MET = auto()
    NOT_MODIFIED = auto()
    MULTIPLE_CONDITIONS = auto()
    UNSATISFIABLE_CONDITION = auto()
    SOURCE_CONDITION_NOT_MET = auto()
    APPEND_POSITION_CONDITION_NOT_MET = auto()
    MAX_BLOB_SIZE_CONDITION_NOT_MET = auto()
    SEQUENCE_NUMBER_CONDITION_NOT_MET = auto()
    # Lease actions
    LEASE_ALREADY_PRESENT = auto()
    LEASE_ID_MISMATCH_WITH_LEASE_OPERATION = auto()
    LEASE_IS_BREAKING_AND_CANNOT_BE_ACQUIRED = auto()
    LEASE_IS_BREAKING_AND_CANNOT_BE_CHANGED = auto()
    LEASE_IS_BROKEN_AND_CANNOT_BE_RENEWED = auto()
    LEASE_NOT_PRESENT_WITH_LEASE_OPERATION = auto()
    # Using what is or was leased. Services name the resource: LeaseNotPresentWithBlobOperation and so on
    INFINITE_LEASE_DURATION_REQUIRED = auto()
    LEASE_ID_MISMATCH = auto()
    LEASE_ID_MISSING = auto()
    LEASE_LOST = auto()
    LEASE_NOT_PRESENT = auto()
    # Names, metadata and tags
    INVALID_RESOURCE_NAME = auto()
    INVALID_PATH_NAME = auto()
    NAME_LENGTH_OUT_OF_RANGE = auto()
    EMPTY_METADATA_KEY = auto()
    INVALID_METADATA = auto()
    METADATA_TOO_LARGE = auto()
    EMPTY_TAG_NAME = auto()
    DUPLICATE_TAG_NAMES = auto()
    INVALID_TAG = auto()
    TAGS_TOO_LARGE = auto()
    # Access
    AUTHENTICATION_FAILED = auto()
    AUTHORIZATION_FAILURE = auto()
    INVALID_AUTHENTICATION_INFO = auto()
    NO_AUTHENTICATION_INFORMATION = auto()
    RESOURCE_NOT_FOUND = auto()
    PERMISSION_MISMATCH = auto()
    PROTOCOL_MISMATCH = auto()
    RESOURCE_TYPE_MISMATCH = auto()
    SERVICE_MISMATCH = auto()
    SOURCE_IP_MISMATCH = auto()
    UNAUTHORIZED_BLOB_OVERWRITE = auto()
    WRITE_ON_SECONDARY = auto()


class TotalLength(msgspec.Struct, frozen=True):
    """How many bytes the blob or file has whose range was requested."""

    bytes: int


class CurrentETag(msgspec.Struct, frozen=True):
    """The ETag of what was not modified."""

    etag: ETag


class AuthenticationProblem(msgspec.Struct, frozen=True):
    """A sentence on why the caller's signature was not accepted."""

    text: str


class CallerAddress(msgspec.Struct, frozen=True):
    """The address that a token does not allow."""

    address: str


class Explained(msgspec.Struct, frozen=True):
    """A sentence that is more exact than the reason alone."""

    text: str


class Because(msgspec.Struct, frozen=True):
    """Facts that are a sentence: what was wrong, more exactly than clients are told."""

    text: str


class NameFacts(msgspec.Struct, frozen=True):
    """The name that is not allowed or not there, and of what."""

    name: str
    kind: str


class HiddenUntilExpiry(msgspec.Struct, frozen=True):
    """For how many seconds a new message would be hidden: until it expires or longer."""

    seconds: int


class HiddenTooLong(msgspec.Struct, frozen=True):
    """For how many seconds a message would be hidden, and the most that it may be."""

    seconds: int
    maximum: int


Detail = (
    TotalLength
    | CurrentETag
    | AuthenticationProblem
    | CallerAddress
    | Explained
    | HiddenUntilExpiry
    | HiddenTooLong
)


class Refused(Exception):
    """An expected outcome: the request was understood and is not allowed."""

    def __init__(self, reason: Reason, detail: Detail | None = None, facts: object = None) -> None:
        """``facts`` are small and immutable, since they are kept for a while."""
        super().__init__(reason.name)
        self.reason = reason
        self.detail = detail
        self.facts = facts
