"""Blob Batch: up to 256 deletes, or as many changes of tier, in one request.

Each part is a request of its own, with its own signature, its own refusal and its own commit; nothing is promised about
their order. Only what is wrong with the batch as a batch is refused as a whole, before anything is done.
"""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from kyanite.rules.permissions import Access
from kyanite.services.blob import errors
from kyanite.services.blob.operations import OPERATIONS as EVERY_OPERATION
from kyanite.services.rest.blob_paths import acl_lookup, locate
from kyanite.services.rest.context import RequestContext, Resource
from kyanite.services.rest.operations import Op, query
from kyanite.services.rest.service import Service, ServiceDefinition
from kyanite.wire import uri
from kyanite.wire.batch import (
    MULTIPART,
    EmbeddedRequest,
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
_BODY_MAX_BYTES = 4 * 1024 * 1024
_KINDS = ("Delete Blob", "Set Blob Tier")
_ANY_TOKEN = Access(account="* *", service="*")


class _Part(NamedTuple):
    request: Request
    content_id: str | None


async def blob_batch(context: RequestContext) -> Response:
    body = await context.request.body.read_all(_BODY_MAX_BYTES)
    if body is None:
        raise Malformed("RequestBodyTooLarge", MaxLimit=str(_BODY_MAX_BYTES))
    parts = _read(context, body)
    service = Service(context.environment, _PARTS, context.version)
    answers = await asyncio.gather(*(_answer(service, part) for part in parts))
    boundary = f"batchresponse_{context.environment.fresh_guid()}"
    return Response(
        202, [("Content-Type", f"{MULTIPART}; boundary={boundary}")], encode_parts(boundary, answers)
    )


def _read(context: RequestContext, body: bytes) -> list[_Part]:
    found = decode_parts(context.headers.get("content-type", ""), body)
    if len(found) > PARTS_MAX:
        raise _invalid(f"A batch holds {PARTS_MAX} requests at the most.")
    requests = decode_requests(found)
    _check_kind(requests)
    return [
        _Part(_request(context, request), part.headers.get("content-id"))
        for request, part in zip(requests, found, strict=True)
    ]


def _check_kind(requests: Sequence[EmbeddedRequest]) -> None:
    """All parts ask for the same. What that is decides the table of operations, part by part."""
    if len({request.method for request in requests}) > 1:
        raise _invalid("All requests of a batch must be of one kind.")


def _request(context: RequestContext, part: EmbeddedRequest) -> Request:
    """The part as a request that came in beside the batch."""
    outer = context.request
    path, _, parameters = part.target.partition("?")
    if not path.startswith("/"):
        path = "/" + path.partition("://")[2].partition("/")[2]
    host = context.headers.get("host", "")
    if context.target.path_style and not path.startswith(f"/{context.account.name}/"):
        host = f"{context.account.name}.blob.localhost"  # Clients leave the account out, and sign it so.
    target = uri.decode_target(host, path, "blob")
    if target.account != context.account.name:
        raise _invalid("A request of the batch is for another account.")
    if context.resource is Resource.CONTAINER and target.first != context.container:
        raise _invalid("A request of the batch is for another container.")
    headers = {**part.headers, "host": host}
    return Request(
        part.method,
        path,
        parameters,
        headers,
        [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()],
        outer.body,
        outer.peer,
        outer.secure,
        outer.local_port,
    )


async def _answer(service: Service, part: _Part) -> bytes:
    response = await service(part.request)
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
)
"""The Blob service as far as a batch may ask for it."""

# The JavaScript client takes the account in a path-style URL for a container, hence the second row.
# fmt: off
OPERATIONS = (
    Op("Blob Batch", "POST", Resource.SERVICE, query(comp="batch"), blob_batch, _ANY_TOKEN, writes=True),
    Op("Blob Batch", "POST", Resource.SERVICE, query("container", "batch"), blob_batch, _ANY_TOKEN, writes=True),
    Op("Blob Batch", "POST", Resource.CONTAINER, query("container", "batch"), blob_batch, _ANY_TOKEN, writes=True),
)
# fmt: on
