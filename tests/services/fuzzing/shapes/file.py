"""The shapes of the requests to the File service."""

from kyanite.services.files.service import DEFINITION
from tests.services.fuzzing.shapes.shape import Shape

OPERATIONS = DEFINITION.operations

_META = "x-ms-meta-name x-ms-meta-Other_1"
_USUAL = "x-ms-file-request-intent x-ms-allow-trailing-dot"
_SMB = (
    "x-ms-file-permission x-ms-file-permission-key x-ms-file-permission-format x-ms-file-attributes "
    "x-ms-file-creation-time x-ms-file-last-write-time x-ms-file-change-time x-ms-mode x-ms-owner x-ms-group"
)
_CONTENT = (
    "x-ms-content-type x-ms-content-encoding x-ms-content-language x-ms-content-disposition x-ms-cache-control "
    "x-ms-content-md5"
)
_SHARE = (
    "x-ms-share-quota x-ms-access-tier:share-tier x-ms-root-squash x-ms-enable-snapshot-virtual-directory-access "
    "x-ms-enable-smb-directory-lease x-ms-share-provisioned-iops x-ms-share-provisioned-bandwidth-mibps "
    "x-ms-share-paid-bursting-enabled x-ms-share-paid-bursting-max-iops x-ms-share-paid-bursting-max-bandwidth-mibps"
)
_LEASE = "x-ms-proposed-lease-id x-ms-lease-id"
_LIST = "?prefix ?marker ?maxresults"
_DIRECTORY, _FILE, _ENTRY = "/{share}/{directory}", "/{share}/{file}", "/{share}/{entry}"

SHAPES = {
    "List Shares": Shape("/", may=f"{_LIST} ?include:share-include ?include:share-include"),
    "Set File Service Properties": Shape("/", body="file_properties"),
    "Get File Service Properties": Shape("/"),
    "Get User Delegation Key": Shape("/", "x-ms-version=2026-10-06", body="key_info", weight=0.4),
    "Create Share": Shape("/{share}", may=f"{_META} {_SHARE} x-ms-enabled-protocols", weight=2),
    "Get Share Properties": Shape("/{share}", may="x-ms-lease-id ?sharesnapshot"),
    "Delete Share": Shape(
        "/{spare_share}",
        may="x-ms-lease-id ?sharesnapshot x-ms-delete-snapshots:share-delete-snapshots "
        "x-ms-delete-snapshots:share-delete-snapshots",
        weight=0.5,
    ),
    "Set Share Properties": Shape("/{share}", may=f"{_SHARE} x-ms-lease-id"),
    "Get Share Metadata": Shape("/{share}", may="x-ms-lease-id ?sharesnapshot"),
    "Set Share Metadata": Shape("/{share}", may=f"{_META} x-ms-lease-id"),
    "Get Share ACL": Shape("/{share}", may="x-ms-lease-id"),
    "Set Share ACL": Shape("/{share}", may="x-ms-lease-id", body="acl"),
    "Get Share Stats": Shape("/{share}", may="x-ms-lease-id"),
    "Lease Share [x-ms-lease-action: break]": Shape("/{share}", may="x-ms-lease-break-period x-ms-lease-id"),
    "Lease Share": Shape(
        "/{share}", needs=f"x-ms-lease-action x-ms-lease-duration {_LEASE}", may="?sharesnapshot"
    ),
    "Snapshot Share": Shape("/{share}", may=_META),
    "Restore Share": Shape("/{spare_share}", needs="x-ms-deleted-share-name x-ms-deleted-share-version"),
    "Create Permission": Shape("/{share}", body="permission"),
    "Get Permission": Shape("/{share}", needs="x-ms-file-permission-key", may="x-ms-file-permission-format"),
    "Create Directory": Shape(
        _DIRECTORY, may=f"{_META} {_SMB} {_USUAL} x-ms-file-property-semantics", weight=3
    ),
    "Get Directory Properties": Shape(_DIRECTORY, may=f"?sharesnapshot {_USUAL}"),
    "Delete Directory": Shape("/{share}/{empty_directory}", may=_USUAL, weight=0.5),
    "Set Directory Properties": Shape(_DIRECTORY, may=f"{_SMB} {_USUAL}"),
    "Get Directory Metadata": Shape(_DIRECTORY, may=f"?sharesnapshot {_USUAL}"),
    "Set Directory Metadata": Shape(_DIRECTORY, may=f"{_META} {_USUAL}"),
    "List Directories and Files": Shape(
        _DIRECTORY,
        may=f"{_LIST} ?include:entry-include x-ms-file-extended-info ?sharesnapshot {_USUAL}",
        weight=2,
    ),
    "Rename Directory": Shape(
        _DIRECTORY,
        needs="x-ms-file-rename-source:directory-url",
        may=f"{_SMB} {_META} {_USUAL} x-ms-source-allow-trailing-dot x-ms-file-rename-replace-if-exists",
        weight=0.6,
    ),
    "Copy File": Shape(
        _FILE,
        needs="x-ms-copy-source:file-url",
        may=f"{_META} {_SMB} {_USUAL} x-ms-lease-id x-ms-file-copy-ignore-readonly x-ms-file-copy-set-archive "
        "x-ms-file-permission-copy-mode x-ms-file-mode-copy-mode x-ms-file-owner-copy-mode "
        "x-ms-source-allow-trailing-dot",
    ),
    "Create File": Shape(
        _FILE,
        needs="x-ms-type x-ms-content-length",
        may=f"{_META} {_SMB} {_CONTENT} {_USUAL} x-ms-lease-id x-ms-file-property-semantics content-md5",
        body="first_bytes",
        weight=4,
    ),
    "Get File": Shape(
        _FILE,
        may="range x-ms-range x-ms-range-get-content-md5 ?sharesnapshot x-ms-lease-id x-ms-structured-body "
        f"{_USUAL}",
        weight=2,
    ),
    "Get File Properties": Shape(_FILE, may=f"?sharesnapshot x-ms-lease-id {_USUAL}"),
    "Delete File": Shape(_FILE, may=f"x-ms-lease-id {_USUAL}", weight=0.5),
    "Set File Properties": Shape(_FILE, may=f"{_CONTENT} {_SMB} {_USUAL} x-ms-content-length x-ms-lease-id"),
    "Get File Metadata": Shape(_FILE, may=f"?sharesnapshot x-ms-lease-id {_USUAL}"),
    "Set File Metadata": Shape(_FILE, may=f"{_META} x-ms-lease-id {_USUAL}"),
    "Lease File [x-ms-lease-action: break]": Shape(_FILE, may="x-ms-lease-id"),
    "Lease File": Shape(_FILE, needs=f"x-ms-lease-action x-ms-lease-duration=-1 {_LEASE}", may=_USUAL),
    "Put Range From URL": Shape(
        _FILE,
        needs="x-ms-copy-source:file-url x-ms-write x-ms-range:written x-ms-source-range",
        may=f"x-ms-source-if-match-crc64 x-ms-source-if-none-match-crc64 x-ms-source-content-crc64 x-ms-lease-id "
        f"x-ms-file-last-write-time {_USUAL}",
    ),
    "Put Range": Shape(
        _FILE,
        needs="x-ms-range:written",
        may=f"content-md5 x-ms-content-crc64 x-ms-lease-id x-ms-file-last-write-time {_USUAL}",
        body="file_range",
        weight=3,
    ),
    "List Ranges": Shape(
        _FILE,
        may=f"x-ms-range ?sharesnapshot ?prevsharesnapshot ?marker ?maxresults x-ms-lease-id "
        f"x-ms-file-support-rename {_USUAL}",
    ),
    "Abort Copy File": Shape(_FILE, needs="?copyid x-ms-copy-action", may="x-ms-lease-id"),
    "Rename File": Shape(
        _FILE,
        needs="x-ms-file-rename-source",
        may=f"{_SMB} {_META} {_USUAL} x-ms-content-type x-ms-source-allow-trailing-dot "
        "x-ms-file-rename-replace-if-exists x-ms-file-rename-ignore-readonly x-ms-source-lease-id "
        "x-ms-destination-lease-id",
    ),
    "Create Symbolic Link": Shape("/nfs/{link}", needs="x-ms-link-text", may=f"{_META} x-ms-mode x-ms-owner"),
    "Read Symbolic Link": Shape("/nfs/{link}", may="?sharesnapshot"),
    "Create Hard Link": Shape("/nfs/{link}", needs="x-ms-type x-ms-file-target-file", may="x-ms-lease-id"),
    "List Handles": Shape(_ENTRY, may=f"?marker ?maxresults x-ms-recursive ?sharesnapshot {_USUAL}"),
    "Force Close Handles": Shape(
        _ENTRY, needs="x-ms-handle-id", may=f"x-ms-recursive ?sharesnapshot ?marker {_USUAL}"
    ),
}
