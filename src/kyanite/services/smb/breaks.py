"""Sending oplock and lease breaks to the clients of this process (MS-SMB2 §3.3.4.6, §3.3.4.7).

Any process may cause a break, by SMB or by REST. It writes a row for the process that serves the client and notifies
it. A break that a request of this process has caused is sent before the response to that request, so that no client
hears of a change before those that cache what was changed: the chain awaits ``deliver`` while ``is_pending``.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from weakref import WeakValueDictionary

from kyanite.engine.api import EngineError, Snapshot, Subscription, Transaction
from kyanite.model.accounts import Store
from kyanite.model.files.opens import grants
from kyanite.model.files.opens.records import BreakMessage
from kyanite.rules.oplocks import Caching
from kyanite.wire.smb2 import oplock_break
from kyanite.wire.smb2.body import FileId
from kyanite.wire.smb2.create import OplockLevel

_AT_ONCE = 100
_AGAIN_SECONDS = 1.0
"""Notifications may be lost, so the rows are read after this time without one."""
_LEVELS: Mapping[int, OplockLevel] = {
    Caching.NONE.value: OplockLevel.NONE,
    Caching.READ.value: OplockLevel.II,
}


@dataclass(eq=False, frozen=True, slots=True, weakref_slot=True)
class BreakTarget:
    """The client of a handle. It lasts as long as its open."""

    file_id: FileId
    send: Callable[[bytes], None]
    """Sends an OPLOCK_BREAK with this body."""


class BreakDelivery:
    """All stores that this process serves."""

    def __init__(self) -> None:
        self._stores: dict[bytes, _StoreDelivery] = {}

    def add(self, store: Store, target: BreakTarget) -> None:
        """Send the breaks of this handle to its client, as long as the target exists."""
        owner = store.membership.id
        delivery = self._stores.get(owner)
        if delivery is None:
            delivery = self._stores[owner] = _StoreDelivery(store)
        delivery.targets[target.file_id.persistent] = target

    @property
    def is_pending(self) -> bool:
        """Whether breaks wait to be sent, as far as this process knows."""
        return any(each.is_pending for each in self._stores.values())

    async def deliver(self) -> None:
        for each in list(self._stores.values()):
            if each.is_pending:
                await each.deliver()


class _StoreDelivery:
    def __init__(self, store: Store) -> None:
        self.targets: WeakValueDictionary[int, BreakTarget] = WeakValueDictionary()
        self._engine = store.engine
        self._owner = store.membership.id
        self._subscription: Subscription = store.engine.subscribe(grants.BREAKS + self._owner)
        self._sent: set[bytes] = set()
        """The keys of rows that are still to be deleted."""
        self._reading = 0
        self._repeating = asyncio.get_running_loop().create_task(self._repeat())

    @property
    def is_pending(self) -> bool:
        return self._subscription.is_notified or self._reading > 0

    async def deliver(self) -> None:
        """Send what is there. Nothing is awaited between reading and sending, so nothing is sent twice."""
        self._reading += 1
        try:
            rows = await self._engine.read(self._read)
        finally:
            self._reading -= 1
        for key, message in rows:
            if key not in self._sent:
                self._sent.add(key)
                self._send(message)

    def _read(self, snap: Snapshot) -> list[tuple[bytes, BreakMessage]]:
        return grants.read_messages(snap, self._owner, _AT_ONCE + len(self._sent))

    def _send(self, message: BreakMessage) -> None:
        target = self.targets.get(message.handle_id)
        if target is None:  # It was closed, and what it might cache has ended with it.
            return
        if message.version:
            body = oplock_break.encode_lease_break(
                key=message.lease_key,
                current_state=message.current,
                new_state=message.to,
                new_epoch=message.epoch if message.version > 1 else 0,
                is_acknowledged=message.is_acknowledged,
            )
        else:
            body = oplock_break.encode_oplock(_LEVELS[message.to], target.file_id)
        target.send(body)

    async def _repeat(self) -> None:
        """Until the engine is closed."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_AGAIN_SECONDS):
                    if await anext(self._subscription, self) is self:
                        return
            with suppress(EngineError):
                await self.deliver()
                while self._sent:
                    await self._delete()
                    await self.deliver()

    async def _delete(self) -> None:
        sent = list(self._sent)

        def body(tx: Transaction) -> None:
            for key in sent:
                tx.delete(key)

        await self._engine.run(body, durable=False)
        self._sent.difference_update(sent)
