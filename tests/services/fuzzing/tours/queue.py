"""What the official client for queues can do."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

from azure.storage.queue import AccessPolicy, Metrics, QueueServiceClient, RetentionPolicy

Step = Callable[[], Any]


def steps(url: str, key: str, options: dict[str, Any]) -> Iterator[Step]:
    service = QueueServiceClient(url, key, **options)
    retention = RetentionPolicy(enabled=True, days=5)
    yield lambda: service.set_service_properties(
        minute_metrics=Metrics(enabled=True, retention_policy=retention)
    )
    yield service.get_service_properties
    yield service.get_service_stats
    for name in ("work", "jobs", "spare-queue"):
        yield partial(service.create_queue, name, metadata={"a": "b"})
    yield lambda: list(service.list_queues("w", include_metadata=True, results_per_page=1))
    work = service.get_queue_client("work")
    yield work.get_queue_properties
    yield lambda: work.set_queue_metadata({"c": "d"})
    yield lambda: work.set_queue_access_policy(
        {"reader": AccessPolicy("rp", datetime(2027, 1, 1, tzinfo=UTC))}
    )
    yield work.get_queue_access_policy
    yield lambda: work.send_message("text", visibility_timeout=5, time_to_live=600)
    yield lambda: work.send_message("<other & text>")
    yield lambda: work.send_message("third", time_to_live=-1)
    yield lambda: work.peek_messages(5)
    got: list[Any] = []
    yield lambda: got.extend(
        work.receive_messages(messages_per_page=2, visibility_timeout=30, max_messages=2)
    )
    yield lambda: work.update_message(got[0], visibility_timeout=10, content="new")
    yield lambda: work.update_message(got[1], visibility_timeout=0)
    yield lambda: work.delete_message(got[1])
    yield work.clear_messages
    yield lambda: service.delete_queue("spare-queue")
