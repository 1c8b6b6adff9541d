"""List Queues: the parameters in, the XML out."""

from functools import partial

from kyanite.model.queues import queue
from kyanite.model.queues.records import QueueRecord
from kyanite.services.rest.context import RequestContext
from kyanite.services.rest.paging import list_page, list_request_of, metadata_element
from kyanite.slices import encoded
from kyanite.wire.http import Response

_PARTS = frozenset({"metadata"})


async def list_queues(context: RequestContext) -> Response:
    request = list_request_of(context.parameters, _PARTS)
    page = await queue.list_queues(
        context.store.engine,
        context.account.name,
        prefix=request.prefix,
        first=request.first,
        limit=request.limit,
    )
    with_metadata = "metadata" in request.parts
    items = await encoded(page.items, partial(_item, with_metadata))
    return list_page(context, request.limit, "Queues", items, page.next_name)


def _item(with_metadata: bool, item: tuple[str, QueueRecord]) -> str:
    name, record = item
    metadata = metadata_element(record.metadata) if with_metadata else ""
    return f"<Queue><Name>{name}</Name>{metadata}</Queue>"
