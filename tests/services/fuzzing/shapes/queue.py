"""The shapes of the requests to the Queue service."""

from kyanite.services.queue.service import DEFINITION
from tests.services.fuzzing.shapes.shape import Shape

OPERATIONS = DEFINITION.operations

_META = "x-ms-meta-name x-ms-meta-Other_1"

SHAPES = {
    "List Queues": Shape("/", may="?prefix ?marker ?maxresults ?include:queue-include"),
    "Set Queue Service Properties": Shape("/", body="queue_properties"),
    "Get Queue Service Properties": Shape("/"),
    "Get Queue Service Stats": Shape("-secondary/"),
    "Get User Delegation Key": Shape("/", "x-ms-version=2026-10-06", body="key_info", weight=0.4),
    "Create Queue": Shape("/{queue}", may=_META, weight=2),
    "Delete Queue": Shape("/{spare_queue}", weight=0.4),
    "Get Queue Metadata": Shape("/{queue}"),
    "Set Queue Metadata": Shape("/{queue}", may=_META),
    "Get Queue ACL": Shape("/{queue}"),
    "Set Queue ACL": Shape("/{queue}", body="queue_acl"),
    "Peek Messages": Shape("/{queue}/messages", may="?numofmessages"),
    "Get Messages": Shape(
        "/{queue}/messages", may="?numofmessages ?visibilitytimeout:get-visibilitytimeout", weight=2
    ),
    "Put Message": Shape("/{queue}/messages", may="?messagettl ?visibilitytimeout", body="message", weight=4),
    "Clear Messages": Shape("/{queue}/messages", weight=0.6),
    "Update Message": Shape(
        "/{message}", needs="?popreceipt ?visibilitytimeout", body="optional_message", weight=2
    ),
    "Delete Message": Shape("/{message}", needs="?popreceipt", weight=1.5),
}
