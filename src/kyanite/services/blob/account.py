"""The Blob service of an account over REST: its properties, its stats, and what kind of account it is."""

from kyanite.services.rest import service_properties
from kyanite.services.rest.context import RequestContext
from kyanite.wire.http import Response
from kyanite.wire.service_properties import BLOB_ELEMENTS


async def get_properties(context: RequestContext) -> Response:
    return await service_properties.get_properties(context, "blob", BLOB_ELEMENTS)


async def set_properties(context: RequestContext) -> Response:
    return await service_properties.set_properties(context, "blob", BLOB_ELEMENTS)


async def get_stats(context: RequestContext) -> Response:
    return await service_properties.get_stats(context)


async def get_information(_: RequestContext) -> Response:
    """Every account is a general-purpose one, replicated to a readable secondary as far as clients can tell."""
    return Response(
        200,
        [
            ("x-ms-sku-name", "Standard_RAGRS"),
            ("x-ms-account-kind", "StorageV2"),
            ("x-ms-is-hns-enabled", "false"),
        ],
    )
