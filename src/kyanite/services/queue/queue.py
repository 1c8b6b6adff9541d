"""Queues over REST. They have no ETags and take no conditions: the last writer wins."""

from typing import Final

from kyanite.model.queues import queue
from kyanite.model.queues.queue import QueueKey
from kyanite.services.rest.context import RequestContext
from kyanite.services.rest.headers import metadata_headers, metadata_of
from kyanite.services.rest.policies import policies_document, policies_of
from kyanite.wire.http import Response

_PERMISSIONS: Final = "raup"


def key_of(context: RequestContext) -> QueueKey:
    return QueueKey(context.account.name, context.container)


async def create_queue(context: RequestContext) -> Response:
    """Creating a queue that exists is no error if its metadata is the same."""
    is_new = await queue.create(context.store.engine, key_of(context), metadata_of(context.request))
    return Response(201 if is_new else 204)


async def delete_queue(context: RequestContext) -> Response:
    await queue.delete(context.store.engine, key_of(context))
    return Response(204)


async def get_queue_metadata(context: RequestContext) -> Response:
    found = await queue.get_properties(context.store.engine, key_of(context))
    headers = [("x-ms-approximate-messages-count", str(found.message_count))]
    return Response(200, headers + metadata_headers(found.record.metadata))


async def set_queue_metadata(context: RequestContext) -> Response:
    await queue.set_metadata(context.store.engine, key_of(context), metadata_of(context.request))
    return Response(204)


async def get_queue_acl(context: RequestContext) -> Response:
    found = await queue.get_properties(context.store.engine, key_of(context))
    return Response(200, [("Content-Type", "application/xml")], policies_document(found.record.policies))


async def set_queue_acl(context: RequestContext) -> Response:
    policies = await policies_of(context, _PERMISSIONS)
    await queue.set_policies(context.store.engine, key_of(context), policies)
    return Response(204)
