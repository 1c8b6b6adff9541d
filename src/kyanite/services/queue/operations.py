"""The operations of the Queue service, in the order of the REST reference.

The last column is what the caller needs (``rules/authorization.py``); nothing here is ever public. Among rows that
differ only by a parameter the first that fits the request counts.
"""

from kyanite.rules.authorization import Access
from kyanite.services.queue import account, lists, message, queue
from kyanite.services.rest.context import Resource
from kyanite.services.rest.operations import Op, not_yet, query

SERVICE, QUEUE, MESSAGES, MESSAGE = Resource.SERVICE, Resource.CONTAINER, Resource.MESSAGES, Resource.OBJECT

KEY_ONLY = Access()
KEY_ONLY_WRITE = Access(writes=True)


# fmt: off
OPERATIONS = (
    # The service
    Op("List Queues", "GET", SERVICE, query(comp="list"), lists.list_queues, Access(account="s l")),
    Op("Get Queue Service Properties", "GET", SERVICE, query("service", "properties"), account.get_properties, Access(account="s r")),
    Op("Set Queue Service Properties", "PUT", SERVICE, query("service", "properties"), account.set_properties, Access(account="s w", writes=True)),
    Op("Get Queue Service Stats", "GET", SERVICE, query("service", "stats"), account.get_stats, Access(account="s r")),
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
