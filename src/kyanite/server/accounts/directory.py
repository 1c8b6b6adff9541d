"""The accounts that this process serves, kept up to date while it runs.

Services look accounts up in ``accounts``, a dict that is changed in place. An ``Account`` is never changed: another one
takes its place, so what was verified with the old one, such as a signature, is not taken to be verified with the new
one. An account that has not changed stays the same object.

A process that has read a change says so in the process table. A command that has changed an account waits until every
process has (``all_obey``), so when it returns, no process serves the old state. A process that starts reads everything
before it serves.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress

from kyanite.engine.api import EngineClosed, EngineError
from kyanite.model import account_rows
from kyanite.model.account_rows import AccountRecord
from kyanite.model.accounts import Account, Store
from kyanite.server.accounts.sealed_keys import KeyFile, Sealer
from kyanite.server.accounts.served import check_well_known_key, served_accounts
from kyanite.server.config import StatedAccount
from kyanite.server.failures import Failure
from kyanite.server.processes.process_table import Slot, State
from kyanite.values import Instant

POLL_SECONDS = 1.0
"""Notifications may be lost."""
OBEY_SECONDS = 30.0
"""How long the other processes may take to obey a change. One that does not answer is killed before that."""
_OBEY_POLL_SECONDS = 0.005

_log = logging.getLogger("kyanite.accounts")

OnRemoved = Callable[[Collection[str]], Awaitable[None]]
"""Ends what clients of these accounts have in progress."""


class AccountDirectory:
    def __init__(
        self,
        store: Store,
        stated: Sequence[StatedAccount],
        key_file: KeyFile,
        *,
        host: str,
        allow_development_key: bool,
        slot: Slot,
    ) -> None:
        """``slot`` is that of this process; ``allow_development_key`` also if only this machine can reach the host."""
        self.accounts: dict[str, Account] = {}
        self.stored: Mapping[str, AccountRecord] = {}
        self.key_file = key_file
        self.on_removed: list[OnRemoved] = []
        self._store = store
        self._stated = stated
        self._host = host
        self._allow_development_key = allow_development_key
        self._slot = slot
        self._sealer: Sealer | None = None
        self._changed_at = Instant(-1)

    @property
    def stated(self) -> Mapping[str, StatedAccount]:
        return {account.name: account for account in self._stated}

    @property
    def allows_development_key(self) -> bool:
        return self._allow_development_key

    async def load(self) -> None:
        """Read the accounts. Raises a Failure with one sentence if their keys cannot be read."""
        stored = await self._store.engine.read_in_steps(account_rows.load_all)
        self._sealer = self._sealer if self._can_open(stored.records) else None
        served = served_accounts(self._stated, stored.records, self._opened)
        if not self._allow_development_key:
            check_well_known_key(served, self._host)
        present = {
            name: Account(name, each.keys, self._store, each.settings, each.fixed)
            for name, each in served.items()
        }
        removed = self.accounts.keys() - present.keys()
        kept = {name: old for name, old in self.accounts.items() if present.get(name) == old}
        self.accounts.clear()
        self.accounts.update(present | kept)
        self.stored = stored.records
        if removed:
            await self._end_all_of(removed)
        self._changed_at = stored.changed_at
        self._slot.accounts_at = stored.changed_at

    async def _end_all_of(self, removed: Collection[str]) -> None:
        for end in self.on_removed:
            await end(removed)
        # What cancelled requests had already handed to the engine is committed before this is.
        for durable in (False, True):
            await self._store.engine.run(lambda tx: None, durable=durable)

    def _can_open(self, records: Mapping[str, AccountRecord]) -> bool:
        """Whether the sealer in memory opens the stored keys. If not, the key file is read again."""
        sealer = self._sealer
        return sealer is not None and all(
            sealer.open(name, sealed) is not None
            for name, record in records.items()
            for sealed in record.sealed_keys
        )

    def _opened(self, name: str, sealed: bytes) -> bytes:
        if self._sealer is None:
            self._sealer = self.key_file.sealer()
        return self.key_file.opened(self._sealer, name, sealed)

    async def follow(self) -> None:
        """Read the accounts again whenever one has changed, until the engine is closed."""
        engine = self._store.engine
        notifications = engine.subscribe(account_rows.TOPIC)
        while True:
            try:
                if await engine.read(account_rows.last_change) != self._changed_at:
                    await self.load()
            except EngineClosed:
                return
            except EngineError as error:
                _log.warning("accounts cannot be read", extra={"why": str(error)})
            except Failure as failure:
                _log.error("accounts cannot be read", extra={"why": failure.sentence})
            except Exception:
                _log.exception("accounts cannot be read")
            with suppress(TimeoutError):
                try:
                    await asyncio.wait_for(anext(notifications), POLL_SECONDS)
                except StopAsyncIteration:
                    return


async def all_obey(workers: Mapping[str, Slot], changed_at: Instant) -> None:
    """Wait until every process that serves has read a change. Raises a Failure that names one that has not."""
    deadline = asyncio.get_running_loop().time() + OBEY_SECONDS
    while late := [slot.name for slot in workers.values() if _may_be_behind(slot, changed_at)]:
        if asyncio.get_running_loop().time() > deadline:
            raise Failure(f"The change is stored, but {late[0]} has not confirmed yet that it obeys it.")
        await asyncio.sleep(_OBEY_POLL_SECONDS)


def _may_be_behind(slot: Slot, changed_at: Instant) -> bool:
    """A process that is gone serves nothing, and its successor begins by reading everything."""
    return slot.state is not State.GONE and slot.accounts_at < changed_at
