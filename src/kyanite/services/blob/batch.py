"""Blob Batch: up to 256 deletes, or as many changes of tier, in one request.

Each part is a request of its own, with its own signature, its own refusal and its own commit, in any order. Only what
is wrong with the batch as a whole is refused as a whole, before any part is done. But a batch in which no boundary is
found is answered like one part that fails.
"""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from kyanite.rules.authorization import Access
from kyanite.rules.system_containers import SERVER_WRITTEN
from kyanite.services.blob import errors
from kyanite.services.blob.operations import OPERATIONS as EVERY_OPERATION
from kyanite.services.rest.blob_paths import acl_lookup, locate
from kyanite.services.rest.context import RequestContext, Resource
from kyanite.services.rest.definition import ServiceDefinition
from kyanite.services.rest.operations import Op, query
from kyanite.services.rest.service import Service
from kyanite.services.rest.subrequests import path_and_query, subrequest
from kyanite.slices import next_slice
from kyanite.wire import uri
from kyanite.wire.batch import (
    MULTIPART,
    EmbeddedRequest,
    NoBoundary,
    decode_parts,
    decode_requests,
    encode_parts,
    encode_response,
    header_lines,
)
from kyanite.wire.http import Request, Response
from kyanite.wire.malformed import Malformed

SERVER = "Windows-Azure-Blob/1.0 Kyanite"
PARTS_MAX = 256
_PARTS_PER_SLICE = 16
_BODY_MAX_BYTES = 4 * 1024 * 1024
_KINDS = ("Delete Blob", "Set Blob Tier")
_ANY_TOKEN = Access(account="* *", service="*", writes=True, role="*")


class _Part(NamedTuple):
    request: Request
    content_id: str | None
    error: Malformed | None = None
    """Why it is refused, whatever it says."""


async def blob_batch(context: RequestContext) -> Response:
    body = await context.request.body.read_all(_BODY_MAX_BYTES)
    if body is None:
        raise Malformed("RequestBodyTooLarge", MaxLimit=str(_BODY_MAX_BYTES))
    try:
        parts = _read(context, body)
    except NoBoundary as error:
        parts = [_Part(subrequest(context, "POST", "/", "", {}), None, error)]
    service = Service(context.environment, _PARTS, context.version)
    responses = await _respond_to_all(service, parts)
    boundary = f"batchresponse_{context.environment.fresh_guid()}"
    return Response(
        202, [("Content-Type", f"{MULTIPART}; boundary={boundary}")], encode_parts(boundary, responses)
    )


def _read(context: RequestContext, body: bytes) -> list[_Part]:
    found = decode_parts(context.headers.get("content-type", ""), body, limit=PARTS_MAX)
    if len(found) > PARTS_MAX:
        raise _invalid(f"A batch holds {PARTS_MAX} requests at the most.")
    requests = decode_requests(found)
    _check_kind(requests)
    return [
        _part(context, request, part.headers.get("content-id"))
        for request, part in zip(requests, found, strict=True)
    ]


def _check_kind(requests: Sequence[EmbeddedRequest]) -> None:
    """All parts are of one kind. The table of operations decides for each part which."""
    if len({request.method for request in requests}) > 1:
        raise _invalid("All requests of a batch must be of one kind.")


def _part(context: RequestContext, part: EmbeddedRequest, content_id: str | None) -> _Part:
    path, parameters = path_and_query(part.target)
    host = context.headers.get("host", "")
    if context.target.path_style and not path.startswith(f"/{context.account.name}/"):
        host = f"{context.account.name}.blob.localhost"  # Clients leave the account out, and sign it so.
    target = uri.decode_target(host, path, "blob")
    if target.account != context.account.name:
        raise _invalid("A request of the batch is for another account.")
    request = subrequest(context, part.method, path, parameters, {**part.headers, "host": host})
    is_foreign = context.resource is Resource.CONTAINER and target.first != context.container
    error = _invalid("A request of the batch is for another container.") if is_foreign else None
    return _Part(request, content_id, error)


async def _respond_to_all(service: Service, parts: Sequence[_Part]) -> list[bytes]:
    """A few parts begin in each slice. Those that have begun wait for their commits together."""
    tasks: list[asyncio.Task[bytes]] = []
    try:
        for number, part in enumerate(parts):
            if number and number % _PARTS_PER_SLICE == 0:
                await next_slice()
            tasks.append(asyncio.create_task(_respond(service, part)))
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        raise


async def _respond(service: Service, part: _Part) -> bytes:
    response = await service(part.request) if part.error is None else service.refuse(part.request, part.error)
    body = response.body if isinstance(response.body, bytes) else b""  # A refused HEAD streams nothing.
    return encode_response(response.status, header_lines(response.headers), body, part.content_id)


def _invalid(sentence: str) -> Malformed:
    return Malformed("InvalidInput", Reason=sentence)


_PARTS = ServiceDefinition(
    word="blob",
    server=SERVER,
    operations=tuple(op for op in EVERY_OPERATION if op.name in _KINDS),
    reasons=errors.REASONS,
    codes=errors.CODES,
    locate=locate,
    acl_lookup=acl_lookup,
    server_written=frozenset(SERVER_WRITTEN),
)
"""The Blob service with the operations that a batch may have."""

# The JavaScript client mistakes the account in a path-style URL for a container, hence the second row.
# fmt: off
OPERATIONS = (
    Op("Blob Batch", "POST", Resource.SERVICE, query(comp="batch"), blob_batch, _ANY_TOKEN),
    Op("Blob Batch", "POST", Resource.SERVICE, query("container", "batch"), blob_batch, _ANY_TOKEN),
    Op("Blob Batch", "POST", Resource.CONTAINER, query("container", "batch"), blob_batch, _ANY_TOKEN),
)
# fmt: on
