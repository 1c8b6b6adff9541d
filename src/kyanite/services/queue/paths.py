"""What the paths of the Queue service mean, and the ACL lookup of a queue."""

from typing import Final

from kyanite.model.queues import queue
from kyanite.rules import names
from kyanite.rules.refusals import Reason, Refused
from kyanite.services.queue.queue import key_of
from kyanite.services.rest.authentication import ContainerAcl
from kyanite.services.rest.context import Location, RequestContext, Resource
from kyanite.wire.http import Request
from kyanite.wire.malformed import Malformed
from kyanite.wire.uri import Target

_MESSAGES: Final = "messages"
_WRITES: Final = frozenset(("PUT", "DELETE"))


def locate(request: Request, target: Target, parameters: dict[str, str]) -> Location:
    """``/queue``, ``/queue/messages`` or ``/queue/messages/id``."""
    if not target.first:
        if target.rest or (request.method in _WRITES and "comp" not in parameters):
            # A queue was meant, and its name is empty.
            raise Refused(Reason.INVALID_RESOURCE_NAME)
        return Location(Resource.SERVICE)
    names.check_queue(target.first)
    if not target.rest:
        return Location(Resource.CONTAINER, target.first)
    word, _, message_id = target.rest.partition("/")
    if word != _MESSAGES:
        raise Malformed("InvalidUri")
    return Location(Resource.OBJECT if message_id else Resource.MESSAGES, target.first, message_id)


async def acl_lookup(context: RequestContext) -> ContainerAcl | None:
    record = await queue.find(context.store.engine, key_of(context))
    return None if record is None else ContainerAcl(record.policies)
