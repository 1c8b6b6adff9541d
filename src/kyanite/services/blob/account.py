"""The Blob service of an account over REST: its properties, its stats, and the kind of the account."""

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
    """Every account is general-purpose and reports a readable secondary."""
    return Response(
        200,
        [
            ("x-ms-sku-name", "Standard_RAGRS"),
            ("x-ms-account-kind", "StorageV2"),
            ("x-ms-is-hns-enabled", "false"),
        ],
    )
