"""The accounts that this process serves, kept up to date while it runs.

Services look accounts up in ``accounts``, a dict that is changed in place. An ``Account`` is never changed: another one
takes its place, so what was verified with the old one, such as a signature, is not taken to be verified with the new
one. An account that has not changed stays the same object.

A process that has read a change says so in the process table, and in a row if other nodes may serve the store too. A
command that has changed an account waits until every process has (``all_obey``), so when it returns, no process serves
the old state. A process that starts reads everything before it serves.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress

from kyanite.engine.api import EngineClosed, EngineError
from kyanite.model import account_rows
from kyanite.model.account_rows import AccountRecord
from kyanite.model.accounts import Account, Store
from kyanite.model.members import NO_CHANGE
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
_OBEY_ELSEWHERE_POLL_SECONDS = 0.02

_log = logging.getLogger("kyanite.accounts")

Confirm = Callable[[Instant], Awaitable[None]]
"""Tells the other nodes which change this process obeys."""
Late = Callable[[Instant], Awaitable[list[str]]]
"""Which processes of all nodes may not obey a change yet."""

OnRemoved = Callable[[Collection[str]], Awaitable[None]]
"""Ends what clients of these accounts have in progress: they are removed, or became read-only."""


class AccountDirectory:
    def __init__(
        self,
        store: Store,
        stated: Sequence[StatedAccount],
        key_file: KeyFile,
        *,
        host: str,
        allow_development_key: bool,
        slot: Slot | None,
        confirm: Confirm | None = None,
        has_default: bool = True,
        on_changed: Callable[[], None] = lambda: None,
        read_others: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """``slot`` is that of this process; ``allow_development_key`` also if only this machine can reach the host.
        ``confirm`` tells the processes of other nodes, if there may be any.

        There may be several stores, each with a directory. ``slot`` and ``confirm`` are those of the main one: before
        it says what this process obeys, it reads the others. ``has_default`` is whether the development account is
        served if there is no other. ``on_changed`` is called when ``accounts`` has changed."""
        self.accounts: dict[str, Account] = {}
        self.stored: Mapping[str, AccountRecord] = {}
        self.key_file = key_file
        self.on_removed: list[OnRemoved] = []
        self._store = store
        self._stated = stated
        self._host = host
        self._allow_development_key = allow_development_key
        self._slot = slot
        self._confirm = confirm
        self._has_default = has_default
        self._on_changed = on_changed
        self._read_others = read_others
        self._sealer: Sealer | None = None
        self._changed_at = Instant(-1)
        self._loading = asyncio.Lock()

    @property
    def stated(self) -> Mapping[str, StatedAccount]:
        return {account.name: account for account in self._stated}

    @property
    def allows_development_key(self) -> bool:
        return self._allow_development_key

    async def load(self) -> None:
        """Read the accounts. Raises a Failure with one sentence if their keys cannot be read."""
        async with self._loading:  # A state that was read earlier must not replace a later one.
            await self._load()

    async def _load(self) -> None:
        if self._confirm is not None and self._changed_at < 0:
            # From now on changes wait for this process.
            await self._confirm(NO_CHANGE)
        stored = await self._store.engine.read_in_steps(account_rows.load_all)
        self._sealer = self._sealer if self._can_open(stored.records) else None
        served = served_accounts(self._stated, stored.records, self._opened, has_default=self._has_default)
        if not self._allow_development_key:
            check_well_known_key(served, self._host)
        present = {
            name: Account(name, each.keys, self._store, each.settings, each.fixed)
            for name, each in served.items()
        }
        ended = self.accounts.keys() - present.keys()
        ended |= {name for name, old in self.accounts.items() if _ends_writes(old, present.get(name))}
        kept = {name: old for name, old in self.accounts.items() if present.get(name) == old}
        self.accounts.clear()
        self.accounts.update(present | kept)
        self.stored = stored.records
        self._on_changed()
        if ended:
            await self._end_all_of(ended)
        if self._read_others is not None:
            await self._read_others()
        if self._confirm is not None:
            await self._confirm(stored.changed_at)
        self._changed_at = stored.changed_at
        if self._slot is not None:
            self._slot.accounts_at = stored.changed_at

    async def _end_all_of(self, ended: Collection[str]) -> None:
        for end in self.on_removed:
            await end(ended)
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


async def all_obey(
    workers: Mapping[str, Slot], changed_at: Instant, late_elsewhere: Late | None = None
) -> None:
    """Wait until every process that serves has read a change. Raises a Failure that names one that has not.

    ``late_elsewhere`` looks at the processes of all nodes, if there may be several.
    """
    deadline = asyncio.get_running_loop().time() + OBEY_SECONDS
    while late := [slot.name for slot in workers.values() if _may_be_behind(slot, changed_at)]:
        await _wait_for(late, deadline, _OBEY_POLL_SECONDS)
    while late_elsewhere is not None and (late := await late_elsewhere(changed_at)):
        await _wait_for(late, deadline, _OBEY_ELSEWHERE_POLL_SECONDS)


async def _wait_for(late: Sequence[str], deadline: float, seconds: float) -> None:
    if asyncio.get_running_loop().time() > deadline:
        raise Failure(f"The change is stored, but {late[0]} has not confirmed yet that it obeys it.")
    await asyncio.sleep(seconds)


def _may_be_behind(slot: Slot, changed_at: Instant) -> bool:
    """A process that is gone serves nothing, and its successor begins by reading everything."""
    return slot.state is not State.GONE and slot.accounts_at < changed_at


def _ends_writes(old: Account, new: Account | None) -> bool:
    """Whether an account has become read-only. Requests that were allowed before may not commit after."""
    return new is not None and new.settings.read_only and not old.settings.read_only
