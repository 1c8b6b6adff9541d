"""Commits on the event loop: only while nobody else is there, and never on a slow disk."""

import asyncio
from pathlib import Path

import pytest

from kyanite.engine.api import Snapshot, Transaction
from kyanite.engine.sqlite.engine import SqliteEngine
from kyanite.engine.sqlite.lone_client import LoneClient

ALONE_MIN, ON_LOOP_MAX = 8, 15
QUICK, SLOW = 0.0002, 0.003


def in_thread(lone: LoneClient, times: int = 1, *, company: bool = False, seconds: float = QUICK) -> None:
    for _ in range(times):
        lone.is_in_thread, lone.has_company, lone.seconds_in_thread = True, company, seconds
        lone.committed_in_thread()


def commits_until_thread(lone: LoneClient, seconds: float = QUICK) -> int:
    """How many commits are made on the loop before one that is not."""
    count = 0
    while lone.may_commit_on_loop():
        lone.committed_on_loop(seconds)
        count += 1
        assert count < 1000
    return count


@pytest.mark.parametrize(
    ("alone", "then_with_company", "then_slow", "on_loop"),
    [
        (0, 0, 0, 0),
        (ALONE_MIN - 1, 0, 0, 0),
        (ALONE_MIN, 0, 0, ON_LOOP_MAX),
        (ALONE_MIN, 1, 0, 0),
        (1000, 1, 0, 0),
        (1000, 0, 1, 0),
        (0, 0, 1000, 0),
    ],
)
def test_only_after_quick_commits_with_nothing_beside_them(
    alone: int, then_with_company: int, then_slow: int, on_loop: int
) -> None:
    lone = LoneClient()
    in_thread(lone, alone)
    in_thread(lone, then_with_company, company=True)
    in_thread(lone, then_slow, seconds=SLOW)
    assert commits_until_thread(lone) == on_loop


def test_one_commit_in_sixteen_is_left_to_the_thread() -> None:
    lone = LoneClient()
    in_thread(lone, ALONE_MIN)
    for _ in range(3):
        assert commits_until_thread(lone) == ON_LOOP_MAX
        in_thread(lone)
    in_thread(lone, company=True)
    assert commits_until_thread(lone) == 0
    in_thread(lone, ALONE_MIN)
    assert commits_until_thread(lone) == ON_LOOP_MAX


def test_a_slow_disk_is_left_to_the_thread() -> None:
    lone = LoneClient()
    in_thread(lone, 1000)
    assert commits_until_thread(lone, SLOW) == 1
    in_thread(lone, ALONE_MIN - 1)
    assert commits_until_thread(lone) == 0
    in_thread(lone)
    assert commits_until_thread(lone) == ON_LOOP_MAX


def put(tx: Transaction) -> None:
    tx.put(b"key", b"value")


def nothing(_snap: Snapshot) -> None:
    pass


async def is_made_on_loop(engine: SqliteEngine) -> bool:
    """Whether the outcome is there in the iteration of the loop that begins the batch. The thread's comes later."""
    writing = asyncio.ensure_future(engine.run(put))
    await asyncio.sleep(0)
    is_done = writing.done()
    await writing
    return is_done


async def warmed_up(folder: Path) -> SqliteEngine:
    """An engine whose next commit may be made on the loop, if the disk of this machine is quick enough."""
    engine = SqliteEngine.open(folder)
    for _ in range(ALONE_MIN + 1):
        await engine.run(put)
    return engine


async def test_the_writes_of_a_lone_client_are_committed_on_the_loop(tmp_path: Path) -> None:
    engine = await warmed_up(tmp_path)
    try:
        found = [await is_made_on_loop(engine) for _ in range(1000)]
        assert any(found), "at least where the disk is quick for once"
        assert not all(found)
    finally:
        await engine.close()
    engine = SqliteEngine.open(tmp_path)
    assert await engine.read(lambda snap: snap.get(b"key")) == b"value"
    await engine.close()


@pytest.mark.parametrize("beside", ["read", "write"])
async def test_another_request_during_a_commit_ends_that(tmp_path: Path, beside: str) -> None:
    engine = await warmed_up(tmp_path)
    try:
        for _ in range(
            ON_LOOP_MAX + 2
        ):  # One of these is made in the thread, with a read or a write beside it.
            writing = asyncio.ensure_future(engine.run(put))
            await asyncio.sleep(0)
            if not writing.done():
                await (engine.read(nothing) if beside == "read" else engine.run(put))
            await writing
        assert not await is_made_on_loop(engine)
    finally:
        await engine.close()
