"""The first requests of every world: they create what the others are about."""

import json
from collections.abc import Iterator

from tests.services.fuzzing import pool as names
from tests.services.fuzzing.request import FuzzRequest, Pairs

_VERSION = ("x-ms-version", "2025-05-05")
_JSON = ("Content-Type", "application/json")


def first_requests() -> list[FuzzRequest]:
    return [*_blobs(), *_queues(), *_tables(), *_files()]


def _put(
    service: str, path: str, query: str = "", headers: Pairs | None = None, body: bytes = b""
) -> FuzzRequest:
    pairs = [(name, value) for name, _, value in (each.partition("=") for each in query.split("&") if each)]
    sent = [_VERSION, *(headers or [])]
    return FuzzRequest(service, "(first)", "PUT", path, pairs, sent, body)


def _other(method: str, service: str, path: str, query: Pairs) -> FuzzRequest:
    return FuzzRequest(service, "(first)", method, path, query, [_VERSION])


def _blobs() -> Iterator[FuzzRequest]:
    for name in names.CONTAINERS[:3]:
        yield _put("blob", f"/{name}", "restype=container")
    for blob in names.BLOCK_BLOBS:
        yield _put("blob", f"/box/{blob}", "", [("x-ms-blob-type", "BlockBlob")], b"content of a blob" * 40)
    for blob in (*names.BLOCK_BLOBS, *names.APPEND_BLOBS, *names.PAGE_BLOBS):
        yield _put("blob", f"/vault/{blob}", "", [("x-ms-blob-type", "BlockBlob")], b"kept")
    yield _put("blob", "/crate/block", "", [("x-ms-blob-type", "BlockBlob")], b"x" * 100_000)
    for blob in names.APPEND_BLOBS:
        yield _put("blob", f"/box/{blob}", "", [("x-ms-blob-type", "AppendBlob")])
    for blob in names.PAGE_BLOBS:
        sized = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "8192")]
        yield _put("blob", f"/box/{blob}", "", sized)
        written = [("x-ms-page-write", "update"), ("x-ms-range", "bytes=0-1023")]
        yield _put("blob", f"/box/{blob}", "comp=page", written, b"p" * 1024)
    yield _put("blob", "/spare", "restype=container")
    yield _other("DELETE", "blob", "/spare", [("restype", "container")])
    yield _other("GET", "blob", "/", [("comp", "list"), ("include", "deleted")])


def _queues() -> Iterator[FuzzRequest]:
    for name in names.QUEUES[:2]:
        yield _put("queue", f"/{name}")


def _tables() -> Iterator[FuzzRequest]:
    for name in names.TABLES[:2]:
        body = json.dumps({"TableName": name}).encode()
        yield FuzzRequest("table", "(first)", "POST", "/Tables", [], [_VERSION, _JSON], body)
    for row in names.ROWS[:5]:
        path = f"/things(PartitionKey='p',RowKey='{row}')"
        body = json.dumps({"Text": row, "Number": 5}).encode()
        yield FuzzRequest("table", "(first)", "PUT", path, [], [_VERSION, _JSON], body)


def _files() -> Iterator[FuzzRequest]:
    retention = (
        "<ShareDeleteRetentionPolicy><Enabled>true</Enabled><Days>7</Days></ShareDeleteRetentionPolicy>"
    )
    document = f"<StorageServiceProperties>{retention}</StorageServiceProperties>".encode()
    yield _put("file", "/", "restype=service&comp=properties", [], document)
    for share in names.SHARES[:3]:
        protocol = [("x-ms-enabled-protocols", "NFS")] if share == "nfs" else []
        yield _put("file", f"/{share}", "restype=share", protocol)
        for directory in names.DIRECTORIES[1:4]:
            yield _put("file", f"/{share}/{directory}", "restype=directory")
        for file in names.FILES:
            sized = [("x-ms-type", "file"), ("x-ms-content-length", "6000")]
            yield _put("file", f"/{share}/{file}", "", sized)
        written = [("x-ms-write", "update"), ("x-ms-range", "bytes=0-999")]
        yield _put("file", f"/{share}/file", "comp=range", written, b"f" * 1000)
    yield _put("file", "/spare-share", "restype=share")
    yield _other("DELETE", "file", "/spare-share", [("restype", "share")])
    yield _other("GET", "file", "/", [("comp", "list"), ("include", "deleted")])
    yield _put(
        "file",
        "/nfs/link",
        "restype=symboliclink",
        [("x-ms-link-text", "../file")],
    )
