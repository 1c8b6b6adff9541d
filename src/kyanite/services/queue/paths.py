"""What the paths of the Queue service mean, and who guards what they name."""

from kyanite.model.queues import queue
from kyanite.rules import names
from kyanite.rules.refusals import Reason, Refused
from kyanite.services.queue.queue import key_of
from kyanite.services.rest.access import Policed
from kyanite.services.rest.context import Exchange, Resource
from kyanite.wire.malformed import Malformed

_MESSAGES = "messages"
_WRITES = frozenset(("PUT", "DELETE"))


def locate(exchange: Exchange) -> Resource:
    """``/queue``, ``/queue/messages`` or ``/queue/messages/id``."""
    target = exchange.target
    exchange.container, exchange.object_name = target.first, ""
    if not target.first:
        if target.rest or (exchange.request.method in _WRITES and "comp" not in exchange.parameters):
            # A queue was meant, and its name is empty.
            raise Refused(Reason.INVALID_RESOURCE_NAME)
        return Resource.SERVICE
    names.check_queue(target.first)
    if not target.rest:
        return Resource.CONTAINER
    word, _, exchange.object_name = target.rest.partition("/")
    if word != _MESSAGES:
        raise Malformed("InvalidUri")
    return Resource.OBJECT if exchange.object_name else Resource.MESSAGES


async def guardian(exchange: Exchange) -> Policed | None:
    record = await queue.find(exchange.environment.engine, key_of(exchange))
    return None if record is None else Policed(record.policies)
