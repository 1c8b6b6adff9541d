"""An idempotent consumer: a message may be delivered twice, but its work is done once.

A queue delivers at least once. If a consumer takes longer than its visibility timeout, or dies before it has deleted
its message, another one gets the same message. So the effect is written under the message's own
id, on condition that nothing is there yet: the second consumer finds it done and only deletes the message. A message
that keeps failing goes to a poison queue.

    AZURE_STORAGE_CONNECTION_STRING="UseDevelopmentStorage=true" python examples/idempotent_consumer.py
"""

import os
import time
import uuid

from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError
from azure.storage.blob import BlobServiceClient, ContainerClient
from azure.storage.queue import QueueClient, QueueMessage, QueueServiceClient

VISIBILITY_SECONDS = 1
ATTEMPTS_MAX = 3


def consume(orders: QueueClient, receipts: ContainerClient, poison: QueueClient, name: str) -> int:
    """Work until the queue is empty. Returns how many messages this consumer has finished."""
    finished = 0
    while message := orders.receive_message(visibility_timeout=VISIBILITY_SECONDS):
        if (message.dequeue_count or 0) > ATTEMPTS_MAX:
            poison.send_message(message.content)
            print(f"{name} moves {message.content!r} to the poison queue after {ATTEMPTS_MAX} attempts")
        elif not ship(receipts, message, name):
            continue
        try:
            orders.delete_message(message)
            finished += 1
        except ResourceNotFoundError:
            print(f"{name} was too slow: another consumer has got {message.content!r} since")
    return finished


def ship(receipts: ContainerClient, message: QueueMessage, name: str) -> bool:
    """Do the work of the message, unless it is done already. False when it fails."""
    if message.content.startswith("broken"):
        print(f"{name} fails on {message.content!r}, attempt {message.dequeue_count}")
        return False
    try:
        receipts.upload_blob(message.id, f"{message.content} shipped by {name}")
        print(f"{name} ships {message.content!r}")
    except ResourceExistsError:
        print(f"{name} finds {message.content!r} shipped already")
    return True


def main() -> None:
    settings = os.environ["AZURE_STORAGE_CONNECTION_STRING"]
    run = uuid.uuid4()
    queues = QueueServiceClient.from_connection_string(settings)
    orders, poison = queues.create_queue(f"orders-{run}"), queues.create_queue(f"poison-{run}")
    receipts = BlobServiceClient.from_connection_string(settings).create_container(f"receipts-{run}")
    for order in ("apples", "pears", "broken order", "plums"):
        orders.send_message(order)

    # The first consumer ships an order and dies before it can delete the message.
    unlucky = orders.receive_message(visibility_timeout=VISIBILITY_SECONDS)
    assert unlucky is not None
    ship(receipts, unlucky, "the unlucky one")
    print("the unlucky one dies")

    finished = 0
    while orders.get_queue_properties().approximate_message_count:
        finished += consume(orders, receipts, poison, "the next one")
        time.sleep(VISIBILITY_SECONDS / 4)
    shipped = [
        receipts.download_blob(name, encoding="utf-8").readall() for name in receipts.list_blob_names()
    ]
    print(f"{finished} messages finished, {len(shipped)} orders shipped, each once")
    print(f"in the poison queue: {[message.content for message in poison.peek_messages()]}")
    for queue in (orders, poison):
        queue.delete_queue()
    receipts.delete_container()


if __name__ == "__main__":
    main()
