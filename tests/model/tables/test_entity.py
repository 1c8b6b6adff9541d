"""Changes of entities: groups are there as a whole or not at all, large ones take several rows, deleted tables go."""

import json
from typing import Any

import pytest

from kyanite.engine.api import MAX_VALUE_BYTES, Engine, EngineBusy
from kyanite.engine.faulty import Call, Fail, FaultyEngine, Repeat
from kyanite.engine.memory.engine import MemoryEngine
from kyanite.model import keys
from kyanite.model.maintenance import deleted_tables
from kyanite.model.maintenance.tasks import Marked, step_of
from kyanite.model.tables import entity, query, table
from kyanite.model.tables.entity import Change, ChangeRefused
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
        "old",
        None,
        "either",
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
    assert await rows(engine, parts) == 2
    await change(engine, Act.INSERT, "s", small=1)
    page = await query.query(engine, TABLE, Query(query.plan(None)))
    assert [json.loads(each)["RowKey"] for each in page.texts] == ["r", "s"]
    etag = await change(engine, Act.MERGE, "r", etag, t00="short")
    assert await properties_of(engine, "r") == {**large("a"), "t00": "short"}
    etag = await change(engine, Act.UPDATE, "r", etag, **large("b"))
    assert await properties_of(engine, "r") == large("b")
    assert await rows(engine, parts) == 2
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
    assert await rows(engine, keys.entity_parts((await table.get(engine, TABLE)).id)) == 4


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
