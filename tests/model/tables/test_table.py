"""Tables themselves: made, found, changed, deleted and listed."""

import pytest

from kyanite.engine.memory.engine import MemoryEngine
from kyanite.model import keys
from kyanite.model.records import Policy
from kyanite.model.tables import entity, table
from kyanite.model.tables.change import Change
from kyanite.model.tables.table import TableKey
from kyanite.rules.entities import Act
from kyanite.rules.refusals import Refused
from kyanite.values import Instant

TABLE = TableKey("acme", "Things")
START = Instant(638_500_000_000_000_000)


async def with_table() -> MemoryEngine:
    engine = MemoryEngine(clock=lambda: START)
    await table.create(engine, TABLE)
    return engine


async def test_policies_are_replaced() -> None:
    engine = await with_table()
    first, second = Policy("a", permissions="r"), Policy("b", START, None, "raud")
    await table.set_policies(engine, TABLE, (first, second))
    assert (await table.get(engine, TABLE)).policies == (first, second)
    await table.set_policies(engine, TABLE, (second,))
    record = await table.get(engine, TABLE)
    assert (record.policies, record.name, record.created_at) == ((second,), "Things", START)


async def test_a_table_that_does_not_exist() -> None:
    engine = MemoryEngine()
    assert await table.find(engine, TABLE) is None
    for request in (
        lambda: table.get(engine, TABLE),
        lambda: table.set_policies(engine, TABLE, ()),
        lambda: table.delete(engine, TABLE),
        lambda: entity.find(engine, TABLE, "p", "r"),
        lambda: entity.apply(engine, TABLE, [Change(Act.INSERT, "p", "r", {})]),
    ):
        with pytest.raises(Refused, match="TABLE_NOT_FOUND"):
            await request()
    assert await engine.read(lambda snap: list(snap.scan(b"", b"\xff"))) == []


async def test_a_table_of_the_same_name_has_none_of_the_entities() -> None:
    """Also when the clock has not moved in between."""
    engine = await with_table()
    await entity.apply(engine, TABLE, [Change(Act.INSERT, "p", "r", {"n": 1})])
    first = await table.get(engine, TABLE)
    await table.delete(engine, TABLE)
    await table.create(engine, TABLE)
    second = await table.get(engine, TABLE)
    assert first.id != second.id
    with pytest.raises(Refused, match="ENTITY_NOT_FOUND"):
        await entity.find(engine, TABLE, "p", "r")
    marks = await engine.read(lambda snap: [key for key, _ in snap.scan(keys.DELETED_TABLES, b"U")])
    assert marks == [keys.deleted_table(first.id)]


async def test_ids_are_unlike_those_of_format_1() -> None:
    """Format 1 used the instant of the transaction, up to the end of the calendar."""
    record = await table.get(await with_table(), TABLE)
    assert record.id > Instant(3_155_378_975_999_999_999)


async def test_names_of_tables_compare_without_case() -> None:
    engine = await with_table()
    with pytest.raises(Refused, match="TABLE_ALREADY_EXISTS"):
        await table.create(engine, TableKey("acme", "tHINGS"))
    assert (await table.get(engine, TableKey("acme", "THINGS"))).name == "Things"
    await table.create(engine, TableKey("other", "tHINGS"))
    await table.delete(engine, TableKey("acme", "things"))
    assert await table.find(engine, TABLE) is None
    assert (await table.get(engine, TableKey("other", "things"))).name == "tHINGS"


async def test_a_listing_of_tables_pages_and_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = MemoryEngine()
    for name in ("Bbb", "aaa", "ccc", "CCD"):
        await table.create(engine, TableKey("acme", name))

    async def listed(first: str, limit: int, wanted: str = "") -> tuple[list[str], str | None]:
        page = await table.list_tables(
            engine, "acme", matches=lambda name: wanted in name, first=first, limit=limit
        )
        return page.names, page.next_name

    assert await listed("", 10) == (["aaa", "Bbb", "ccc", "CCD"], None)
    assert await listed("", 3) == (["aaa", "Bbb", "ccc"], "CCD")
    assert await listed("CCD", 3) == (["CCD"], None)
    assert await listed("", 4) == (["aaa", "Bbb", "ccc", "CCD"], None)
    monkeypatch.setattr(table, "MAX_TABLES_READ", 2)
    assert await listed("", 10, wanted="c") == ([], "ccc")
