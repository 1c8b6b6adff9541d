"""A small world for tests of queues: one queue on a memory engine, and a clock that the test moves.

Everything is driven synchronously: nothing in here ever waits.
"""

from itertools import cycle

from kyanite.engine.api import Snapshot
from kyanite.engine.memory.engine import MemoryEngine
from kyanite.membership.api import OWNER_BYTES
from kyanite.model import keys
from kyanite.model.maintenance.tasks import TASKS, step_each, step_of
from kyanite.model.queues import message, queue
from kyanite.model.queues.message import Message, NewMessage, Receipt
from kyanite.model.queues.queue import QueueKey
from kyanite.values import TICKS_PER_SECOND, Instant
from tests.model.content.world import outcome

START = Instant(638_500_000_000_000_000)
QUEUE = QueueKey("acme", "work")


PROCESSES = tuple(bytes(OWNER_BYTES - 1) + bytes([number]) for number in range(3))


class QueueWorld:
    """Requests are served by three processes in turn, so one may delete what another has put."""

    def __init__(self) -> None:
        self.second = 0
        self.engine = MemoryEngine(clock=lambda: Instant(START + self.second * TICKS_PER_SECOND))
        self._maintenance = [step_of(self.engine, task) for task in TASKS]
        self._secrets = 0
        self._processes = cycle(PROCESSES)
        outcome(queue.create(self.engine, QUEUE, {}))

    def put(self, name: str, text: str = "", *, delay: int = 0, life: int | None = None) -> Message:
        new_message = NewMessage(name, text, delay, life, self._secret())
        return outcome(message.put(self.engine, QUEUE, new_message, process=next(self._processes)))

    def get(self, count: int = 1, timeout: int = 30) -> list[Message]:
        return outcome(
            message.get(
                self.engine,
                QUEUE,
                count=count,
                timeout_seconds=timeout,
                secret=self._secret(),
                process=next(self._processes),
            )
        )

    def peek(self, count: int = 32) -> list[Message]:
        return outcome(message.peek(self.engine, QUEUE, count=count, process=next(self._processes)))

    def update(self, name: str, receipt: Receipt, *, timeout: int = 0, text: str | None = None) -> Message:
        return outcome(
            message.update(
                self.engine,
                QUEUE,
                name,
                receipt,
                text=text,
                timeout_seconds=timeout,
                secret=self._secret(),
            )
        )

    def delete(self, name: str, receipt: Receipt) -> None:
        outcome(message.delete(self.engine, QUEUE, name, receipt, process=next(self._processes)))

    def clear(self) -> None:
        outcome(queue.clear(self.engine, QUEUE))

    def count(self) -> int:
        return outcome(queue.get_properties(self.engine, QUEUE)).message_count

    def clean_up(self) -> None:
        """Step until there is nothing to do."""
        for _ in range(1000):
            if not outcome(step_each(self._maintenance)):
                return
        raise AssertionError("The clean-up does not end.")

    def rows(self, prefix: bytes) -> list[tuple[bytes, bytes]]:
        def body(snap: Snapshot) -> list[tuple[bytes, bytes]]:
            return list(snap.scan(prefix, keys.after(prefix)))

        return outcome(self.engine.read(body))

    def _secret(self) -> bytes:
        self._secrets += 1
        return self._secrets.to_bytes(8, "big")
