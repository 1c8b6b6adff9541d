"""No header or parameter, whatever it holds, makes any operation of the Blob service break."""

import pytest

from kyanite.services.blob.service import DEFINITION
from kyanite.services.rest.context import Resource
from kyanite.services.rest.operations import Op
from tests.services.harness import Harness

JUNK = [
    "",
    " ",
    "x",
    "-1",
    "0",
    "1",
    "99999999999999999999",
    "true",
    "*",
    "bytes=5-1",
    "\xff\xfe",
    "a=b&c",
    "None",
    "%00",
]
HEADERS = [
    "If-Match",
    "If-None-Match",
    "If-Modified-Since",
    "If-Unmodified-Since",
    "Range",
    "Content-MD5",
    "Content-Type",
    "Origin",
    "x-ms-range",
    "x-ms-range-get-content-md5",
    "x-ms-range-get-content-crc64",
    "x-ms-content-crc64",
    "x-ms-blob-type",
    "x-ms-blob-content-length",
    "x-ms-blob-content-md5",
    "x-ms-blob-content-type",
    "x-ms-blob-sequence-number",
    "x-ms-sequence-number-action",
    "x-ms-if-sequence-number-le",
    "x-ms-page-write",
    "x-ms-blob-condition-appendpos",
    "x-ms-blob-condition-maxsize",
    "x-ms-copy-source",
    "x-ms-requires-sync",
    "x-ms-copy-action",
    "x-ms-source-range",
    "x-ms-source-if-match",
    "x-ms-source-content-md5",
    "x-ms-source-lease-id",
    "x-ms-copy-source-blob-properties",
    "x-ms-previous-snapshot-url",
    "x-ms-lease-id",
    "x-ms-lease-action",
    "x-ms-lease-duration",
    "x-ms-lease-break-period",
    "x-ms-proposed-lease-id",
    "x-ms-delete-snapshots",
    "x-ms-access-tier",
    "x-ms-access-tier-if-modified-since",
    "x-ms-rehydrate-priority",
    "x-ms-seal-blob",
    "x-ms-structured-body",
    "x-ms-structured-content-length",
    "x-ms-blob-public-access",
    "x-ms-default-encryption-scope",
    "x-ms-meta-a",
    "x-ms-client-request-id",
]
PARAMETERS = [
    "snapshot",
    "versionid",
    "prevsnapshot",
    "blockid",
    "blocklisttype",
    "copyid",
    "maxresults",
    "marker",
    "prefix",
    "delimiter",
    "include",
    "startfrom",
    "endbefore",
    "timeout",
    "deletetype",
]
PATHS = {Resource.SERVICE: "/", Resource.CONTAINER: "/box", Resource.OBJECT: "/box/b"}


def target_of(op: Op, extra: str = "") -> str:
    named = [f"{name}={value}" for name, value in op.query.items() if value]
    return f"{PATHS[op.resource]}?{'&'.join([*named, extra])}".rstrip("?&")


def needs_of(op: Op) -> dict[str, str]:
    """The headers that tell the operation from others."""
    return {name: value or "x" for name, value, is_parameter in op.needs() if not is_parameter}


async def make(blobs: Harness) -> None:
    await blobs("PUT", "/box?restype=container")
    await blobs("PUT", "/box/b", {"x-ms-blob-type": "BlockBlob"}, b"data")


@pytest.mark.parametrize(
    "op", DEFINITION.operations, ids=[f"{op.name} {op.when}" for op in DEFINITION.operations]
)
async def test_an_operation_survives(blobs: Harness, op: Op) -> None:
    for method in op.methods.split():
        for junk in JUNK:
            await make(blobs)
            for name in HEADERS:
                answer = await blobs(method, target_of(op), needs_of(op) | {name: junk}, b"body")
                assert answer.status < 500 or answer.code == "NotImplemented", (name, junk, answer.code)
            for name in PARAMETERS:
                value = junk.replace("&", "%26").replace("\xff\xfe", "%C3%BF").replace(" ", "%20")
                answer = await blobs(method, target_of(op, f"{name}={value}"), needs_of(op), b"body")
                assert answer.status < 500 or answer.code == "NotImplemented", (name, junk, answer.code)
