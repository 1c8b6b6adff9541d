"""The shapes of the requests to the Blob service."""

from kyanite.services.blob.service import DEFINITION
from tests.services.fuzzing.shapes.shape import CONDITIONS, Shape

OPERATIONS = DEFINITION.operations

_META = "x-ms-meta-name x-ms-meta-Other_1"
_WRITE = f"{CONDITIONS} x-ms-lease-id x-ms-if-tags x-ms-encryption-scope"
_CONTENT = (
    "x-ms-blob-content-type x-ms-blob-content-encoding x-ms-blob-content-language x-ms-blob-content-disposition "
    "x-ms-blob-cache-control"
)
_PROTECTION = "x-ms-immutability-policy-until-date x-ms-immutability-policy-mode x-ms-legal-hold"
_NEW = (
    f"{_WRITE} {_META} {_CONTENT} {_PROTECTION} x-ms-tags content-type content-encoding content-language "
    "cache-control"
)
_SOURCE = (
    "x-ms-source-if-match x-ms-source-if-none-match x-ms-source-if-modified-since x-ms-source-if-unmodified-since "
    "x-ms-source-if-tags x-ms-source-content-md5 x-ms-source-content-crc64"
)
_OF_TAGS = (
    "x-ms-blob-if-match x-ms-blob-if-none-match x-ms-blob-if-modified-since x-ms-blob-if-unmodified-since "
    "x-ms-if-tags x-ms-lease-id"
)
_SEQUENCE = "x-ms-if-sequence-number-le x-ms-if-sequence-number-lt x-ms-if-sequence-number-eq"
_HASHES = "content-md5 x-ms-content-crc64"
_LIST = "?prefix ?marker ?maxresults"
_LEASE = "x-ms-proposed-lease-id x-ms-lease-id"
_ANY = "/{container}/{blob}"
_PROTECTED = "/{vault}/{blob}"
_BLOCK, _APPEND, _PAGE = "/{container}/{block_blob}", "/{container}/{append_blob}", "/{container}/{page_blob}"

SHAPES = {
    "List Containers": Shape("/", may=f"{_LIST} ?include:container-include"),
    "Set Blob Service Properties": Shape("/", body="blob_properties"),
    "Get Blob Service Properties": Shape("/", weight=2),
    "Get Blob Service Stats": Shape("-secondary/"),
    "Get User Delegation Key": Shape("/", "x-ms-version=2026-10-06", body="key_info", weight=0.4),
    "Get Account Information @service": Shape("/", weight=0.4),
    "Get Account Information @container": Shape("/{container}", weight=0.4),
    "Get Account Information @object": Shape(_ANY, weight=0.4),
    "Find Blobs by Tags @service": Shape(
        "/", needs="?where", may="?marker ?maxresults ?include:find-include"
    ),
    "Find Blobs by Tags @container": Shape("/{container}", needs="?where", may="?marker ?maxresults"),
    "Blob Batch @service": Shape("/", body="blob_batch"),
    "Blob Batch @container": Shape("/box", body="blob_batch"),
    "Create Container": Shape(
        "/{container}",
        may=f"x-ms-blob-public-access {_META} x-ms-default-encryption-scope x-ms-deny-encryption-scope-override",
        weight=2,
    ),
    "Get Container Properties": Shape("/{container}", may="x-ms-lease-id"),
    "Delete Container": Shape(
        "/{spare}", may="x-ms-lease-id if-modified-since if-unmodified-since", weight=0.3
    ),
    "Get Container Metadata": Shape("/{container}", may="x-ms-lease-id"),
    "Set Container Metadata": Shape("/{container}", may=f"{_META} x-ms-lease-id if-modified-since"),
    "Get Container ACL": Shape("/{container}", may="x-ms-lease-id"),
    "Set Container ACL": Shape(
        "/{container}",
        may="x-ms-blob-public-access x-ms-lease-id if-modified-since if-unmodified-since",
        body="acl",
    ),
    "List Blobs": Shape(
        "/{container}",
        may=f"{_LIST} ?delimiter ?include:blob-include ?include:missing-include ?startfrom ?endbefore",
    ),
    "Lease Container [x-ms-lease-action: break]": Shape(
        "/{container}", may=f"x-ms-lease-break-period {_LEASE}"
    ),
    "Lease Container": Shape(
        "/{container}",
        needs=f"x-ms-lease-action x-ms-lease-duration {_LEASE}",
        may="if-modified-since if-unmodified-since",
    ),
    "Restore Container": Shape(
        "/{spare}", needs="x-ms-deleted-container-name x-ms-deleted-container-version", weight=0.6
    ),
    "Rename Container": Shape(
        "/{spare}", needs="x-ms-source-container-name", may="x-ms-source-lease-id", weight=0.6
    ),
    "Copy Blob From URL": Shape(
        _ANY,
        needs="x-ms-copy-source",
        may=f"{_WRITE} {_META} {_SOURCE} x-ms-access-tier x-ms-tags x-ms-copy-source-tag-option",
    ),
    "Put Blob From URL": Shape(
        _BLOCK,
        needs="x-ms-copy-source x-ms-blob-type",
        may=f"{_NEW} {_SOURCE} x-ms-copy-source-blob-properties x-ms-access-tier content-md5 "
        "x-ms-copy-source-tag-option",
    ),
    "Copy Blob": Shape(
        _ANY,
        needs="x-ms-copy-source",
        may=f"{_WRITE} {_META} {_SOURCE} x-ms-access-tier x-ms-rehydrate-priority x-ms-seal-blob x-ms-tags",
    ),
    "Put Blob [x-ms-blob-type: PageBlob]": Shape(
        _PAGE,
        needs="x-ms-blob-content-length",
        may=f"{_NEW} x-ms-blob-sequence-number x-ms-access-tier",
        body="nothing",
        weight=2,
    ),
    "Put Blob [x-ms-blob-type: AppendBlob]": Shape(_APPEND, may=_NEW, body="nothing", weight=2),
    "Put Blob": Shape(
        _BLOCK,
        needs="x-ms-blob-type",
        may=f"{_NEW} {_HASHES} x-ms-blob-content-md5 x-ms-access-tier",
        body="upload",
        weight=4,
    ),
    "Get Blob": Shape(
        _ANY,
        may=f"{CONDITIONS} x-ms-lease-id range x-ms-range x-ms-range-get-content-md5 x-ms-range-get-content-crc64 "
        "?snapshot x-ms-structured-body ?versionid x-ms-if-tags",
        weight=3,
    ),
    "Get Blob Properties": Shape(_ANY, may=f"{CONDITIONS} x-ms-lease-id ?snapshot ?versionid"),
    "Delete Blob [?deletetype]": Shape(_ANY, needs="?deletetype", may="?snapshot ?versionid", weight=0.3),
    "Delete Blob [?versionid]": Shape(_ANY, needs="?versionid", may=f"{_WRITE} x-ms-delete-snapshots"),
    "Delete Blob": Shape(
        _ANY,
        may=f"{_WRITE} x-ms-delete-snapshots x-ms-delete-snapshots ?snapshot "
        "x-ms-access-tier-if-modified-since x-ms-access-tier-if-unmodified-since",
        weight=0.5,
    ),
    "Get Blob Metadata": Shape(_ANY, may=f"{CONDITIONS} x-ms-lease-id ?snapshot ?versionid"),
    "Set Blob Metadata": Shape(_ANY, may=f"{_WRITE} {_META}"),
    "Set Blob Properties [x-ms-blob-content-length]": Shape(_PAGE, may=f"{_WRITE} {_CONTENT}"),
    "Set Blob Properties [x-ms-sequence-number-action]": Shape(
        _PAGE, needs="x-ms-blob-sequence-number", may=_WRITE
    ),
    "Set Blob Properties": Shape(_ANY, may=f"{_WRITE} {_CONTENT} x-ms-blob-content-md5"),
    "Lease Blob [x-ms-lease-action: break]": Shape(_ANY, may=f"x-ms-lease-break-period {CONDITIONS}"),
    "Lease Blob": Shape(
        _ANY, needs=f"x-ms-lease-action x-ms-lease-duration {_LEASE}", may=f"{CONDITIONS} x-ms-if-tags"
    ),
    "Snapshot Blob": Shape(_ANY, may=f"{_WRITE} {_META}"),
    "Abort Copy Blob": Shape(_ANY, needs="?copyid x-ms-copy-action", may="x-ms-lease-id"),
    "Set Blob Tier": Shape(
        _BLOCK,
        needs="x-ms-access-tier",
        may="x-ms-rehydrate-priority x-ms-lease-id x-ms-if-tags ?snapshot ?versionid",
        weight=0.5,
    ),
    "Undelete Blob": Shape(_ANY, may="?snapshot ?versionid"),
    "Set Blob Expiry": Shape(_ANY, weight=0.2),
    "Set Blob Immutability Policy": Shape(
        _PROTECTED,
        needs="x-ms-immutability-policy-until-date",
        may="x-ms-immutability-policy-mode if-unmodified-since ?snapshot ?versionid",
    ),
    "Delete Blob Immutability Policy": Shape(_PROTECTED, may="?snapshot ?versionid"),
    "Set Blob Legal Hold": Shape(_PROTECTED, needs="x-ms-legal-hold", may="?snapshot ?versionid"),
    "Get Blob Tags": Shape(_ANY, may=f"{_OF_TAGS} ?snapshot"),
    "Set Blob Tags": Shape(_ANY, may=f"{_OF_TAGS} ?snapshot {_HASHES}", body="tags", weight=2),
    "Query Blob Contents": Shape(_ANY, body="query_request", weight=0.2),
    "Put Block From URL": Shape(
        _BLOCK, needs="?blockid x-ms-copy-source", may=f"x-ms-source-range {_SOURCE} x-ms-lease-id"
    ),
    "Put Block": Shape(_BLOCK, needs="?blockid", may=f"x-ms-lease-id {_HASHES}", body="upload", weight=3),
    "Put Block List": Shape(
        _BLOCK, may=f"{_NEW} {_HASHES} x-ms-access-tier x-ms-blob-content-md5", body="block_list", weight=2
    ),
    "Get Block List": Shape(_BLOCK, may="?blocklisttype ?snapshot ?versionid x-ms-lease-id x-ms-if-tags"),
    "Append Block From URL": Shape(
        _APPEND,
        needs="x-ms-copy-source",
        may=f"x-ms-source-range {_SOURCE} {_WRITE} x-ms-blob-condition-appendpos x-ms-blob-condition-maxsize",
    ),
    "Append Block": Shape(
        _APPEND,
        may=f"{_WRITE} {_HASHES} x-ms-blob-condition-appendpos x-ms-blob-condition-maxsize",
        body="upload",
    ),
    "Append Blob Seal": Shape(_APPEND, may=f"{_WRITE} x-ms-blob-condition-appendpos", weight=0.4),
    "Put Page From URL": Shape(
        _PAGE,
        needs="x-ms-copy-source:page-blob-url x-ms-page-write x-ms-range:pages x-ms-source-range",
        may=f"{_WRITE} {_SOURCE} {_SEQUENCE}",
    ),
    "Put Page": Shape(
        _PAGE, needs="x-ms-range:pages", may=f"{_WRITE} {_SEQUENCE} {_HASHES}", body="pages", weight=3
    ),
    "Get Page Ranges": Shape(
        _PAGE,
        may=f"{CONDITIONS} x-ms-lease-id ?snapshot ?versionid ?prevsnapshot x-ms-range ?marker ?maxresults "
        "x-ms-previous-snapshot-url",
    ),
    "Incremental Copy Blob": Shape(_PAGE, needs="x-ms-copy-source", weight=0.2),
}
