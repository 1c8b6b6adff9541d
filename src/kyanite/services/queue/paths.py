"""What the paths of the Queue service mean, and the ACL lookup of a queue."""

from kyanite.model.queues import queue
from kyanite.rules import names
from kyanite.rules.refusals import Reason, Refused
from kyanite.services.queue.queue import key_of
from kyanite.services.rest.access import ContainerAcl
from kyanite.services.rest.context import RequestContext, Resource
from kyanite.wire.malformed import Malformed

_MESSAGES = "messages"
_WRITES = frozenset(("PUT", "DELETE"))


def locate(context: RequestContext) -> Resource:
    """``/queue``, ``/queue/messages`` or ``/queue/messages/id``."""
    target = context.target
    context.container, context.object_name = target.first, ""
    if not target.first:
        if target.rest or (context.request.method in _WRITES and "comp" not in context.parameters):
            # The request is about a queue with an empty name.
            raise Refused(Reason.INVALID_RESOURCE_NAME)
        return Resource.SERVICE
    names.check_queue(target.first)
    if not target.rest:
        return Resource.CONTAINER
    word, _, context.object_name = target.rest.partition("/")
    if word != _MESSAGES:
        raise Malformed("InvalidUri")
    return Resource.OBJECT if context.object_name else Resource.MESSAGES


async def acl_lookup(context: RequestContext) -> ContainerAcl | None:
    record = await queue.find(context.store.engine, key_of(context))
    return None if record is None else ContainerAcl(record.policies)
