"""The Table service of an account over REST: its properties and its stats."""

from kyanite.services.rest import service_properties
from kyanite.services.rest.context import RequestContext
from kyanite.wire.http import Response
from kyanite.wire.service_properties import TABLE_ELEMENTS


async def get_properties(context: RequestContext) -> Response:
    return await service_properties.get_properties(context, "table", TABLE_ELEMENTS)


async def set_properties(context: RequestContext) -> Response:
    return await service_properties.set_properties(context, "table", TABLE_ELEMENTS)


async def get_stats(context: RequestContext) -> Response:
    return await service_properties.get_stats(context)
