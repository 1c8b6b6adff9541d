"""The kind of an account, over REST."""

from kyanite.services.rest.context import RequestContext
from kyanite.wire.http import Response


async def get_information(context: RequestContext) -> Response:
    settings = context.account.settings
    return Response(
        200,
        [
            ("x-ms-sku-name", settings.sku),
            ("x-ms-account-kind", settings.kind),
            ("x-ms-is-hns-enabled", "false"),
        ],
    )
