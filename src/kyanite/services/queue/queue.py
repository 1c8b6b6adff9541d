"""Queues over REST. They have no ETags and take no conditions: the last writer wins."""

from kyanite.model.queues import queue
from kyanite.model.queues.queue import QueueKey
from kyanite.services.rest.context import Exchange
from kyanite.services.rest.headers import metadata_headers, metadata_of
from kyanite.services.rest.policies import policies_document, policies_of
from kyanite.wire.http import Response

_PERMISSIONS = "raup"


def key_of(exchange: Exchange) -> QueueKey:
    return QueueKey(exchange.account.name, exchange.container)


async def create_queue(exchange: Exchange) -> Response:
    """Creating a queue that is there already is no error, if its metadata would be the same."""
    is_new = await queue.create(exchange.environment.engine, key_of(exchange), metadata_of(exchange.request))
    return Response(201 if is_new else 204)


async def delete_queue(exchange: Exchange) -> Response:
    await queue.delete(exchange.environment.engine, key_of(exchange))
    return Response(204)


async def get_queue_metadata(exchange: Exchange) -> Response:
    seen = await queue.see(exchange.environment.engine, key_of(exchange))
    headers = [("x-ms-approximate-messages-count", str(seen.message_count))]
    return Response(200, headers + metadata_headers(seen.record.metadata))


async def set_queue_metadata(exchange: Exchange) -> Response:
    await queue.set_metadata(exchange.environment.engine, key_of(exchange), metadata_of(exchange.request))
    return Response(204)


async def get_queue_acl(exchange: Exchange) -> Response:
    seen = await queue.see(exchange.environment.engine, key_of(exchange))
    return Response(200, [("Content-Type", "application/xml")], policies_document(seen.record.policies))


async def set_queue_acl(exchange: Exchange) -> Response:
    policies = await policies_of(exchange, _PERMISSIONS)
    await queue.set_policies(exchange.environment.engine, key_of(exchange), policies)
    return Response(204)
