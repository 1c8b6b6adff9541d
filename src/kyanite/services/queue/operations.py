"""The operations of the Queue service, in the order of the REST reference.

The last column is what the caller needs (``rules/authorization.py``); nothing here is ever public. Among rows that
differ only by a parameter the first that fits the request counts.
"""

from kyanite.rules.authorization import Access
from kyanite.services.queue import lists, message, queue
from kyanite.services.rest.context import Resource
from kyanite.services.rest.operations import KEY_ONLY, KEY_ONLY_WRITE, Op, not_yet, query
from kyanite.services.rest.service_properties import properties_operations, stats_operation
from kyanite.wire.service_properties import QUEUE_ELEMENTS

SERVICE, QUEUE, MESSAGES, MESSAGE = Resource.SERVICE, Resource.CONTAINER, Resource.MESSAGES, Resource.OBJECT


# fmt: off
OPERATIONS = (
    # The service
    Op("List Queues", "GET", SERVICE, query(comp="list"), lists.list_queues, Access(account="s l")),
    *properties_operations("Queue", QUEUE_ELEMENTS),
    stats_operation("Queue"),
    Op("Get User Delegation Key", "POST", SERVICE, query("service", "userdelegationkey"), not_yet, KEY_ONLY),

    # Queues
    Op("Create Queue", "PUT", QUEUE, query(), queue.create_queue, Access(account="c cw", writes=True)),
    Op("Delete Queue", "DELETE", QUEUE, query(), queue.delete_queue, Access(account="c d", writes=True)),
    Op("Get Queue Metadata", "GET HEAD", QUEUE, query(comp="metadata"), queue.get_queue_metadata, Access(account="c r", service="r")),
    Op("Set Queue Metadata", "PUT", QUEUE, query(comp="metadata"), queue.set_queue_metadata, Access(account="c w", writes=True)),
    Op("Get Queue ACL", "GET HEAD", QUEUE, query(comp="acl"), queue.get_queue_acl, KEY_ONLY),
    Op("Set Queue ACL", "PUT", QUEUE, query(comp="acl"), queue.set_queue_acl, KEY_ONLY_WRITE),

    # Messages
    Op("Peek Messages", "GET", MESSAGES, query(), message.peek_messages, Access(account="o r", service="r"), when="?peekonly: true"),
    Op("Get Messages", "GET", MESSAGES, query(), message.get_messages, Access(account="o p", service="p", writes=True)),
    Op("Put Message", "POST", MESSAGES, query(), message.put_message, Access(account="o a", service="a", writes=True)),
    Op("Clear Messages", "DELETE", MESSAGES, query(), message.clear_messages, Access(account="o d", writes=True)),
    Op("Update Message", "PUT", MESSAGE, query(), message.update_message, Access(account="o u", service="u", writes=True)),
    Op("Delete Message", "DELETE", MESSAGE, query(), message.delete_message, Access(account="o p", service="p", writes=True)),
)
# fmt: on
