"""Files over REST: creating, describing, changing, leasing, deleting. ``ranges.py`` has their bytes."""

from functools import partial

from kyanite.model.files import file
from kyanite.model.files.entry import Entry
from kyanite.model.files.file import FileChange, NewFile
from kyanite.model.records import HttpHeaders
from kyanite.rules.authorization import may_overwrite
from kyanite.services.files.properties import (
    Headers,
    new_file_properties_of,
    smb_headers,
    smb_properties_of,
    version_headers,
)
from kyanite.services.rest.context import RequestContext
from kyanite.services.rest.file_paths import path_of, readable_path_of
from kyanite.services.rest.headers import (
    base64_text,
    copy_headers,
    lease_id_of,
    metadata_headers,
    metadata_of,
    number_of,
    required,
    stored_md5_of,
)
from kyanite.services.rest.leases import lease_answer, lease_headers, lease_request_of
from kyanite.services.rest.structured import data_length_of, structured_headers
from kyanite.services.rest.timeouts import repeated_after_breaks
from kyanite.services.rest.uploads import check_body_length, hash_headers, store
from kyanite.values import Instant
from kyanite.wire import numbers
from kyanite.wire.http import Response
from kyanite.wire.malformed import Malformed, bad_header

MIB = 1 << 20
FILE_MAX_BYTES = 4 << 40
FIRST_BYTES_MAX = (("", 4 * MIB),)
ENCRYPTED = ("x-ms-request-server-encrypted", "true")
_LENGTH = "x-ms-content-length"
_NAMES = ("Content-Type", "Content-Encoding", "Content-Language", "Cache-Control", "Content-Disposition")
_FIELDS = (
    "x-ms-content-type",
    "x-ms-content-encoding",
    "x-ms-content-language",
    "x-ms-cache-control",
    "x-ms-content-disposition",
    "x-ms-content-md5",
)


async def create_file(context: RequestContext) -> Response:
    """A file of a length, with zeros. Since 2026-06-06 the request may have its first bytes as its body."""
    headers = context.headers
    if required(headers, "x-ms-type").lower() != "file":
        raise bad_header("x-ms-type", headers["x-ms-type"])
    required(headers, _LENGTH)
    path, lease_id = path_of(context), lease_id_of(headers)
    new_file = partial(
        NewFile,
        length=_length_of(headers) or 0,
        http=_http_headers_of(headers),
        metadata=metadata_of(context.request),
        properties=new_file_properties_of(headers),
    )
    create = partial(file.create, context.store.engine, path, may_overwrite=may_overwrite(context.principal))
    body_length = data_length_of(context)
    if not body_length:
        found = await create(new_file=new_file(), lease_id=lease_id)
        hashes: Headers = []
    else:
        check_body_length(context.version, body_length, FIRST_BYTES_MAX)
        if body_length > new_file().length:
            raise bad_header("Content-Length", str(body_length))
        received, found = await store(
            context,
            body_length,
            lambda received: repeated_after_breaks(
                context, partial(create, new_file=new_file(payload=received.payload), lease_id=lease_id)
            ),
        )
        hashes = hash_headers(headers, received) + structured_headers(context)
    answer = [*version_headers(found.entry), ENCRYPTED, *hashes]
    return Response(201, answer + smb_headers(found.entry, found.parent_id))


async def get_file_properties(context: RequestContext) -> Response:
    found = await file.get_properties(
        context.store.engine, readable_path_of(context), lease_id_of(context.headers)
    )
    headers = property_headers(context, found.entry, found.parent_id, found.at)
    if found.entry.http.content_md5:
        headers.append(("Content-MD5", base64_text(found.entry.http.content_md5)))
    return Response(200, headers, length=found.entry.length)


async def get_file_metadata(context: RequestContext) -> Response:
    found = await file.get_properties(
        context.store.engine, readable_path_of(context), lease_id_of(context.headers)
    )
    return Response(200, version_headers(found.entry) + metadata_headers(found.entry.metadata))


async def set_file_properties(context: RequestContext) -> Response:
    """Replaces all content headers: one that is not sent is cleared, unless the request only sets a length."""
    headers = context.headers
    length = _length_of(headers)
    stays = length is not None and not any(name in headers for name in _FIELDS)
    request = FileChange(
        http=None if stays else _http_headers_of(headers, usual_type=""),
        length=length,
        properties=smb_properties_of(headers, of_directory=False, creates=False),
    )
    found = await file.set_properties(context.store.engine, path_of(context), request, lease_id_of(headers))
    answer = [*version_headers(found.entry), ENCRYPTED]
    return Response(200, answer + smb_headers(found.entry, found.parent_id))


async def set_file_metadata(context: RequestContext) -> Response:
    entry = await file.set_metadata(
        context.store.engine,
        path_of(context),
        metadata_of(context.request),
        lease_id_of(context.headers),
    )
    return Response(200, [*version_headers(entry), ENCRYPTED])


async def lease_file(context: RequestContext) -> Response:
    path = path_of(context)
    request = lease_request_of(context, infinite_only=True)
    if request.action.value == "renew":
        raise bad_header("x-ms-lease-action", context.headers["x-ms-lease-action"])
    entry, outcome = await file.lease(context.store.engine, path, request)
    return lease_answer(request, outcome, version_headers(entry))


async def delete_file(context: RequestContext) -> Response:
    await file.delete(context.store.engine, path_of(context), lease_id_of(context.headers))
    return Response(202)


def property_headers(context: RequestContext, entry: Entry, parent_id: int, now: Instant) -> Headers:
    """The headers that Get File and Get File Properties both return."""
    headers = version_headers(entry)
    http, overrides = entry.http, context.overrides
    values = (
        http.content_type,
        http.content_encoding,
        http.content_language,
        http.cache_control,
        http.content_disposition,
    )
    for name, value in zip(_NAMES, values, strict=True):
        returned = overrides.get(name.lower()) or value
        if returned:
            headers.append((name, returned))
    headers += [("Accept-Ranges", "bytes"), ("x-ms-type", "File"), ("x-ms-server-encrypted", "true")]
    headers += smb_headers(entry, parent_id)
    if "sharesnapshot" not in context.parameters:
        headers += lease_headers(entry.lease, now)
    if entry.copy is not None:
        headers += copy_headers(entry.copy)
    return headers + metadata_headers(entry.metadata)


def _length_of(headers: dict[str, str]) -> int | None:
    """The length that the request sets. One out of range is another error than one that is not a number."""
    text = headers.get(_LENGTH, "")
    number = numbers.decode(text)
    if number is not None and not 0 <= number <= FILE_MAX_BYTES:
        raise Malformed("OutOfRangeInput", HeaderName=_LENGTH, HeaderValue=text)
    return number_of(headers, _LENGTH)


def _http_headers_of(headers: dict[str, str], usual_type: str = "application/octet-stream") -> HttpHeaders:
    get = headers.get
    return HttpHeaders(
        content_type=get("x-ms-content-type") or usual_type,
        content_encoding=get("x-ms-content-encoding", ""),
        content_language=get("x-ms-content-language", ""),
        cache_control=get("x-ms-cache-control", ""),
        content_disposition=get("x-ms-content-disposition", ""),
        content_md5=stored_md5_of(headers, "x-ms-content-md5") or b"",
    )
