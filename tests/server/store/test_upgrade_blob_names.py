"""Names with backslashes of earlier formats: whatever is stored under them can be reached afterwards."""

from functools import partial
from typing import Any

import pytest

from kyanite.engine.api import Snapshot, Transaction
from kyanite.engine.memory.engine import MemoryEngine
from kyanite.model import keys
from kyanite.model.blobs import container
from kyanite.model.blobs.container import ContainerKey
from kyanite.rules import names
from kyanite.server.store import upgrade_blob_names as upgrade

BOX, ROOT = ContainerKey("acme", "box"), ContainerKey("acme", "$root")
Rows = dict[str, tuple[Any, ...]]


async def made(rows: Rows, key: ContainerKey = BOX) -> tuple[MemoryEngine, int]:
    """A store with one container. Rows are by name: values for its base blob, staging area, mark, and snapshots."""
    engine = MemoryEngine()
    await container.create(engine, ContainerKey("aaa", "first"), metadata={}, public_access="")
    await container.create(engine, key, metadata={}, public_access="")
    record = await container.find(engine, key)
    assert record is not None

    def body(tx: Transaction) -> None:
        for name, (base, staging, mark, *snapshots) in rows.items():
            for row, value in (
                (keys.blob(record.id, name), base),
                (keys.staging(record.id, name), staging),
                (keys.history_changes_of(keys.blob(record.id, name)), mark),
                *(
                    (keys.snapshot_of(keys.blob(record.id, name), number), each)
                    for number, each in enumerate(snapshots)
                ),
            ):
                if value is not None:
                    tx.put(row, value)

    await engine.run(body)
    return engine, record.id


async def stored(engine: MemoryEngine, container_id: int) -> Rows:
    def body(snap: Snapshot) -> Rows:
        found: dict[str, list[Any]] = {}
        for index, prefix in enumerate((keys.blobs, keys.stagings, keys.history_changes_in)):
            start = prefix(container_id)
            for key, value in snap.scan(start, keys.after(start)):
                found.setdefault(key[9:].decode(), [None, None, None])[index] = value
        start = keys.snapshots_in(container_id)
        for key, value in snap.scan(start, keys.after(start)):
            found.setdefault(key[9:-9].decode(), [None, None, None]).append(value)
        return {name: tuple(values) for name, values in found.items()}

    return await engine.read(body)


async def run_upgrade(engine: MemoryEngine) -> int:
    """Run all steps. Returns how many there were."""
    cursor: bytes | None = b""
    steps = 0
    while cursor is not None:
        following = await engine.run(partial(upgrade.upgrade_blob_names, cursor=cursor))
        assert following != cursor
        cursor = following
        steps += 1
    return steps


@pytest.mark.parametrize("rows_at_a_time", [1, 2, 3, 500])
async def test_everything_of_a_name_moves(rows_at_a_time: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upgrade, "ROWS_AT_A_TIME", rows_at_a_time)
    rows: Rows = {
        "a": (b"1", None, None),
        "a\\b": (b"2", b"s", b"m", b"v0", b"v1", b"v2"),
        "a\\b\\c": (b"3", None, None),
        "only\\staged": (None, b"s", None),
        "only\\snapshots": (None, None, None, b"v0", b"v1"),
        "z/plain": (b"4", b"s", None, b"v"),
    }
    engine, container_id = await made(rows)
    await run_upgrade(engine)
    expected = {name.replace("\\", "/"): values for name, values in rows.items()}
    assert await stored(engine, container_id) == expected
    await run_upgrade(engine)
    assert await stored(engine, container_id) == expected


@pytest.mark.parametrize("rows_at_a_time", [1, 500])
async def test_a_name_that_exists_already(
    rows_at_a_time: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(upgrade, "ROWS_AT_A_TIME", rows_at_a_time)
    engine, container_id = await made(
        {
            "a/b": (b"slash", None, None),
            "a\\b": (b"backslash", None, None, b"v0", b"v1"),
            "x_y": (b"underscore", None, None),
            "x/y": (None, None, None, b"v"),
            "x\\y": (b"backslash", None, None),
        }
    )
    await run_upgrade(engine)
    assert await stored(engine, container_id) == {
        "a/b": (b"slash", None, None),
        "a_b": (b"backslash", None, None, b"v0", b"v1"),
        "x_y": (b"underscore", None, None),
        "x/y": (None, None, None, b"v"),
        "x_y-1": (b"backslash", None, None),
    }
    assert [record.message for record in caplog.records] == ["a blob is renamed"] * 2


@pytest.mark.parametrize(
    ("key", "name"),
    [(ROOT, "a\\b"), (BOX, "\\".join("s" * 300)), (BOX, "😀" * 511 + "\\"), (BOX, "\\" * 1024)],
    ids=["root container", "too deep", "long", "only backslashes"],
)
async def test_every_name_can_be_reached_afterwards(key: ContainerKey, name: str) -> None:
    other = (b"other", None, None)
    rows: Rows = {name: (b"data", None, None), name.replace("\\", "_"): other}
    if key == BOX:
        rows[name.replace("\\", "/")] = other
    engine, container_id = await made(rows, key)
    await run_upgrade(engine)
    found = await stored(engine, container_id)
    assert len(found) == len(rows)
    ((renamed, _),) = ((each, values) for each, values in found.items() if values[0] == b"data")
    assert "\\" not in renamed
    names.check_blob(renamed, key.name)


async def test_a_step_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upgrade, "ROWS_AT_A_TIME", 10)
    rows: Rows = {f"a\\{number:03}": (b"x", None, None) for number in range(100)}
    rows["many\\snapshots"] = (b"x", None, None, *[b"v"] * 95)
    engine, container_id = await made(rows)
    assert await run_upgrade(engine) >= 20
    assert len(await stored(engine, container_id)) == 101
