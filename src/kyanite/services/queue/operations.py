"""The operations of the Queue service, in the order of the REST reference.

The last column is what the caller needs (``rules/authorization.py``); nothing here is ever public. Among rows that
differ only by a parameter the first that fits the request counts.
"""

from functools import partial

from kyanite.rules.authorization import Access
from kyanite.services.queue import lists, message, queue
from kyanite.services.rest.context import Resource
from kyanite.services.rest.operations import Op, delegation_key, query
from kyanite.services.rest.service_properties import properties_operations, stats_operation
from kyanite.services.rest.user_delegation import get_user_delegation_key
from kyanite.wire.service_properties import QUEUE_ELEMENTS

SERVICE, QUEUE, MESSAGES, MESSAGE = Resource.SERVICE, Resource.CONTAINER, Resource.MESSAGES, Resource.OBJECT

LIST_QUEUES = Access(account="s l", role="queues/read")
CREATE_QUEUE = Access(account="c cw", writes=True, role="queues/write")
DELETE_QUEUE = Access(account="c d", writes=True, role="queues/delete")
READ_QUEUE = Access(account="c r", service="r", role="queues/read")
WRITE_QUEUE = Access(account="c w", writes=True, role="queues/write")
GET_ACL = Access(role="queues/getAcl", role_since="2026-02-06")
SET_ACL = Access(role="queues/setAcl", role_since="2026-02-06", writes=True)
PEEK = Access(account="o r", service="r", role="messages/read")
GET = Access(account="o p", service="p", writes=True, role="messages/process|messages/delete&messages/read")
PUT = Access(account="o a", service="a", writes=True, role="messages/add|messages/write")
CLEAR = Access(account="o d", writes=True, role="messages/delete")
UPDATE = Access(account="o u", service="u", writes=True, role="messages/write")
DELETE = Access(account="o p", service="p", writes=True, role="messages/process|messages/delete")


# fmt: off
OPERATIONS = (
    # The service
    Op("List Queues", "GET", SERVICE, query(comp="list"), lists.list_queues, LIST_QUEUES),
    *properties_operations("Queue", QUEUE_ELEMENTS),
    stats_operation("Queue"),
    Op("Get User Delegation Key", "POST", SERVICE, query("service", "userdelegationkey"), partial(get_user_delegation_key, service="queue"), delegation_key("queue", "2026-02-06")),

    # Queues
    Op("Create Queue", "PUT", QUEUE, query(), queue.create_queue, CREATE_QUEUE),
    Op("Delete Queue", "DELETE", QUEUE, query(), queue.delete_queue, DELETE_QUEUE),
    Op("Get Queue Metadata", "GET HEAD", QUEUE, query(comp="metadata"), queue.get_queue_metadata, READ_QUEUE),
    Op("Set Queue Metadata", "PUT", QUEUE, query(comp="metadata"), queue.set_queue_metadata, WRITE_QUEUE),
    Op("Get Queue ACL", "GET HEAD", QUEUE, query(comp="acl"), queue.get_queue_acl, GET_ACL),
    Op("Set Queue ACL", "PUT", QUEUE, query(comp="acl"), queue.set_queue_acl, SET_ACL),

    # Messages
    Op("Peek Messages", "GET", MESSAGES, query(), message.peek_messages, PEEK, when="?peekonly: true"),
    Op("Get Messages", "GET", MESSAGES, query(), message.get_messages, GET),
    Op("Put Message", "POST", MESSAGES, query(), message.put_message, PUT),
    Op("Clear Messages", "DELETE", MESSAGES, query(), message.clear_messages, CLEAR),
    Op("Update Message", "PUT", MESSAGE, query(), message.update_message, UPDATE),
    Op("Delete Message", "DELETE", MESSAGE, query(), message.delete_message, DELETE),
)
# fmt: on
