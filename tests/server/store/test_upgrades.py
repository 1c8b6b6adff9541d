"""Upgrades of a store: bounded, resumable, before anything else, on every engine."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar, cast

import pytest
import uvloop

from kyanite.engine.api import Engine, EngineError, Scope, Snapshot, Transaction
from kyanite.engine.clock import wall_clock
from kyanite.engine.faulty import Call, Delay, Fail, FaultyEngine, Repeat
from kyanite.engine.transaction import BufferedTransaction
from kyanite.model import members, store_format
from kyanite.model.store_format import FORMAT, StoreFormat
from kyanite.server.failures import Failure
from kyanite.server.store import format as folder_format
from kyanite.server.store.api import MEMORY, StoreKind
from kyanite.server.store.factory import factory_of
from kyanite.server.store.upgrades import UPGRADES, Upgrade, prepare

ROWS = 25
ROWS_PER_CALL = 4
EMBEDDED = StoreKind()
IN_MEMORY = StoreKind(MEMORY)
KINDS = pytest.mark.parametrize("kind", [EMBEDDED, IN_MEMORY], ids=lambda kind: kind.engine)
T = TypeVar("T")


def rewrite(prefix: bytes, mark: bytes) -> Callable[[Transaction, bytes], bytes | None]:
    """A step that appends a mark to every row of a prefix, a few rows at a time."""

    def step(tx: Transaction, cursor: bytes) -> bytes | None:
        rows = list(tx.scan(cursor or prefix, prefix + b"\xff", limit=ROWS_PER_CALL))
        for key, value in rows:
            tx.put(key, value + mark)
        return rows[-1][0] + b"\0" if len(rows) == ROWS_PER_CALL else None

    return step


STEPS = (
    Upgrade(2, "mark rows of H", rewrite(b"H", b"2")),
    Upgrade(2, "mark rows of s", rewrite(b"s", b"2")),
    Upgrade(3, "mark rows of H again", rewrite(b"H", b"3")),
)


def fill(tx: Transaction) -> None:
    for number in range(ROWS):
        for letter in (b"H", b"s", b"n"):
            tx.put(letter + bytes([number]), letter)


def values(snap: Snapshot) -> dict[bytes, set[bytes]]:
    """The values that the rows of each prefix have."""
    return {
        letter: {value for _, value in snap.scan(letter, letter + b"\xff")} for letter in (b"H", b"s", b"n")
    }


UPGRADED = {b"H": {b"H23"}, b"s": {b"s2"}, b"n": {b"n"}}


@asynccontextmanager
async def opened(kind: StoreKind, folder: Path) -> AsyncIterator[Engine]:
    engine = factory_of(kind, folder).open_engine(wall_clock)
    try:
        yield engine
    finally:
        await engine.close()


def upgrade(
    engine: Engine, begun: list[str] | None = None, steps: Sequence[Upgrade] = STEPS
) -> Awaitable[StoreFormat]:
    return prepare(
        engine,
        is_testing=False,
        check=lambda _found: None,
        begin=lambda: None if begun is None else begun.append("begun"),
        steps=steps,
        to_format=3,
    )


@KINDS
async def test_an_older_store_goes_through_all_steps_once(kind: StoreKind, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as engine:
        await engine.run(fill)
        begun: list[str] = []
        assert await upgrade(engine, begun) == StoreFormat(3)
        assert await engine.read(values) == UPGRADED
        assert await upgrade(engine, begun) == StoreFormat(3)
        assert await engine.read(values) == UPGRADED
        assert begun == ["begun"]


@KINDS
async def test_a_new_store_has_the_present_format(kind: StoreKind, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as engine:
        begun: list[str] = []
        for is_testing in (True, False):
            found = await prepare(
                engine,
                is_testing=is_testing,
                check=lambda _found: None,
                begin=lambda: begun.append("begun"),
                steps=(),
                to_format=FORMAT,
            )
            assert found == StoreFormat(FORMAT, is_testing=True)
        assert begun == []
        assert await engine.read(store_format.load) == StoreFormat(FORMAT, is_testing=True)


@KINDS
async def test_a_refused_store_is_not_changed(kind: StoreKind, tmp_path: Path) -> None:
    def refuse(found: StoreFormat) -> None:
        raise Failure(f"format {found.format}")

    async with opened(kind, tmp_path) as engine:
        await engine.run(fill)
        with pytest.raises(Failure, match="format 1"):
            await prepare(
                engine, is_testing=False, check=refuse, begin=lambda: None, steps=STEPS, to_format=3
            )
        assert await engine.read(lambda snap: snap.get(store_format.KEY)) is None


@KINDS
async def test_an_upgrade_goes_on_where_it_ended(kind: StoreKind, tmp_path: Path) -> None:
    """It fails at each of its transactions in turn, before or after the commit, and is then complete all the same."""
    async with opened(kind, tmp_path) as engine:
        await engine.run(fill)
        failures = 0
        for done in (True, False) * 100:
            failing = FaultyEngine(engine, {(Call.RUN, 2): Fail(EngineError("killed"), done=done)})
            try:
                await upgrade(failing)
            except EngineError:
                failures += 1
                continue
            break
        assert failures > 3 * ROWS // ROWS_PER_CALL // 2
        assert await engine.read(values) == UPGRADED
        assert await engine.read(store_format.load) == StoreFormat(3)


@KINDS
async def test_a_body_that_runs_twice(kind: StoreKind, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as engine:
        await engine.run(fill)
        repeating = FaultyEngine(engine, {(Call.RUN, number): Repeat() for number in range(1, 10)})
        await upgrade(repeating)
        repeating.check_all_hit()
        assert await engine.read(values) == UPGRADED


@KINDS
async def test_nodes_that_start_at_once_share_an_upgrade(kind: StoreKind, tmp_path: Path) -> None:
    """Each transaction of one comes between any two of the other."""
    async with opened(kind, tmp_path) as engine:
        await engine.run(fill)
        nodes = [
            FaultyEngine(
                engine, {(Call.RUN, call): Delay(partial(asyncio.sleep, 0)) for call in range(1, 10)}
            )
            for _ in range(3)
        ]
        assert await asyncio.gather(*map(upgrade, nodes)) == [StoreFormat(3)] * 3
        assert await engine.read(values) == UPGRADED
        assert await engine.read(store_format.load) == StoreFormat(3)


async def test_a_store_that_other_nodes_serve_is_not_upgraded(tmp_path: Path) -> None:
    owner = b"o" * 12
    async with opened(IN_MEMORY, tmp_path) as engine:
        await engine.run(fill)
        await engine.run(
            partial(members.join, owner=owner, node="a", process="worker 1", dead_after_seconds=15)
        )
        await engine.run(partial(members.confirm, owner=owner, changed_at=members.NO_CHANGE))
        with pytest.raises(Failure, match="stop them all"):
            await upgrade(engine)
        await engine.run(partial(members.declare_dead, owner=owner))
        assert await upgrade(engine) == StoreFormat(3)


@KINDS
async def test_transactions_are_bounded(kind: StoreKind, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as engine:
        await engine.run(fill)
        counting = CountingEngine(engine)
        await upgrade(counting)
        assert len(counting.writes) > 3 * ROWS // ROWS_PER_CALL
        assert max(counting.writes) <= ROWS_PER_CALL + 1


class CountingEngine(FaultyEngine):
    """Counts the rows that each transaction writes."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine, {})
        self.writes: list[int] = []

    def run(self, body: Callable[[Transaction], T], *scopes: Scope, durable: bool = True) -> Awaitable[T]:
        def counted(tx: Transaction) -> T:
            value = body(tx)
            self.writes.append(len(cast(BufferedTransaction, tx).writes))
            return value

        return super().run(counted, durable=durable)


async def test_a_step_that_makes_no_progress_is_a_fault(tmp_path: Path) -> None:
    async with opened(IN_MEMORY, tmp_path) as engine:
        await engine.run(fill)
        with pytest.raises(AssertionError, match="no progress"):
            await upgrade(engine, steps=[Upgrade(2, "loop", lambda _tx, cursor: cursor)])


def test_a_kill_in_the_middle(tmp_path: Path) -> None:
    """Processes are killed in the middle of an upgrade until one of them completes it."""
    uvloop.run(_fill(tmp_path))
    statuses = []
    for _ in range(200):
        child = os.fork()
        if child == 0:
            try:
                uvloop.run(_upgrade_until_killed(tmp_path, calls=3))
                os._exit(0)
            finally:
                os._exit(1)
        statuses.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        if statuses[-1] != -signal.SIGKILL:
            break
    assert statuses[-1] == 0
    assert len(statuses) > 5
    assert uvloop.run(_values(tmp_path)) == (UPGRADED, StoreFormat(3))


async def _fill(folder: Path) -> None:
    async with opened(EMBEDDED, folder) as engine:
        await engine.run(fill)


async def _values(folder: Path) -> tuple[dict[bytes, set[bytes]], StoreFormat]:
    async with opened(EMBEDDED, folder) as engine:
        return await engine.read(values), await engine.read(store_format.load)


async def _upgrade_until_killed(folder: Path, calls: int) -> None:
    left = calls

    def killing(
        step: Callable[[Transaction, bytes], bytes | None],
    ) -> Callable[[Transaction, bytes], bytes | None]:
        def call(tx: Transaction, cursor: bytes) -> bytes | None:
            nonlocal left
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1
            return step(tx, cursor)

        return call

    async with opened(EMBEDDED, folder) as engine:
        await upgrade(engine, steps=[each._replace(step=killing(each.step)) for each in STEPS])


# The table and the folder


def test_the_table_leads_to_the_present_format() -> None:
    formats = [each.to_format for each in UPGRADES]
    assert formats == sorted(formats)
    assert all(store_format.UNMARKED_FORMAT < each <= FORMAT for each in formats)
    assert all(each.description for each in UPGRADES)


async def test_older_versions_refuse_a_store_from_the_start_of_its_upgrade(tmp_path: Path) -> None:
    """The file that they read is raised before the first row changes."""
    file = tmp_path / "format"
    file.write_text("kyanite store, format 1\n")
    contents: list[str] = []

    def record(_tx: Transaction, _cursor: bytes) -> None:
        contents.append(file.read_text())

    async with opened(EMBEDDED, tmp_path) as engine:
        await engine.run(fill)
        folder_format.check_folder(tmp_path)
        assert file.read_text() == "kyanite store, format 1\n"
        await folder_format.prepare(engine, tmp_path, is_testing=False, steps=[Upgrade(2, "record", record)])
    assert contents == [f"kyanite store, format {FORMAT}\n"]


async def test_a_newer_store_is_refused(tmp_path: Path) -> None:
    async with opened(EMBEDDED, tmp_path) as engine:
        await engine.run(lambda tx: store_format.save(tx, StoreFormat(FORMAT + 1)))
        with pytest.raises(Failure) as refusal:
            await folder_format.prepare(engine, tmp_path, is_testing=None)
    assert refusal.value.sentence == (
        f"The store {tmp_path} has format {FORMAT + 1}, and this version of Kyanite knows format {FORMAT} at most."
    )


@pytest.mark.parametrize("made_for_testing", [True, False])
async def test_testing_is_decided_when_a_store_is_made(made_for_testing: bool, tmp_path: Path) -> None:
    word = "with" if made_for_testing else "without"
    async with opened(EMBEDDED, tmp_path) as engine:
        await folder_format.prepare(engine, tmp_path, is_testing=made_for_testing)
        await folder_format.prepare(engine, tmp_path, is_testing=made_for_testing)
        await folder_format.prepare(engine, tmp_path, is_testing=None)
        with pytest.raises(Failure, match=f"was made {word} --testing"):
            await folder_format.prepare(engine, tmp_path, is_testing=not made_for_testing)


async def test_an_older_store_is_no_testing_store(tmp_path: Path) -> None:
    async with opened(EMBEDDED, tmp_path) as engine:
        await engine.run(fill)
        with pytest.raises(Failure, match="was made without --testing"):
            await folder_format.prepare(engine, tmp_path, is_testing=True)
