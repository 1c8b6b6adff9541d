"""Changes of entities: groups are there as a whole or not at all, large ones take several rows, deleted tables go."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from kyanite.engine.api import MAX_VALUE_BYTES, Engine, EngineBusy, Snapshot, Transaction
from kyanite.engine.faulty import Call, Fail, FaultyEngine, Repeat
from kyanite.engine.memory.engine import MemoryEngine
from kyanite.model import keys
from kyanite.model.maintenance import deleted_tables
from kyanite.model.maintenance.tasks import Marked, step_of
from kyanite.model.tables import entity, query, stored_entity, table
from kyanite.model.tables.change import Change
from kyanite.model.tables.entity import ChangeRefused
from kyanite.model.tables.query import Query
from kyanite.model.tables.table import TableKey
from kyanite.rules.entities import Act
from kyanite.rules.refusals import Reason, Refused

TABLE = TableKey("acme", "Things")
ESCAPED = "\u0001" * 32_000
"""Each of these is six bytes of JSON, and two bytes of an entity."""


async def with_table() -> MemoryEngine:
    engine = MemoryEngine()
    await table.create(engine, TABLE)
    return engine


async def change(engine: Engine, act: Act, row_key: str, if_match: str = "*", **properties: Any) -> str:
    written = await entity.apply(engine, TABLE, [Change(act, "p", row_key, properties, if_match)])
    return written.etag


async def properties_of(engine: Engine, row_key: str) -> dict[str, Any]:
    found = json.loads((await entity.find(engine, TABLE, "p", row_key)).text)
    for name in ("odata.etag", "PartitionKey", "RowKey", "Timestamp"):
        del found[name]
    assert isinstance(found, dict)
    return found


async def rows(engine: Engine, prefix: bytes) -> int:
    return await engine.read(lambda snap: sum(1 for _ in snap.scan(prefix, keys.after(prefix))))


async def test_acts_one_after_another() -> None:
    engine = await with_table()
    first = await change(engine, Act.INSERT, "r", a=1, b=2)
    second = await change(engine, Act.MERGE, "r", first, b=3, c=4)
    assert await properties_of(engine, "r") == {"a": 1, "b": 3, "c": 4}
    with pytest.raises(Refused, match="UPDATE_CONDITION_NOT_SATISFIED"):
        await change(engine, Act.UPDATE, "r", first, a=0)
    third = await change(engine, Act.UPDATE, "r", second, d=5)
    assert await properties_of(engine, "r") == {"d": 5}
    fourth = await change(engine, Act.INSERT_OR_MERGE, "r", e=6)
    assert await properties_of(engine, "r") == {"d": 5, "e": 6}
    fifth = await change(engine, Act.INSERT_OR_REPLACE, "r", f=7)
    assert await properties_of(engine, "r") == {"f": 7}
    assert [first, second, third, fourth, fifth] == sorted({first, second, third, fourth, fifth})
    await change(engine, Act.DELETE, "r", fifth)
    with pytest.raises(Refused, match="ENTITY_NOT_FOUND"):
        await properties_of(engine, "r")
    assert await change(engine, Act.INSERT, "r") > fifth


GROUP = [
    Change(Act.INSERT, "p", "new", {"n": 1}),
    Change(Act.MERGE, "p", "old", {"n": 1}),
    Change(Act.DELETE, "p", "gone", {}),
    Change(Act.INSERT_OR_REPLACE, "p", "either", {"n": 1}),
]


async def with_old_ones() -> MemoryEngine:
    engine = await with_table()
    await change(engine, Act.INSERT, "old", m=0)
    await change(engine, Act.INSERT, "gone", m=0)
    return engine


async def everything(engine: Engine) -> dict[str, Any]:
    page = await query.query(engine, TABLE, Query(query.plan(None)))
    return {each["RowKey"]: each for each in map(json.loads, page.texts)}


async def test_a_group_is_done_in_one() -> None:
    engine = await with_old_ones()
    written = await entity.apply(engine, TABLE, GROUP)
    found = await everything(engine)
    assert sorted(found) == ["either", "new", "old"]
    assert {one["odata.etag"] for one in found.values()} == {f'W/"{written.etag}"'}
    assert (found["old"]["m"], found["old"]["n"]) == (0, 1)
    assert [json.loads(text)["RowKey"] if text else None for text in written.texts] == [
        "new",
        None,
        None,
        None,
    ]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (Change(Act.INSERT, "p", "old2", {}), Reason.ENTITY_ALREADY_EXISTS),
        (Change(Act.UPDATE, "p", "missing", {}), Reason.ENTITY_NOT_FOUND),
        (Change(Act.DELETE, "p", "old2", {}, "datetime'x'"), Reason.UPDATE_CONDITION_NOT_SATISFIED),
        (Change(Act.MERGE, "p", "old2", {f"p{n}": 1 for n in range(252)}), Reason.TOO_MANY_PROPERTIES),
    ],
)
@pytest.mark.parametrize("at", range(5))
async def test_of_a_group_that_fails_nothing_is_done(bad: Change, reason: Reason, at: int) -> None:
    engine = await with_old_ones()
    await change(engine, Act.INSERT, "old2", m=0)
    before = await everything(engine)
    with pytest.raises(ChangeRefused) as caught:
        await entity.apply(engine, TABLE, [*GROUP[:at], bad, *GROUP[at:]])
    assert (caught.value.reason, caught.value.index) == (reason, at)
    assert await everything(engine) == before


async def test_a_group_that_is_run_again_is_done_once() -> None:
    engine = await with_old_ones()
    faulty = FaultyEngine(engine, {(Call.RUN, 1): Repeat(2), (Call.RUN, 2): Fail(EngineBusy())})
    await entity.apply(faulty, TABLE, GROUP)
    assert sorted(await everything(engine)) == ["either", "new", "old"]
    with pytest.raises(EngineBusy):
        await entity.apply(faulty, TABLE, GROUP)
    faulty.check_all_hit()


# Large entities


def large(mark: str) -> dict[str, Any]:
    return {f"t{number:02}": mark + ESCAPED for number in range(16)}


async def test_a_large_entity_takes_several_rows_and_looks_like_any_other() -> None:
    engine = await with_table()
    etag = await change(engine, Act.INSERT, "r", **large("a"))
    text = (await entity.find(engine, TABLE, "p", "r")).text
    assert len(text) > 2 * MAX_VALUE_BYTES
    assert await properties_of(engine, "r") == large("a")
    parts = keys.entity_parts((await table.get(engine, TABLE)).id)
    assert await rows(engine, parts) == 3
    await change(engine, Act.INSERT, "s", small=1)
    page = await query.query(engine, TABLE, Query(query.plan(None)))
    assert [json.loads(each)["RowKey"] for each in page.texts] == ["r", "s"]
    etag = await change(engine, Act.MERGE, "r", etag, t00="short")
    assert await properties_of(engine, "r") == {**large("a"), "t00": "short"}
    etag = await change(engine, Act.UPDATE, "r", etag, **large("b"))
    assert await properties_of(engine, "r") == large("b")
    assert await rows(engine, parts) == 3
    await change(engine, Act.UPDATE, "r", etag, small=1)
    assert await rows(engine, parts) == 0


async def test_large_entities_of_one_group_do_not_mix() -> None:
    engine = await with_table()
    changes = [Change(Act.INSERT, "p", f"r{n}", large(str(n))) for n in range(3)]
    await entity.apply(engine, TABLE, changes)
    for number in range(3):
        assert await properties_of(engine, f"r{number}") == large(str(number))
    await entity.apply(engine, TABLE, [Change(Act.DELETE, "p", "r1", {})])
    assert await properties_of(engine, "r2") == large("2")
    assert await rows(engine, keys.entity_parts((await table.get(engine, TABLE)).id)) == 6


OLD_FORMS: dict[str, Callable[[bytes], list[bytes]]] = {
    "one row": lambda text: [text],
    "several rows": lambda text: [b"\1" + bytes(7) + b"\7\0\1" + text[:60_000], text[60_000:]],
}


@pytest.mark.parametrize("form", OLD_FORMS)
async def test_long_entities_that_earlier_versions_wrote(form: str) -> None:
    """They had as much as possible in the first row."""
    engine = await with_table()
    etag = await change(engine, Act.INSERT, "r", t="x" * 32_000, u="y" * 32_000, v="z" * 32_000, w=1)
    text = (await entity.find(engine, TABLE, "p", "r")).text
    table_id = (await table.get(engine, TABLE)).id
    key = keys.entities(table_id) + keys.entity("p", "r")

    def put_old_form(tx: Transaction) -> None:
        row = tx.get(key)
        assert row is not None
        stored_entity.drop(tx, table_id, row)
        first, *more = OLD_FORMS[form](text)
        tx.put(key, first)
        for part in more:
            tx.put(keys.entity_part(table_id, 7, 0, 0), part)

    await engine.run(put_old_form)
    assert (await entity.find(engine, TABLE, "p", "r")).text == text
    await change(engine, Act.MERGE, "r", etag, w=2)
    assert (await properties_of(engine, "r"))["w"] == 2
    assert await rows(engine, keys.entity_parts(table_id)) == 1


# Merging before the transaction


LONG: dict[str, Any] = {"t": "x" * 32_000, "n": 0}


class ChangedMeanwhile(MemoryEngine):
    """Other clients change an entity after each time that it is read."""

    def __init__(self) -> None:
        super().__init__()
        self.times_left = 0
        self._tasks: list[asyncio.Task[str]] = []

    def read(self, body: Callable[[Snapshot], Any]) -> Any:
        outcome = super().read(body)
        if self.times_left > 0:
            self.times_left -= 1
            work = change(self, Act.INSERT_OR_REPLACE, "r", **LONG, other=self.times_left)
            self._tasks.append(asyncio.create_task(work))
        return outcome


async def changed_meanwhile() -> ChangedMeanwhile:
    engine = ChangedMeanwhile()
    await table.create(engine, TABLE)
    await change(engine, Act.INSERT, "r", **LONG)
    await change(engine, Act.INSERT, "s", **LONG)
    return engine


async def test_a_change_is_merged_into_what_is_there_at_last() -> None:
    engine = await changed_meanwhile()
    engine.times_left = 3
    both = [Change(Act.MERGE, "p", name, {"n": 1}) for name in ("r", "s")]
    await entity.apply(engine, TABLE, both)
    assert await properties_of(engine, "r") == {**LONG, "n": 1, "other": 0}
    assert await properties_of(engine, "s") == {**LONG, "n": 1}


async def test_it_is_not_tried_for_ever() -> None:
    engine = await changed_meanwhile()
    engine.times_left = 1000
    with pytest.raises(EngineBusy):
        await entity.apply(engine, TABLE, [Change(Act.MERGE, "p", "r", {"n": 1})])
    engine.times_left = 0
    assert (await properties_of(engine, "r"))["n"] == 0


async def test_the_first_change_that_is_refused_is_the_one_that_is_named() -> None:
    """Although what it becomes is found out before."""
    engine = await changed_meanwhile()
    too_many = Change(Act.MERGE, "p", "s", {f"p{n}": 1 for n in range(252)})
    outdated = Change(Act.MERGE, "p", "r", {"n": 1}, "datetime'x'")
    for changes, reason in (
        ([outdated, too_many], Reason.UPDATE_CONDITION_NOT_SATISFIED),
        ([too_many, outdated], Reason.TOO_MANY_PROPERTIES),
    ):
        with pytest.raises(ChangeRefused) as refused:
            await entity.apply(engine, TABLE, changes)
        assert (refused.value.index, refused.value.reason) == (0, reason)


async def test_groups_with_many_long_entities_wait_for_one_another() -> None:
    engine = await with_table()
    names = [f"r{number:02}" for number in range(40)]
    await entity.apply(engine, TABLE, [Change(Act.INSERT, "p", name, LONG) for name in names])
    groups = [[Change(Act.MERGE, "p", name, {f"g{group}": 1}) for name in names] for group in range(4)]
    await asyncio.gather(*(entity.apply(engine, TABLE, group) for group in groups))
    for name in names:
        assert await properties_of(engine, name) == {**LONG, "g0": 1, "g1": 1, "g2": 1, "g3": 1}


# Tables that are deleted


async def test_a_deleted_table_is_purged_in_bounded_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deleted_tables, "ROWS_PER_STEP", 40)
    engine = await with_table()
    table_id = (await table.get(engine, TABLE)).id
    await entity.apply(engine, TABLE, [Change(Act.INSERT, "p", str(n), {}) for n in range(99)])
    await change(engine, Act.INSERT, "large", **large("x"))
    await table.delete(engine, TABLE)
    await table.create(engine, TABLE)
    await change(engine, Act.INSERT, "kept", n=1)
    step = step_of(engine, Marked(keys.DELETED_TABLES, deleted_tables.purge))
    steps = 0
    while await step():
        steps += 1
    assert steps == 4
    for prefix in (keys.entities(table_id), keys.entity_parts(table_id), keys.DELETED_TABLES):
        assert await rows(engine, prefix) == 0
    assert await properties_of(engine, "kept") == {"n": 1}
