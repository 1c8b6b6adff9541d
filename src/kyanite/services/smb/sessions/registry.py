"""The sessions of this process, and those of the others as far as a client may end them (MS-SMB2 §3.3.5.5.3).

A client whose connection broke logs on again and names the session that it has lost, which may be served by another
process. That session ends, with all that it has open, before the new one begins.
"""

import asyncio
from collections.abc import Awaitable, Collection, Iterable
from contextlib import suppress
from functools import partial
from typing import NamedTuple, Protocol

from kyanite.engine.api import EngineClosed, EngineError
from kyanite.model.accounts import Account, Store
from kyanite.model.files.opens import sessions, waits
from kyanite.model.files.opens.sessions import SessionRecord
from kyanite.services.smb.sessions.sealed_keys import SealedKeys
from kyanite.services.smb.sessions.security import SessionSecurity
from kyanite.services.smb.state import Session

SESSIONS_MAX = 65_536
"""Of all clients of this process."""

_AGAIN_SECONDS = 1.0
"""Notifications may be lost."""
_LONGEST_SECONDS = 10.0
"""How long another process may take. Then the new session begins all the same."""


class SessionHost(Protocol):
    """The connection of a session."""

    async def end_session(self, session: Session) -> None: ...


class KnownSession(NamedTuple):
    """A session that some process of the server serves."""

    dialect: int
    signing_algorithm: int
    cipher: int
    security: SessionSecurity | None
    """To sign and verify with. None if its key is not known here."""


class SessionRegistry:
    def __init__(self, sealed_keys: SealedKeys) -> None:
        self._sealed_keys = sealed_keys
        self._local: dict[int, tuple[SessionHost, Session]] = {}
        self._followed: dict[int, asyncio.Task[None]] = {}
        """The tasks that wait for other processes, by the engines of their stores."""

    async def add(self, host: SessionHost, session: Session) -> bool:
        """False if there are too many, or another session has the same id."""
        if len(self._local) >= SESSIONS_MAX or session.id in self._local:
            return False
        store = session.account.store
        if id(store.engine) not in self._followed:
            self._followed[id(store.engine)] = asyncio.get_running_loop().create_task(self._follow(store))
        security = session.security
        assert security is not None
        record = SessionRecord(
            store.membership.id,
            session.account.name,
            security.dialect,
            security.algorithm,
            security.cipher,
            self._sealed_keys.seal(security.signing_key),
        )
        self._local[session.id] = host, session
        add = partial(sessions.add, session_id=session.id, record=record, is_alive=store.membership.is_alive)
        is_added = await store.engine.run(add, durable=False)
        if is_added and session.id not in self._local:
            # Its account was removed meanwhile.
            await store.engine.run(partial(sessions.remove, session_id=session.id), durable=False)
            return False
        if not is_added:
            self._local.pop(session.id, None)
        return is_added

    async def remove(self, session: Session) -> None:
        if self._local.pop(session.id, None) is not None:
            engine = session.account.store.engine
            await engine.run(partial(sessions.remove, session_id=session.id), durable=False)

    async def find(self, session_id: int, accounts: Iterable[Account]) -> KnownSession | None:
        """A session of whichever account and process."""
        for engine in {id(each.store.engine): each.store.engine for each in accounts}.values():
            record = await engine.read(partial(sessions.load, session_id=session_id))
            if record is not None:
                return self._known(record)
        return None

    def _known(self, record: SessionRecord) -> KnownSession:
        key = self._sealed_keys.open(record.sealed_key)
        security = None if key is None else SessionSecurity.of_signing_key(key, record.signing_algorithm)
        return KnownSession(record.dialect, record.signing_algorithm, record.cipher, security)

    async def end(self, session_id: int, account: Account) -> None:
        """End a session of the same account, wherever it is served."""
        local = self._local.get(session_id)
        if local is not None:
            if local[1].account.name == account.name:
                await local[0].end_session(local[1])
            return
        store = account.store
        body = partial(
            sessions.end,
            session_id=session_id,
            account=account.name,
            is_alive=store.membership.is_alive,
        )
        ended = waits.run_until_done(
            store.engine, body, membership=store.membership, durable=False, waiting=_wait
        )
        with suppress(TimeoutError):
            await asyncio.wait_for(ended, _LONGEST_SECONDS)

    async def end_all_of(self, accounts: Collection[str]) -> None:
        """End the sessions of this process whose accounts are no longer served."""
        for host, session in list(self._local.values()):
            if session.account.name in accounts:
                await host.end_session(session)

    async def _follow(self, store: Store) -> None:
        """End the sessions that other processes want to be ended."""
        owner = store.membership.id
        notifications = store.engine.subscribe(sessions.topic_of(owner))
        while True:
            try:
                for session_id in await store.engine.read(partial(sessions.to_be_ended, owner=owner)):
                    if (local := self._local.get(session_id)) is not None:
                        await local[0].end_session(local[1])
            except EngineClosed:
                return
            except EngineError:  # It may work in a second.
                pass
            try:
                await asyncio.wait_for(anext(notifications), _AGAIN_SECONDS)
            except TimeoutError:
                continue
            except StopAsyncIteration:
                return


async def _wait(pause: Awaitable[None]) -> None:
    await pause
