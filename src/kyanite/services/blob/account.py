"""The kind of an account, over REST."""

from kyanite.services.rest.context import RequestContext
from kyanite.wire.http import Response


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
