"""The Table service of an account over REST: its properties and its stats."""

from kyanite.services.rest import service_properties
from kyanite.services.rest.context import Exchange
from kyanite.wire.http import Response
from kyanite.wire.service_properties import TABLE_ELEMENTS


async def get_properties(exchange: Exchange) -> Response:
    return await service_properties.get_properties(exchange, "table", TABLE_ELEMENTS)


async def set_properties(exchange: Exchange) -> Response:
    return await service_properties.set_properties(exchange, "table", TABLE_ELEMENTS)


async def get_stats(exchange: Exchange) -> Response:
    return await service_properties.get_stats(exchange)
