"""The engine of a process that is a member of a store: without its membership it commits nothing and reads nothing.

A transaction reads the row that says that its process is alive, together with all else that it reads. So there is no
moment at which a process that was declared dead could still commit, however long it was paused, and nothing else has to
check who holds what.

A read needs no row. It is refused when the last renewal was so long ago that the process may have been declared dead:
a process that wakes up serves nothing by keys or settings of accounts that were changed while it slept.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from kyanite.engine.api import Engine, EngineBusy, Scope, Snapshot, Steps, Subscription, Transaction
from kyanite.model import keys
from kyanite.model.members import DeclaredDead
from kyanite.server.nodes.membership import EngineMembership

T = TypeVar("T")


class FencedEngine:
    def __init__(self, engine: Engine, membership: EngineMembership) -> None:
        self._engine = engine
        self._membership = membership
        self._token = keys.living_member(membership.id)
        self.subscribe: Callable[[bytes], Subscription] = engine.subscribe

    def read(self, body: Callable[[Snapshot], T]) -> Awaitable[T]:
        if self._membership.is_fresh:
            return self._engine.read(body)
        return self._when_fresh(lambda: self._engine.read(body))

    def read_in_steps(self, body: Callable[[Snapshot], Steps[T]]) -> Awaitable[T]:
        if self._membership.is_fresh:
            return self._engine.read_in_steps(body)
        return self._when_fresh(lambda: self._engine.read_in_steps(body))

    async def _when_fresh(self, read: Callable[[], Awaitable[T]]) -> T:
        await self._membership.joined
        if not self._membership.is_fresh:
            raise EngineBusy("This process has not been able to renew its membership for a while.")
        return await read()

    def run(self, body: Callable[[Transaction], T], *scopes: Scope, durable: bool = True) -> Awaitable[T]:
        token, doubt = self._token, self._membership.doubt

        def fenced(tx: Transaction) -> T:
            if tx.get(token) is None:
                doubt()
                raise DeclaredDead("The other processes of this store have declared this one dead.")
            return body(tx)

        if self._membership.joined.done():
            return self._engine.run(fenced, *scopes, durable=durable)
        return self._run_when_joined(fenced, *scopes, durable=durable)

    async def _run_when_joined(self, body: Callable[[Transaction], T], *scopes: Scope, durable: bool) -> T:
        await self._membership.joined
        return await self._engine.run(body, *scopes, durable=durable)

    async def close(self) -> None:
        """Leave, and close the engine."""
        await self._membership.left()
        await self._engine.close()
