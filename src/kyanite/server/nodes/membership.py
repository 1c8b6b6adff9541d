"""Membership of the processes of all nodes: rows of the engine that each process renews while it lives.

*Dead* is what the row says and nothing else. A process is declared dead

- at once, when it leaves, or when another process of its node finds its lock file unlocked: the kernel knows;
- when its heartbeat has stayed the same for ``dead_after_seconds``, by the clock of the engine and by that of the
  observer. The observer counts only time in which it could see the heartbeat, so neither a database that was away nor a
  suspended observer or clock that jumps declares anyone dead.

``is_alive`` answers from what was last read, and errs on the safe side: a process that was not among those is alive
until it has been searched for once more.

Everything runs in one task, which begins with joining.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from kyanite.engine.api import Engine, EngineBusy, EngineClosed, EngineError, OutcomeUnknown, Subscription
from kyanite.engine.clock import ticks_since_boot
from kyanite.membership.api import Membership
from kyanite.model import members
from kyanite.model.members import ContentNotShared, DeclaredDead, Heartbeat, Members
from kyanite.server.failures import Failure

DEAD_AFTER_SECONDS = 15.0
RENEWALS = 3
"""How often a process renews within the time after which it would be dead. Rarely: each renewal is a commit."""
LOCAL_SECONDS = 0.5
"""How often lock files of this node are looked at."""
FRESH_PART = 0.8
"""For this part of the time after its last renewal a process is certain to be alive."""
LEAVE_SECONDS = 3.0

_GONE_MAX = 10_000
_TICKS = 10_000_000
_log = logging.getLogger("kyanite.members")


class EngineMembership:
    """A member of a store from ``start`` on until ``close``."""

    def __init__(
        self,
        engine: Engine,
        local: Membership,
        *,
        node: str,
        process: str,
        dead_after_seconds: float = DEAD_AFTER_SECONDS,
        has_own_extents: bool = False,
        on_lost: Callable[[], None],
        ticks: Callable[[], int] = ticks_since_boot,
    ) -> None:
        """``local`` is the membership of this process among those of its node, whose id it has here too. ``on_lost`` is
        called once, when the others have declared this process dead."""
        self.id = local.id
        self.dead_after_seconds = dead_after_seconds
        self._engine = engine
        self._local = local
        self._join = partial(
            members.join,
            owner=self.id,
            node=node,
            process=process,
            dead_after_seconds=dead_after_seconds,
            has_own_extents=has_own_extents,
        )
        self._on_lost = on_lost
        self._ticks = ticks
        self._renewed = 0
        """When the last renewal that succeeded began."""
        self._living: frozenset[bytes] = frozenset()
        self._dead: list[bytes] = []
        self._unknown: set[bytes] = set()
        """Owners that ``is_alive`` did not know, and that have not been searched for since."""
        self._gone: set[bytes] = set()
        """Owners that are dead: they were listed as such, or searched for in vain."""
        self._forgotten: set[bytes] = set()
        """To be removed from the rows."""
        self._observers: dict[bytes, _Observed] = {}
        self._is_closing = False
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self.joined: asyncio.Future[None] = self._loop.create_future()
        self._running = self._loop.create_task(self._run())

    # The contract

    def is_alive(self, owner: bytes) -> bool:
        if owner in self._living:
            return True
        if owner in self._gone:
            return False
        self._unknown.add(owner)
        with suppress(RuntimeError):  # The loop is closed.
            self._loop.call_soon_threadsafe(self._wake.set)
        return True

    def dead_owners(self) -> list[bytes]:
        return list(self._dead)

    def forget(self, owner: bytes) -> None:
        """The row goes a moment later. Until then the others may clean up once more, and find nothing."""
        if owner in self._dead:
            self._dead = [each for each in self._dead if each != owner]
            self._forgotten.add(owner)
            self._wake.set()

    def close(self) -> None:
        """Begin to leave; ``left`` waits for the end."""
        self._is_closing = True
        self._wake.set()

    # For the engine of this process

    @property
    def is_fresh(self) -> bool:
        """Whether this process cannot have been declared dead yet."""
        return self._ticks() - self._renewed < self.dead_after_seconds * FRESH_PART * _TICKS

    def doubt(self) -> None:
        """A transaction has found that this process is dead: find out without delay."""
        self._renewed = 0
        self._wake.set()

    async def left(self) -> None:
        self.close()
        with suppress(TimeoutError, asyncio.CancelledError):
            async with asyncio.timeout(LEAVE_SECONDS):
                await asyncio.shield(self._running)
        self._running.cancel()
        if not self.joined.done():
            self.joined.cancel()

    # The task

    async def _run(self) -> None:
        try:
            if not await self._join_in():
                return
            notifications = self._engine.subscribe(members.TOPIC)
            following = self._loop.create_task(self._follow(notifications))
            try:
                while not self._is_closing:
                    if not await self._step_or_log():
                        return
                    await self._pause()
                with suppress(EngineError):
                    await self._engine.run(partial(members.declare_dead, owner=self.id))
            finally:
                following.cancel()
        finally:
            self._local.close()

    async def _join_in(self) -> bool:
        while True:
            began = self._ticks()
            try:
                await self._engine.run(self._join)
                self._renewed = began
                await self._refresh()
                break
            except (EngineBusy, OutcomeUnknown) as error:
                if self._is_closing:
                    return False
                _log.warning("cannot join yet", extra={"why": str(error)})
                await asyncio.sleep(LOCAL_SECONDS)
            except ContentNotShared as refusal:
                self._fail(
                    Failure(
                        f"Node {refusal.node} serves this store too, and content in --extents local is on one machine "
                        "only: give all nodes extents that they share, or stop that node."
                    )
                )
                return False
            except EngineError as error:
                self._fail(error)
                return False
        if not self.joined.done():
            self.joined.set_result(None)
        return True

    def _fail(self, error: Exception) -> None:
        """Whoever waits gets the error; no one has to."""
        if not self.joined.done():
            self.joined.set_exception(error)
            self.joined.exception()

    async def _follow(self, notifications: Subscription) -> None:
        async for _ in notifications:
            self._unknown.add(self.id)
            self._wake.set()

    async def _step_or_log(self) -> bool:
        """False when this process is no member any more."""
        try:
            await self._step()
        except DeclaredDead:
            _log.critical("declared dead by the other processes of the store")
            self._on_lost()
            return False
        except EngineClosed:
            return False
        except EngineError as error:
            _log.warning("the heartbeat has to wait", extra={"why": str(error)})
        except Exception:
            _log.exception("the heartbeat failed")
        return True

    async def _step(self) -> None:
        for owner in self._local.dead_owners():
            await self._engine.run(partial(members.declare_dead, owner=owner))
            self._local.forget(owner)
            self._unknown.add(owner)
        for owner in list(self._forgotten):
            await self._engine.run(partial(members.forget, owner=owner))
            self._forgotten.discard(owner)
        began = self._ticks()
        is_due = began - self._renewed >= self._period_seconds * _TICKS
        if is_due:
            await self._engine.run(partial(members.renew, owner=self.id), durable=False)
            self._renewed = began
        if is_due or self._unknown:
            await self._refresh()

    @property
    def _period_seconds(self) -> float:
        return self.dead_after_seconds / RENEWALS

    async def _pause(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(min(LOCAL_SECONDS, self._period_seconds)):
                await self._wake.wait()
        self._wake.clear()

    async def _refresh(self) -> None:
        """Read who is alive, and declare those dead whose heartbeat was the same for too long."""
        unknown = set(self._unknown)
        found = await self._engine.read(members.load)
        self._living = frozenset(found.living)
        self._dead = [owner for owner in found.dead if owner not in self._forgotten]
        if len(self._gone) > _GONE_MAX:
            self._gone.clear()
        self._gone |= unknown - self._living | set(found.dead)
        self._unknown -= unknown
        for owner, heartbeat in self._silent(found):
            if await self._engine.run(partial(members.declare_dead, owner=owner, observed=heartbeat)):
                name = found.living[owner]
                _log.warning("process declared dead", extra={"of": name.process, "node": name.node})
                self._unknown.add(owner)
                self._wake.set()

    def _silent(self, found: Members) -> list[tuple[bytes, Heartbeat]]:
        """The processes whose heartbeat this one has seen unchanged for as long as they may stay silent."""
        now = self._ticks()
        observers = self._observers
        self._observers = {}
        silent = []
        for owner, heartbeat in found.heartbeats.items():
            member = found.living.get(owner)
            if member is None or owner == self.id:
                continue
            longest = round(1.5 * member.dead_after_seconds / RENEWALS * _TICKS)
            observed = observers.get(owner)
            if observed is None or observed.heartbeat != heartbeat:
                observed = _Observed(heartbeat, now)
            else:
                observed.read_again(now, longest)
            self._observers[owner] = observed
            if observed.silent_ticks >= member.dead_after_seconds * _TICKS:
                silent.append((owner, heartbeat))
        return silent


class _Observed:
    """A heartbeat as this process has seen it."""

    __slots__ = ("_read_at", "heartbeat", "silent_ticks")

    def __init__(self, heartbeat: Heartbeat, now: int) -> None:
        self.heartbeat = heartbeat
        self.silent_ticks = 0
        """For how long it was the same. Of a long time without a look at it only a part counts."""
        self._read_at = now

    def read_again(self, now: int, longest: int) -> None:
        self.silent_ticks += min(now - self._read_at, longest)
        self._read_at = now
