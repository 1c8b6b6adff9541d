"""Thirty-two consumers on one queue of ten thousand messages, and ``kill -9`` of every process in between.

Each consumer gets messages, and deletes one after the other. Whatever happens to the server, every message is
delivered, none to a second consumer while the first has it to itself, and none after its deletion was acknowledged.
"""

import asyncio
import time
from dataclasses import dataclass, field
from xml.etree import ElementTree

from tests.faults.client import BROKEN, Connection, token_of
from tests.server_process import ServerProcess

MESSAGES = 10_000
CONSUMERS = 32
KILLS_AFTER = (3_000, 6_500)
"""How many messages are deleted when the server dies."""
TIMEOUT_SECONDS = 4
QUEUE = "work"


@dataclass(slots=True)
class Delivery:
    requested_at: float
    answered_at: float


@dataclass(slots=True)
class Ledger:
    """What the clients know of the messages, by id."""

    put: set[str] = field(default_factory=set)
    deliveries: dict[str, list[Delivery]] = field(default_factory=dict)
    deleted_at: dict[str, float] = field(default_factory=dict)
    """When the deletion of a message was acknowledged."""
    unsure: set[str] = field(default_factory=set)
    """Messages that the server died over while they were being deleted."""

    def check_delivery(self, message: str, delivery: Delivery) -> None:
        before = self.deliveries.setdefault(message, [])
        for earlier in before:
            assert delivery.answered_at >= earlier.requested_at + TIMEOUT_SECONDS, (
                "two had the message at once"
            )
        assert delivery.requested_at < self.deleted_at.get(message, float("inf")), "it had been deleted"
        before.append(delivery)


async def fill(server: ServerProcess, token: str, ledger: Ledger) -> None:
    async def produce(connection: Connection, numbers: range) -> None:
        for number in numbers:
            body = f"<QueueMessage><MessageText>{number}</MessageText></QueueMessage>".encode()
            answer = await connection.request("POST", f"{QUEUE}/messages", body)
            assert answer.status == 201, answer
            ledger.put.add(ElementTree.fromstring(answer.body).findtext("QueueMessage/MessageId") or "")

    async with Connection(server, token, "queue") as first:
        assert (await first.request("PUT", QUEUE)).status == 201
    connections = [await Connection(server, token, "queue").open() for _ in range(CONSUMERS)]
    async with asyncio.TaskGroup() as group:
        for lane, connection in enumerate(connections):
            group.create_task(produce(connection, range(lane, MESSAGES, CONSUMERS)))
    for connection in connections:
        await connection.close()


async def consume(server: ServerProcess, token: str, ledger: Ledger, until: int) -> None:
    """Get and delete until so many messages are deleted, or the server is gone, or no message is left."""
    try:
        async with Connection(server, token, "queue") as connection:
            while len(ledger.deleted_at) < until and await _consume_some(connection, ledger, until):
                pass
    except BROKEN:
        return


async def _consume_some(connection: Connection, ledger: Ledger, until: int) -> bool:
    requested_at = time.monotonic()
    query = f"numofmessages=32&visibilitytimeout={TIMEOUT_SECONDS}"
    answer = await connection.request("GET", f"{QUEUE}/messages", query=query)
    assert answer.status == 200, answer
    got = [
        (one.findtext("MessageId") or "", one.findtext("PopReceipt") or "")
        for one in ElementTree.fromstring(answer.body)
    ]
    for message, _ in got:
        ledger.check_delivery(message, Delivery(requested_at, time.monotonic()))
    for message, receipt in got:
        if len(ledger.deleted_at) >= until:
            break
        ledger.unsure.add(message)
        answer = await connection.request(
            "DELETE", f"{QUEUE}/messages/{message}", query=f"popreceipt={receipt}"
        )
        # A consumer that was too slow learns that its receipt is stale.
        assert answer.status in {204, 404}, answer
        ledger.unsure.discard(message)
        if answer.status == 204:
            assert message not in ledger.deleted_at, "it was deleted twice"
            ledger.deleted_at[message] = time.monotonic()
    if not got:
        await asyncio.sleep(0.05)
    return True


async def consume_all(server: ServerProcess, token: str, ledger: Ledger, until: int) -> None:
    """All consumers, until so many messages are deleted or, at the end, until none is left."""
    async with asyncio.timeout(120), asyncio.TaskGroup() as group:
        for _ in range(CONSUMERS):
            group.create_task(consume(server, token, ledger, until))
        if until == MESSAGES:
            group.create_task(_stop_when_empty(server, token, ledger))


async def _stop_when_empty(server: ServerProcess, token: str, ledger: Ledger) -> None:
    """Messages whose deletion got lost in a crash may be gone, so that the last few are never deleted again."""
    async with Connection(server, token, "queue") as connection:
        while len(ledger.deleted_at) < MESSAGES:
            answer = await connection.request("HEAD", QUEUE, query="comp=metadata")
            if answer.headers["x-ms-approximate-messages-count"] == "0":
                missing = ledger.put - set(ledger.deleted_at)
                assert missing <= ledger.unsure, "acknowledged and lost"
                ledger.deleted_at.update(dict.fromkeys(missing, time.monotonic()))
            await asyncio.sleep(0.1)


def test_every_message_is_delivered_and_none_to_two_at_once(server: ServerProcess) -> None:
    ledger = Ledger()
    token = token_of(server)
    asyncio.run(fill(server, token, ledger))
    assert len(ledger.put) == MESSAGES
    for until in KILLS_AFTER:
        asyncio.run(_consume_and_kill(server, token, ledger, until))
        server.restart()
    asyncio.run(consume_all(server, token, ledger, MESSAGES))
    assert set(ledger.deliveries) == ledger.put == set(ledger.deleted_at)
    again = sum(len(deliveries) > 1 for deliveries in ledger.deliveries.values())
    assert again > 0, "no consumer had a message when the server died"
    assert asyncio.run(_left(server, token)) == 0


async def _consume_and_kill(server: ServerProcess, token: str, ledger: Ledger, until: int) -> None:
    """Let the consumers work, and pull the plug under them."""
    consumers = asyncio.create_task(consume_all(server, token, ledger, MESSAGES - 1))
    while len(ledger.deleted_at) < until and not consumers.done():
        await asyncio.sleep(0.01)
    await asyncio.to_thread(server.kill9)
    await consumers


async def _left(server: ServerProcess, token: str) -> int:
    async with Connection(server, token, "queue") as connection:
        answer = await connection.request("HEAD", QUEUE, query="comp=metadata")
        assert answer.status == 200
        return int(answer.headers["x-ms-approximate-messages-count"])
