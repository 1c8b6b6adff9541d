"""Runs conversations and checks that nothing escapes, and that nothing of them is left."""

import asyncio
import gc
import logging
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from kyanite.engine.memory.engine import MemoryEngine
from kyanite.extents.local.store import LocalExtents
from kyanite.membership.local import LocalMembership
from kyanite.model.accounts import Account, Store
from kyanite.model.files import directory, file, rename, share, share_snapshots
from kyanite.model.files.entry import FILE
from kyanite.model.files.file import NewFile, RangeWrite
from kyanite.model.files.opens import handle_lists, handles
from kyanite.model.files.opens.caching import BreakNeeded
from kyanite.model.files.opens.records import DISCONNECTED
from kyanite.model.files.properties import SmbProperties
from kyanite.model.files.rename import Rename
from kyanite.model.files.share import ShareKey, ShareSettings
from kyanite.model.files.tree import FilePath
from kyanite.model.records import HttpHeaders
from kyanite.rules.refusals import Refused
from kyanite.services.smb.environment import SmbEnvironment
from kyanite.services.smb.service import smb_service
from kyanite.values import instant_from_unix_seconds
from tests.services.smb.fuzzing.client import FuzzClient
from tests.services.smb.fuzzing.requests import SHARE, SNAPSHOT_SECOND
from tests.services.smb.fuzzing.servers import ServerInMemory

INPUTS_PER_WORLD = 1_000
INPUTS_PER_CONVERSATION = 60
OF_OPENS = b"HOQMWJKC"
"""The letters of rows that end with the connection of a client."""
ENDED_SECONDS = 20.0
OPTIONS: Sequence[Mapping[str, Any]] = ({}, {"is_durable": False}, {}, {"requires_encryption": True})
"""Of the servers, one after the other."""
NOW = instant_from_unix_seconds(SNAPSHOT_SECOND)
KEYS = (b"first key", b"second key")
PERMANENT_TASKS = 7
"""This one, and for each worker the delivery of breaks, and the end of sessions, which waits for notifications in a
task of its own."""
_KEY = ShareKey("acme", SHARE)


@dataclass
class Report:
    inputs: int = 0
    worlds: int = 0
    conversations: int = 0
    closed: int = 0
    """Conversations that the server ended."""
    statuses: Counter[tuple[int, int]] = field(default_factory=Counter)


class Failures(logging.Handler):
    """What the server logs as an error is one, whatever the client is answered."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(self.format(record))

    def on_loop(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.found.append(f"{context.get('message')}: {context.get('exception')!r}")


class Worker:
    """What would be a process of its own."""

    def __init__(self, folder: Path, engine: MemoryEngine, options: Mapping[str, Any]) -> None:
        self._membership = LocalMembership(folder / "owners")
        self._extents = LocalExtents(folder, self._membership)
        account = Account("acme", KEYS, Store(engine, self._extents, self._membership))
        self.connect = smb_service(
            SmbEnvironment({"acme": account}, lambda: NOW, bytes(16), secret=bytes(32), **options)
        )

    async def close(self) -> None:
        await self._extents.close()
        self._membership.close()


class World:
    """A store with one share, and two workers."""

    def __init__(self, folder: Path, options: Mapping[str, Any]) -> None:
        self.engine = MemoryEngine(clock=lambda: NOW)
        self._workers = [Worker(folder, self.engine, options) for _ in range(2)]

    def connect(self, client: FuzzClient, address: str) -> ServerInMemory:
        worker = self._workers[sum(address.encode()) % 2]
        return ServerInMemory(worker.connect, client, address)

    async def prepare(self) -> None:
        await share.create(self.engine, _KEY, {}, ShareSettings(), directory.create_root)
        await directory.create(self.engine, FilePath(_KEY, ("dir",)), SmbProperties(), {})
        for names in ("a",), ("b.txt",), ("dir", "f"):
            new_file = NewFile(1000, HttpHeaders(), {}, SmbProperties(), b"x" * 1000)
            await file.create(self.engine, FilePath(_KEY, names), new_file, None, may_overwrite=False)
        await share_snapshots.take(self.engine, _KEY, {})

    async def act_over_rest(self, chance: random.Random) -> None:
        """What REST clients do meanwhile."""
        path = FilePath(_KEY, chance.choice(((), ("a",), ("dir",), ("dir", "f"), ("new",))))
        new_file = NewFile(100, HttpHeaders(), {}, SmbProperties())
        act = chance.choice(
            (
                lambda: handle_lists.close_handles(self.engine, path, recursive=False, handle_id=None),
                lambda: file.create(self.engine, path, new_file, None, may_overwrite=True),
                lambda: file.delete(self.engine, path, None),
                lambda: file.write_range(self.engine, path, RangeWrite(0, 1, b"x"), None),
                lambda: rename.rename(self.engine, path, FILE, Rename(("a",), replaces=True)),
            )
        )
        with suppress(Refused, BreakNeeded):
            await act()

    async def rows_of_opens(self) -> list[bytes]:
        def body(snap: Any) -> list[bytes]:
            return [
                key for letter in OF_OPENS for key, _ in snap.scan(bytes((letter,)), bytes((letter + 1,)))
            ]

        return await self.engine.read(body)

    async def close(self) -> None:
        await self.engine.close()
        for worker in self._workers:
            await worker.close()


async def run(folder: Path, *, seed: int, inputs: int, mutation_rate: float) -> Report:
    """So many messages. An AssertionError names the seed of the conversation that failed."""
    report = Report()
    failures = Failures()
    logger = logging.getLogger("kyanite")
    logger.addHandler(failures)
    asyncio.get_running_loop().set_exception_handler(failures.on_loop)
    try:
        while report.inputs < inputs:
            world_folder = folder / str(report.conversations)
            world_folder.mkdir()
            await _run_world(world_folder, seed, inputs, mutation_rate, report, failures)
    finally:
        logger.removeHandler(failures)
    return report


async def _run_world(
    folder: Path, seed: int, inputs: int, mutation_rate: float, report: Report, failures: Failures
) -> None:
    world = World(folder, OPTIONS[report.worlds % len(OPTIONS)])
    report.worlds += 1
    await world.prepare()
    until = min(inputs, report.inputs + INPUTS_PER_WORLD)
    while report.inputs < until:
        number = report.conversations
        chance = random.Random(f"{seed}/{number}")
        clients = [
            FuzzClient(
                "acme", KEYS, partial(world.connect, address=f"{number}-{each}"), chance, mutation_rate
            )
            for each in range(chance.choice((1, 2, 3)))
        ]
        talking = asyncio.gather(*(each.converse(INPUTS_PER_CONVERSATION) for each in clients))
        while not talking.done():
            if chance.random() < 0.01:
                await world.act_over_rest(chance)
            await asyncio.sleep(0)
        await talking
        for client in clients:
            await _lose(client, f"seed {seed}, conversation {number}")
            report.inputs += client.inputs
            report.closed += client.is_closed
            report.statuses.update(client.statuses)
        report.conversations += 1
        await _check_nothing_left(world, failures, f"seed {seed}, conversation {number}")
    await world.close()


async def _lose(client: FuzzClient, name: str) -> None:
    losing = asyncio.ensure_future(client.lose())
    done, _ = await asyncio.wait((losing,), timeout=ENDED_SECONDS)
    assert done, f"{name}: a request outlives its connection"
    losing.result()


async def _check_nothing_left(world: World, failures: Failures, name: str) -> None:
    for _ in range(50):
        if len(asyncio.all_tasks()) <= PERMANENT_TASKS:
            break
        gc.collect()
        await asyncio.sleep(0.01)
    assert not failures.found, f"{name}: {failures.found[0]}"
    tasks = asyncio.all_tasks()
    assert len(tasks) <= PERMANENT_TASKS, f"{name}: tasks that do not end: {tasks}"
    while await world.engine.run(lambda tx: handles.close_handles_of_owner(tx, DISCONNECTED)):
        continue  # Durable handles, which wait for their clients.
    rows = await world.rows_of_opens()
    assert not rows, f"{name}: rows that no client has left: {rows}"
