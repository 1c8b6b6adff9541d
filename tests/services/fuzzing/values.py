"""Valid values of headers and query parameters, by name. Some depend on the rest of the request: see its scope."""

import base64
import hashlib
from collections.abc import Callable, Mapping

from kyanite.values import TICKS_PER_SECOND, Instant
from kyanite.wire import http_date, iso_time
from tests.services.fuzzing import pool as names
from tests.services.fuzzing import scope as scopes
from tests.services.fuzzing.filters import odata_filter, table_filter
from tests.services.fuzzing.scope import Scope
from tests.services.fuzzing.urls import blob_url, file_url, own_directory_url, own_file_url, page_blob_url

Value = Callable[[Scope], str]
PAGE = 512
_YEAR = 365 * 24 * 3600


def words(*choices: str) -> Value:
    return lambda scope: scope.chance.choice(choices)


def numbers(first: int, last: int) -> Value:
    return lambda scope: scope.number(first, last)


def rarely(usual: str, *others: str) -> Value:
    return lambda scope: usual if scope.likely(0.8) else scope.chance.choice(others)


def some_of(*choices: str) -> Value:
    return lambda scope: ",".join(scope.chance.sample(choices, scope.chance.randint(1, min(3, len(choices)))))


def lease_id(scope: Scope) -> str:
    known = scope.pool.lease_of(scope.service, scope.path)
    return known if known and scope.likely(0.8) else scope.one(*names.LEASE_IDS)


def etag(scope: Scope) -> str:
    known = scope.pool.etags.get((scope.service, scope.path))
    return known if known and scope.likely(0.7) else scope.one("*", '"0x8D4BCC2E4835CD0"', "*")


def entity_etag(scope: Scope) -> str:
    known = scope.pool.etags.get((scope.service, scope.path))
    return known if known and scope.likely(0.5) else "*"


def http_time(scope: Scope) -> str:
    return http_date.encode(_near_now(scope))


def iso(scope: Scope) -> str:
    return iso_time.encode(_near_now(scope))


def _near_now(scope: Scope) -> Instant:
    seconds = scope.chance.choice((-_YEAR, -3600, -1, 0, 1, 3600, _YEAR))
    return Instant(scope.now + seconds * TICKS_PER_SECOND)


def byte_range(scope: Scope) -> str:
    first = scope.chance.choice((0, 0, 1, 100, 512, 1024, 16384))
    last = first + scope.chance.choice((0, 1, 99, 511, 1023, 70_000))
    return f"bytes={first}-" if scope.likely(0.2) else f"bytes={first}-{last}"


def pages(scope: Scope) -> str:
    """The range of a write to a page blob, whose body has its length."""
    first, count = scope.chance.randrange(8) * PAGE, scope.chance.choice((1, 1, 2, 4))
    scope.facts["length"] = str(count * PAGE)
    return f"bytes={first}-{first + count * PAGE - 1}"


def written(scope: Scope) -> str:
    """The range of a write to a file, whose body has its length."""
    first, length = scope.chance.choice((0, 1, 100, 4096)), scope.chance.choice((1, 10, 512, 5000, 20_000))
    scope.facts["length"] = str(length)
    scope.facts["range"] = f"bytes={first}-{first + length - 1}"
    return scope.facts["range"]


def source_range(scope: Scope) -> str:
    """As long as the range that is written, if there is one."""
    length = int(scope.facts.get("length", "0")) or scope.chance.choice((1, 100, 512))
    return f"bytes=0-{length - 1}"


def block_id(scope: Scope) -> str:
    return base64.b64encode(b"block-%02d" % scope.chance.randrange(12)).decode()


def md5_of_body(scope: Scope) -> str:
    """Right once the body is there: see ``shapes/shape.py``."""
    scope.facts["md5"] = "wanted"
    return base64.b64encode(hashlib.md5(b"").digest()).decode()


def some_md5(scope: Scope) -> str:
    return base64.b64encode(hashlib.md5(b"x").digest()).decode()


def marker(scope: Scope) -> str:
    return scope.chance.choice(scope.pool.markers) if scope.pool.markers else "1!YWJj"


def permission_key(scope: Scope) -> str:
    return scope.chance.choice(scope.pool.permission_keys) if scope.pool.permission_keys else "1*2"


def copy_id(scope: Scope) -> str:
    return scope.chance.choice(scope.pool.copy_ids) if scope.pool.copy_ids else names.LEASE_IDS[0]


def handle_id(scope: Scope) -> str:
    return scope.chance.choice(scope.pool.handle_ids) if scope.pool.handle_ids and scope.likely(0.6) else "*"


def deleted_version(scope: Scope) -> str:
    known = scope.pool.deleted_versions
    return scope.chance.choice(known) if known else "01DC000000000000"


def snapshot(scope: Scope) -> str:
    path = scope.path if scope.service == "blob" else "/" + scope.path.split("/")[1]
    return scope.pool.snapshot_of(scope.service, path, scope.chance)


def version(scope: Scope) -> str:
    return scope.pool.version_of(scope.path, scope.chance)


def next_key(scope: Scope) -> str:
    return scope.chance.choice(scope.pool.continuations)[1] if scope.pool.continuations else "1!4!cGFi"


_VERSIONS = (
    "2026-10-06", "2025-05-05", "2024-11-04", "2021-12-02", "2020-12-06", "2019-12-12", "2019-02-02", "2018-03-28",
    "2016-05-31", "2015-02-21", "2013-08-15", "2012-02-12", "2011-08-18", "2009-09-19", "2030-01-01",
)  # fmt: skip
_SDDL = (
    "O:SYG:SYD:(A;OICI;FA;;;BA)",
    "O:BAG:BAD:P(A;;FA;;;SY)(D;;0x1200a9;;;WD)",
    "O:S-1-5-21-1-2-3-500G:S-1-5-21-1-2-3-513D:(A;;FA;;;SY)S:(AU;SAFA;FA;;;WD)",
    "inherit",
    "preserve",
)
_TAG_CONDITIONS = ("a = 'b'", "a <> 'x' AND a > '' OR \"c\" <= 'd e'", "a = '2' or a = 'b'")
_FLAG = words("true", "false")
_TEXT = words("x", "some text", "text/plain", "en", "a, b; c=d", "é")

VALUES: Mapping[str, Value] = {
    "x-ms-version": lambda scope: scope.chance.choice(_VERSIONS[:3] if scope.likely(0.8) else _VERSIONS),
    "x-ms-client-request-id": words("client-1", "x" * 1024, "é"),
    "timeout": numbers(1, 90),
    # Conditions and leases
    "if-match": etag,
    "if-none-match": etag,
    "if-modified-since": http_time,
    "if-unmodified-since": http_time,
    "entity-etag": entity_etag,
    "x-ms-lease-id": lease_id,
    "x-ms-source-lease-id": lease_id,
    "x-ms-destination-lease-id": lease_id,
    "x-ms-proposed-lease-id": words(*names.LEASE_IDS),
    "x-ms-lease-action": words("acquire", "acquire", "renew", "change", "release", "release"),
    "x-ms-lease-duration": words("-1", "15", "30", "60"),
    "x-ms-lease-break-period": words("0", "0", "10", "60"),
    "x-ms-source-if-match": words("*", '"0x1"'),
    "x-ms-source-if-none-match": words('"0x1"', "*"),
    "x-ms-source-if-modified-since": http_time,
    "x-ms-source-if-unmodified-since": http_time,
    "x-ms-if-tags": words(*_TAG_CONDITIONS),
    "x-ms-source-if-tags": words(*_TAG_CONDITIONS),
    "x-ms-blob-if-match": etag,
    "x-ms-blob-if-none-match": etag,
    "x-ms-blob-if-modified-since": http_time,
    "x-ms-blob-if-unmodified-since": http_time,
    # Blobs
    "x-ms-blob-type": words("BlockBlob"),
    "x-ms-blob-content-type": _TEXT,
    "x-ms-blob-content-encoding": _TEXT,
    "x-ms-blob-content-language": _TEXT,
    "x-ms-blob-content-disposition": _TEXT,
    "x-ms-blob-cache-control": _TEXT,
    "x-ms-blob-content-md5": some_md5,
    "x-ms-blob-content-length": lambda scope: str(PAGE * scope.chance.choice((0, 1, 8, 16, 64))),
    "x-ms-blob-sequence-number": numbers(0, 9),
    "x-ms-sequence-number-action": words("max", "update", "increment"),
    "x-ms-if-sequence-number-le": numbers(0, 9),
    "x-ms-if-sequence-number-lt": numbers(0, 9),
    "x-ms-if-sequence-number-eq": numbers(0, 9),
    "x-ms-blob-condition-appendpos": words("0", "100"),
    "x-ms-blob-condition-maxsize": words("100", "100000"),
    "x-ms-blob-public-access": words("blob", "container"),
    "x-ms-access-tier": rarely("Hot", "Cool", "Cold", "Archive", "Smart"),
    "x-ms-rehydrate-priority": words("Standard", "High"),
    "x-ms-access-tier-if-modified-since": http_time,
    "x-ms-access-tier-if-unmodified-since": http_time,
    "x-ms-page-write": words("update"),
    "x-ms-range": byte_range,
    "range": byte_range,
    "pages": pages,
    "written": written,
    "x-ms-range-get-content-md5": _FLAG,
    "x-ms-range-get-content-crc64": _FLAG,
    "x-ms-structured-body": words("XSM/1.0; properties=crc64"),
    "x-ms-delete-snapshots": words("include", "only"),
    "share-delete-snapshots": words("include", "include-leased"),
    "x-ms-copy-source": blob_url,
    "page-blob-url": page_blob_url,
    "file-url": file_url,
    "x-ms-copy-action": words("abort"),
    "x-ms-copy-source-blob-properties": _FLAG,
    "x-ms-source-range": source_range,
    "x-ms-source-content-md5": some_md5,
    "x-ms-source-content-crc64": words("AAAAAAAAAAA="),
    "x-ms-source-if-match-crc64": words("AAAAAAAAAAA="),
    "x-ms-source-if-none-match-crc64": words("AAAAAAAAAAA="),
    "x-ms-content-crc64": words("AAAAAAAAAAA="),
    "content-md5": md5_of_body,
    "x-ms-seal-blob": _FLAG,
    "x-ms-requires-sync": words("true"),
    "x-ms-previous-snapshot-url": lambda scope: f"{blob_url(scope)}?snapshot={snapshot(scope)}",
    "x-ms-tags": words("a=b", "a=b&c=d+e", "a=2&%2B-.%2F:=x%3D", ""),
    "x-ms-copy-source-tag-option": words("REPLACE", "COPY"),
    "x-ms-encryption-scope": words("scope1"),
    "x-ms-encryption-key": words("AAAA"),
    "x-ms-default-encryption-scope": words("$account-encryption-key", "other"),
    "x-ms-deny-encryption-scope-override": _FLAG,
    "x-ms-immutability-policy-until-date": http_time,
    "x-ms-immutability-policy-mode": words("Unlocked", "locked", "Mutable"),
    "x-ms-legal-hold": _FLAG,
    "x-ms-meta-name": _TEXT,
    "x-ms-meta-Other_1": _TEXT,
    "content-type": words("text/plain", "application/xml", "application/json"),
    "content-encoding": words("gzip", "identity"),
    "content-language": words("en", "de"),
    "cache-control": words("no-cache"),
    "origin": words("http://example.org", "null"),
    "access-control-request-method": words("GET", "PUT", "DELETE", "nonsense"),
    "access-control-request-headers": words("x-ms-version", "a, b, c"),
    "expect": words("100-continue"),
    "user-agent": words("fuzz"),
    # Files
    "x-ms-type": words("file"),
    "x-ms-content-length": words("0", "1", "1000", "5000", "30000"),
    "x-ms-content-type": _TEXT,
    "x-ms-content-encoding": _TEXT,
    "x-ms-content-language": _TEXT,
    "x-ms-content-disposition": _TEXT,
    "x-ms-cache-control": _TEXT,
    "x-ms-content-md5": some_md5,
    "x-ms-write": words("update"),
    "x-ms-file-permission": words(*_SDDL),
    "x-ms-file-permission-key": permission_key,
    "x-ms-file-permission-format": words("sddl", "binary"),
    "x-ms-file-attributes": rarely("None", "Archive", "Hidden|System", "ReadOnly", "preserve", "Directory"),
    "x-ms-file-creation-time": iso,
    "x-ms-file-last-write-time": words("now", "preserve", "2026-11-16T12:00:00.0000000Z"),
    "x-ms-file-change-time": iso,
    "x-ms-file-property-semantics": words("New", "Restore"),
    "x-ms-file-request-intent": words("backup"),
    "x-ms-allow-trailing-dot": _FLAG,
    "x-ms-source-allow-trailing-dot": _FLAG,
    "x-ms-file-extended-info": _FLAG,
    "x-ms-file-support-rename": _FLAG,
    "x-ms-file-rename-source": own_file_url,
    "directory-url": own_directory_url,
    "x-ms-file-rename-replace-if-exists": words("true", "true", "false"),
    "x-ms-file-rename-ignore-readonly": words("true", "true", "false"),
    "x-ms-file-copy-ignore-readonly": _FLAG,
    "x-ms-file-copy-set-archive": _FLAG,
    "x-ms-file-permission-copy-mode": words("source", "override"),
    "x-ms-file-mode-copy-mode": words("source", "override"),
    "x-ms-file-owner-copy-mode": words("source", "override"),
    "x-ms-mode": words("0644", "0755", "rwxr-xr-x"),
    "x-ms-owner": words("0", "1000"),
    "x-ms-group": words("0", "1000"),
    "x-ms-link-text": words("../file", "/dir/file"),
    "x-ms-file-target-file": lambda scope: f"/{scopes.file(scope)}",
    "x-ms-recursive": _FLAG,
    "x-ms-handle-id": handle_id,
    "x-ms-share-quota": words("1", "100", "5120"),
    "share-tier": words("TransactionOptimized", "Hot", "Cool", "Premium"),
    "x-ms-enabled-protocols": words("SMB", "NFS"),
    "x-ms-root-squash": words("NoRootSquash", "RootSquash", "AllSquash"),
    "x-ms-enable-snapshot-virtual-directory-access": _FLAG,
    "x-ms-enable-smb-directory-lease": _FLAG,
    "x-ms-share-provisioned-iops": words("500", "3000"),
    "x-ms-share-provisioned-bandwidth-mibps": words("60", "125"),
    "x-ms-share-paid-bursting-enabled": _FLAG,
    "x-ms-share-paid-bursting-max-iops": words("1000"),
    "x-ms-share-paid-bursting-max-bandwidth-mibps": words("100"),
    "x-ms-deleted-container-name": lambda scope: scope.path[1:],
    "x-ms-deleted-container-version": deleted_version,
    "x-ms-source-container-name": lambda scope: scope.one("spare", "chest", "crate", "none"),
    "x-ms-deleted-share-name": lambda scope: scope.path[1:],
    "x-ms-deleted-share-version": deleted_version,
    # Tables
    "accept": rarely(
        "application/json;odata=minimalmetadata",
        "application/json;odata=nometadata",
        "application/json;odata=fullmetadata",
        "application/json",
        "*/*",
        "application/atom+xml",
    ),
    "prefer": words("return-no-content", "return-content"),
    "dataserviceversion": words("3.0"),
    "maxdataserviceversion": words("3.0;NetFx"),
    "x-http-method": words("MERGE", "DELETE", "PUT", "PATCH"),
    # Parameters
    "where": words(
        "a = 'b'",
        "a > '' AND c = 'd e'",
        "@container = 'box' AND a >= '2' and \"a b\" < 'x'",
        "a > '1' AND a < 'c'",
    ),
    "find-include": words("none", "versions"),
    "prefix": words("d", "dir/", "b", "s", "ü", "things"),
    "delimiter": words("/", "dir", "."),
    "marker": marker,
    "maxresults": words("1", "2", "5", "100", "5000"),
    "container-include": some_of("metadata", "deleted", "system"),
    "blob-include": some_of(
        "snapshots",
        "metadata",
        "uncommittedblobs",
        "copy",
        "tags",
        "versions",
        "deleted",
        "deletedwithversions",
        "immutabilitypolicy",
        "legalhold",
    ),
    "missing-include": some_of("permissions"),
    "queue-include": words("metadata"),
    "share-include": some_of("metadata", "snapshots", "deleted"),
    "entry-include": some_of("Timestamps", "ETag", "Attributes", "PermissionKey"),
    "startfrom": words("b", "dir/"),
    "endbefore": words("c", "z"),
    "snapshot": snapshot,
    "sharesnapshot": snapshot,
    "prevsnapshot": snapshot,
    "prevsharesnapshot": snapshot,
    "versionid": version,
    "deletetype": words("permanent"),
    "blockid": block_id,
    "blocklisttype": words("committed", "uncommitted", "all"),
    "copyid": copy_id,
    "peekonly": words("true"),
    "numofmessages": numbers(1, 32),
    "visibilitytimeout": words("0", "1", "30", "600"),
    "get-visibilitytimeout": words("1", "30", "600"),
    "messagettl": words("-1", "1", "600", "700000"),
    "popreceipt": lambda scope: scope.facts.get("popreceipt", "AgAAAAEAAAAAAAAA"),
    "$filter": odata_filter,
    "table-filter": table_filter,
    "$select": some_of("PartitionKey", "RowKey", "Timestamp", "Text", "Number", "*", "missing"),
    "$top": words("0", "1", "2", "1000"),
    "$format": words("application/json;odata=nometadata", "json"),
    "NextPartitionKey": next_key,
    "NextRowKey": next_key,
    "NextTableName": next_key,
}
"""By the name in lower case, or by that of a special kind of value that shapes refer to."""

PARAMETERS = frozenset(
    [
        "timeout",
        "where",
        "prefix",
        "delimiter",
        "marker",
        "maxresults",
        "startfrom",
        "endbefore",
        "snapshot",
        "sharesnapshot",
        "prevsnapshot",
        "prevsharesnapshot",
        "versionid",
        "deletetype",
        "blockid",
        "blocklisttype",
        "copyid",
        "peekonly",
        "numofmessages",
        "visibilitytimeout",
        "messagettl",
        "popreceipt",
        "$filter",
        "$select",
        "$top",
        "$format",
        "NextPartitionKey",
        "NextRowKey",
        "NextTableName",
        "restype",
        "comp",
        "include",
        "api-version",
    ]
)
"""Those of the query; all others are headers."""
HEADERS = tuple(sorted(name for name in VALUES if name not in PARAMETERS and (name.startswith("x-") or name in {
    "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "range", "content-md5", "content-type",
    "content-encoding", "content-language", "cache-control", "origin", "accept", "prefer", "expect",
})))  # fmt: skip
