"""List Queues: the parameters in, the XML out."""

from kyanite.model.queues import queue
from kyanite.model.queues.queue import QueueRecord
from kyanite.services.rest.context import RequestContext
from kyanite.services.rest.paging import (
    echo_of,
    encode_marker,
    enumeration,
    includes_of,
    marker_of,
    max_results_of,
    metadata_element,
)
from kyanite.wire.http import Response

_PARTS = frozenset({"metadata"})


async def list_queues(context: RequestContext) -> Response:
    parameters = context.parameters
    with_metadata = "metadata" in includes_of(parameters, _PARTS)
    limit = max_results_of(parameters)
    page = await queue.list_queues(
        context.store.engine,
        context.account.name,
        prefix=parameters.get("prefix", ""),
        first=marker_of(parameters),
        limit=limit,
    )
    items = "".join(_item(name, record, with_metadata) for name, record in page.items)
    return enumeration(
        context,
        echo=echo_of(context, limit),
        items=f"<Queues>{items}</Queues>",
        next_marker=encode_marker(page.next_name),
    )


def _item(name: str, record: QueueRecord, with_metadata: bool) -> str:
    metadata = metadata_element(record.metadata) if with_metadata else ""
    return f"<Queue><Name>{name}</Name>{metadata}</Queue>"
