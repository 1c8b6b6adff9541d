"""Get and Set … Service Properties, for whichever service asks: its settings, merged with what a client leaves out."""

from functools import lru_cache

from kyanite.model import settings as stored
from kyanite.services.rest.context import RequestContext
from kyanite.wire import service_properties as wire
from kyanite.wire.http import Response
from kyanite.wire.malformed import Malformed
from kyanite.wire.service_properties import INITIAL, ServiceProperties

_MAX_BYTES = 64 * 1024
_EVERY_ELEMENT = wire.BLOB_ELEMENTS | wire.FILE_ELEMENTS


async def get_properties(context: RequestContext, service: str, elements: frozenset[str]) -> Response:
    properties = await load(context, service)
    return Response(200, [("Content-Type", "application/xml")], wire.encode(properties, elements))


async def set_properties(context: RequestContext, service: str, elements: frozenset[str]) -> Response:
    document = await context.request.body.read_all(_MAX_BYTES)
    if document is None:
        raise Malformed("RequestBodyTooLarge", MaxLimit=str(_MAX_BYTES))
    change = wire.decode(document, elements)

    def merged(present: bytes | None) -> bytes:
        return wire.encode(_decoded(present).updated(change), _EVERY_ELEMENT)

    await stored.merge(context.store.engine, context.account.name, service, merged)
    return Response(202)


async def get_stats(context: RequestContext) -> Response:
    """Answered by the secondary only, as the service does: the primary has no replication to tell of."""
    if not context.target.secondary:
        raise Malformed("InvalidQueryParameterValue", QueryParameterName="comp", QueryParameterValue="stats")
    body = wire.encode_stats(context.environment.clock())
    return Response(200, [("Content-Type", "application/xml")], body)


async def load(context: RequestContext, service: str) -> ServiceProperties:
    return _decoded(await stored.load(context.store.engine, context.account.name, service))


@lru_cache(maxsize=64)
def _decoded(document: bytes | None) -> ServiceProperties:
    """A pure function of what was just read, so that remembering it is safe."""
    return INITIAL if document is None else INITIAL.updated(wire.decode(document, _EVERY_ELEMENT))
