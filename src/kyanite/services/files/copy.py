"""Copy File, Abort Copy File and Put Range From URL: from files and blobs of this server."""

import re
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from functools import partial

from kyanite.engine.api import Snapshot
from kyanite.model.accounts import Store
from kyanite.model.blobs.blob import UNCONDITIONAL, load_to_be_read
from kyanite.model.blobs.rows import BlobKey
from kyanite.model.content.opening import Readable, Reading
from kyanite.model.content.spread import NewContent
from kyanite.model.files import copy, file
from kyanite.model.files.copy import FileCopy, Source, Streamed
from kyanite.model.files.entry import Entry
from kyanite.model.files.file import RangeWrite
from kyanite.model.files.tree import FilePath
from kyanite.rules.authorization import may_overwrite
from kyanite.rules.refusals import Reason, Refused
from kyanite.services.files.file import MIB
from kyanite.services.files.properties import smb_properties_of, version_headers
from kyanite.services.files.ranges import written_headers
from kyanite.services.rest import blob_paths, file_paths, uploads
from kyanite.services.rest.context import RequestContext
from kyanite.services.rest.downloads import read_bytes
from kyanite.services.rest.file_paths import path_of
from kyanite.services.rest.headers import (
    aborted_copy_of,
    content_length_of,
    flag_of,
    lease_id_of,
    metadata_of,
    one_of,
    required,
    written_range_of,
)
from kyanite.services.rest.sources import BLOB_SOURCE, FILE_SOURCE, kind_of, source_of, without_signature
from kyanite.services.rest.streamed_copies import store_runs
from kyanite.services.rest.streams import Stream
from kyanite.wire import crc64, ranges
from kyanite.wire.http import Response
from kyanite.wire.malformed import Malformed, bad_header, bad_parameter, missing_header

_KINDS = (FILE_SOURCE, BLOB_SOURCE)
_RANGE_MAX_BYTES = 4 * MIB
_COPY_ID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_OF_SOURCE = {
    "x-ms-file-attributes": "attributes",
    "x-ms-file-creation-time": "created_at",
    "x-ms-file-last-write-time": "last_write_at",
    "x-ms-file-change-time": "changed_at",
}
"""Headers whose value may be ``source``, and the property that is then copied."""

_COPY_MODES = {
    "x-ms-file-permission-copy-mode": ("permission", ("x-ms-file-permission", "x-ms-file-permission-key")),
    "x-ms-file-mode-copy-mode": ("mode", ("x-ms-mode",)),
    "x-ms-file-owner-copy-mode": ("owner", ("x-ms-owner", "x-ms-group")),
}
"""Headers that say whether a property is copied, and the headers one of which is needed if it is not."""


async def copy_file(context: RequestContext) -> Response:
    """The copy is complete when the response is sent."""
    headers = context.headers
    store, source = await _source_of(context)
    own, copied = _properties_of(headers)
    request = FileCopy(
        source=source,
        source_url=without_signature(headers["x-ms-copy-source"]),
        copy_id=context.environment.fresh_guid(),
        metadata=metadata_of(context.request),
        properties=smb_properties_of(own, of_directory=False, creates=True),
        copied=copied,
        ignores_read_only=flag_of(headers, "x-ms-file-copy-ignore-readonly"),
        sets_archive=flag_of(headers, "x-ms-file-copy-set-archive"),
    )
    run = partial(
        copy.copy,
        context.store.engine,
        path_of(context),
        request,
        lease_id_of(headers),
        may_overwrite=may_overwrite(context.principal),
    )
    entry = await (run() if store is context.store else _copy_streamed(context, store, request, run))
    answer = [("x-ms-copy-id", request.copy_id), ("x-ms-copy-status", "success")]
    return Response(202, version_headers(entry) + answer)


async def _copy_streamed(
    context: RequestContext, store: Store, request: FileCopy, run: Callable[..., Awaitable[Entry]]
) -> Entry:
    """Copy from another store: no extent belongs to two of them."""
    stream: Stream[Source] = Stream(store)
    try:
        opened = await stream.open(
            Reading(partial(copy.load_source, request=request, account=context.account.name))
        )
        runs = await stream.runs()

        def transaction(content: NewContent) -> Awaitable[Entry]:
            return run(streamed=Streamed(opened.record, content))

        async with aclosing(stream.data_of(runs)) as pieces:
            return await store_runs(context.store, pieces, runs, transaction)
    finally:
        stream.release()


async def abort_copy_file(context: RequestContext) -> Response:
    copy_id = aborted_copy_of(context.headers, context.parameters)
    if not _COPY_ID.fullmatch(copy_id):
        raise bad_parameter("copyid", copy_id)
    await copy.abort(context.store.engine, path_of(context), copy_id, lease_id_of(context.headers))
    return Response(204)


async def put_range_from_url(context: RequestContext) -> Response:
    headers = context.headers
    if one_of(headers, "x-ms-write", ("update",)) != "update":
        raise bad_header("x-ms-write", headers.get("x-ms-write", ""))
    if content_length_of(context.request):
        raise bad_header("Content-Length", headers.get("content-length", ""))
    wanted = written_range_of(headers)
    length = wanted.length or 0
    from_source = ranges.decode(required(headers, "x-ms-source-range"))
    if from_source is None or from_source.length != length:
        raise bad_header("x-ms-source-range", headers["x-ms-source-range"])
    if length > _RANGE_MAX_BYTES:
        raise bad_header("x-ms-source-range", headers["x-ms-source-range"])
    keeps = one_of(headers, "x-ms-file-last-write-time", ("now", "preserve")) == "preserve"
    path, lease_id = path_of(context), lease_id_of(headers)
    store, source = await _source_of(context)
    data = await _read(context, store, source, from_source.first, length)
    checksum = _check_source(headers, data)

    def transaction(received: uploads.ReceivedBody) -> Awaitable[Entry]:
        request = RangeWrite(wanted.first, length, received.payload, keeps)
        return file.write_range(context.store.engine, path, request, lease_id)

    _, entry = await uploads.store_data(context.store, data, transaction)
    answer = [("x-ms-content-crc64", crc64.encode(checksum))]
    return Response(201, written_headers(entry) + answer)


async def _source_of(context: RequestContext) -> tuple[Store, FilePath | BlobKey]:
    kind = kind_of(context, _KINDS)
    source = await source_of(context, kind)
    if kind is BLOB_SOURCE:
        return source.store, blob_paths.readable_key_of(source)
    names = file_paths.names_of(context, source.object_name, "x-ms-source-allow-trailing-dot")
    return source.store, FilePath(file_paths.readable_share_of(source), names)


async def _read(
    context: RequestContext, store: Store, source: FilePath | BlobKey, first: int, length: int
) -> bytes:
    def load(snap: Snapshot) -> Readable:
        try:
            if isinstance(source, BlobKey):
                return load_to_be_read(snap, source, UNCONDITIONAL)
            return file.load_for_read(snap, source, None, start=first, length=length)[1]
        except Refused as refusal:
            raise Refused(Reason.COPY_SOURCE_NOT_FOUND) from refusal

    request = Reading(load, first, first + length - 1, is_whole=False)
    data = await read_bytes(store, request)
    if len(data) != length:
        raise bad_header("x-ms-source-range", context.headers["x-ms-source-range"])
    return data


def _check_source(headers: dict[str, str], data: bytes) -> int:
    """Check the conditions and the hash that a request may set for the source range; the CRC64 of the range."""
    checksum = crc64.compute(data)
    for header, wants_equal in (
        ("x-ms-source-if-match-crc64", True),
        ("x-ms-source-if-none-match-crc64", False),
    ):
        text = headers.get(header)
        if text and (crc64.decode(text, header) == checksum) is not wants_equal:
            raise Refused(Reason.SOURCE_CONDITION_NOT_MET)
    text = headers.get("x-ms-source-content-crc64")
    if text and crc64.decode(text, "x-ms-source-content-crc64") != checksum:
        raise Malformed(
            "Crc64Mismatch", UserSpecifiedCrc64=text, ServerCalculatedCrc64=crc64.encode(checksum)
        )
    return checksum


def _properties_of(headers: dict[str, str]) -> tuple[dict[str, str], frozenset[str]]:
    """The headers without those that refer to the source, and the properties that are copied from it."""
    own = dict(headers)
    copied = set()
    for name, field in _OF_SOURCE.items():
        if headers.get(name, "").lower() == "source":
            del own[name]
            copied.add(field)
    for name, (field, values) in _COPY_MODES.items():
        mode = one_of(headers, name, ("source", "override"))
        if mode == "source":
            copied.add(field)
        if mode == "override" and not any(headers.get(value) for value in values):
            raise missing_header(values[0])
    return own, frozenset(copied)
