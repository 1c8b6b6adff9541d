"""The stamps that a worker serves besides the main one, and the accounts of all of them.

Services look accounts up in ``accounts``, a dict that is changed in place; an account knows its store. Each stamp has a
directory of its own accounts. A stamp that cannot be opened, or is away, is tried again every few seconds and costs the
others nothing. A name that two stamps have belongs to the one that comes first, and the log says so.

A change of the accounts of a stamp is noted in the main stamp too: there every process says what it obeys. A process
that reads the accounts of the main stamp reads those of all others before it says so, and opens stamps that were added.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

from kyanite.engine.api import EngineError
from kyanite.model import accounts
from kyanite.model.accounts import Account
from kyanite.server.accounts.directory import AccountDirectory
from kyanite.server.config import StatedAccount
from kyanite.server.failures import Failure
from kyanite.server.stamps.opening import factory_for, is_prepared, prepare_stamp
from kyanite.server.stamps.stamp import MAIN, Stamp, all_stamps
from kyanite.server.store.api import Clock, Store

RETRY_SECONDS = 2.0
OPEN_SECONDS = 5.0
"""How long reading a stamp may take before it counts as away."""

_log = logging.getLogger("kyanite.stamps")


class ServedStamp(msgspec.Struct, frozen=True):
    """A stamp that this process has open."""

    name: str
    opened: Store
    store: accounts.Store
    directory: AccountDirectory


class StampSettings(msgspec.Struct, frozen=True):
    """What opening stamps needs to know of the server."""

    location: Path
    stated: Sequence[Stamp]
    accounts: Sequence[StatedAccount]
    """What is stated about accounts of all stamps."""
    clock: Clock
    dead_after_seconds: float
    process: str
    prepares: bool
    """Whether this process prepares stamps that are new or old."""


class ServedStamps:
    def __init__(
        self,
        settings: StampSettings,
        model_store: Callable[[Store], accounts.Store],
        directory_of: Callable[[accounts.Store, Sequence[StatedAccount]], AccountDirectory],
    ) -> None:
        self.on_opened: Callable[[ServedStamp], None] = lambda _stamp: None
        """Called for each that is opened from now on."""
        self.accounts: dict[str, Account] = {}
        """Of all stamps, by name."""
        self.stamps: list[ServedStamp] = []
        """The main one first."""
        self._settings = settings
        self._model_store = model_store
        self._directory_of = directory_of
        self._opening = asyncio.Lock()
        self._problems: dict[str, str] = {}
        self._doubles: set[tuple[str, str]] = set()

    @property
    def main(self) -> ServedStamp:
        return self.stamps[0]

    @property
    def location(self) -> Path:
        return self._settings.location

    @property
    def stated(self) -> Sequence[Stamp]:
        return self._settings.stated

    def stamp_of(self, account: Account) -> ServedStamp:
        return next(stamp for stamp in self.stamps if stamp.store is account.store)

    def named(self, name: str) -> ServedStamp | None:
        return next((stamp for stamp in self.stamps if stamp.name == name), None)

    def merge(self) -> None:
        """Show services what the directories have."""
        merged: dict[str, Account] = {}
        for stamp in self.stamps:
            for name, account in stamp.directory.accounts.items():
                first = merged.setdefault(name, account)
                if first is not account and (name, stamp.name) not in self._doubles:
                    self._doubles.add((name, stamp.name))
                    extra = {"account": name, "stamp": stamp.name}
                    _log.error("account of another stamp not served", extra=extra)
        self.accounts.clear()
        self.accounts.update(merged)

    async def read_others(self) -> None:
        """Open the stamps that are not open yet, and read the accounts of all but the main one."""
        async with self._opening:
            before = self.stamps[1:]
            await asyncio.gather(self._open_missing(), *map(self._read, before))

    async def follow(self) -> None:
        """Try again to open what cannot be opened."""
        while True:
            await asyncio.sleep(RETRY_SECONDS)
            async with self._opening:
                await self._open_missing()

    async def close(self) -> None:
        for stamp in self.stamps[1:]:
            await stamp.opened.close()

    async def _read(self, stamp: ServedStamp) -> None:
        await self._try(stamp.name, stamp.directory.load)

    async def _open_missing(self) -> None:
        try:
            wanted = all_stamps(self._settings.location, self._settings.stated)
        except Failure as failure:
            self._note(MAIN, failure.sentence)
            return
        opened = {stamp.name for stamp in self.stamps}
        missing = [stamp for stamp in wanted if stamp.name not in opened]
        await asyncio.gather(*(self._try(stamp.name, partial(self._open, stamp)) for stamp in missing))

    async def _open(self, stamp: Stamp) -> None:
        settings = self._settings
        stated = [account for account in settings.accounts if account.stamp == stamp.name]
        factory = factory_for(stamp, settings.location, settings.dead_after_seconds)
        opened = factory.open(settings.clock, settings.process)
        try:
            if not await opened.engine.read(is_prepared):
                if not settings.prepares:
                    raise Failure("It is not prepared yet.")
                await prepare_stamp(factory, opened.engine, settings.clock, stated)
            store = self._model_store(opened)
            served = ServedStamp(stamp.name, opened, store, self._directory_of(store, stated))
            await served.directory.load()
        except BaseException:
            with suppress(EngineError):
                await opened.close()
            raise
        self.stamps.append(served)
        self.merge()
        self.on_opened(served)

    async def _try(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        """One stamp that is away does not hurt the others."""
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                await work()
        except Failure as failure:
            self._note(name, failure.sentence)
        except (EngineError, TimeoutError, OSError) as error:
            self._note(name, str(error) or "It does not answer.")
        else:
            self._problems.pop(name, None)

    def _note(self, name: str, problem: str) -> None:
        """Log a problem once, until it is another."""
        if self._problems.get(name) != problem:
            self._problems[name] = problem
            _log.warning("stamp not served", extra={"stamp": name, "why": problem})
