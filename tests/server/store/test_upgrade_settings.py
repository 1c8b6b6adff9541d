"""Service properties of format 1, as single rows and from a store of that format."""

from functools import partial
from pathlib import Path

import pytest

from kyanite.engine.api import Engine, Transaction
from kyanite.engine.memory.engine import MemoryEngine
from kyanite.engine.sqlite.engine import SqliteEngine
from kyanite.model import keys, settings
from kyanite.server.store import upgrade_settings as upgrade
from kyanite.service_properties import (
    INITIAL,
    DeleteRetention,
    ProtocolSettings,
    Retention,
    ServiceProperties,
    StaticWebsite,
)
from kyanite.wire import service_properties as wire
from tests.service_properties import EVERYTHING
from tests.stores.recorded import unpack

STORE = Path(__file__).parents[2] / "stores" / "394e107.tar.xz"
OFF = ServiceProperties(delete_retention=DeleteRetention(), static_website=StaticWebsite())


async def store_documents(engine: Engine, *documents: bytes) -> list[str]:
    """Rows of format 1, each for an account of its own. Returns the accounts."""
    accounts = [f"account{number}" for number in range(len(documents))]

    def body(tx: Transaction) -> None:
        for account, document in zip(accounts, documents, strict=True):
            tx.put(keys.service_properties(account, "blob"), document)

    await engine.run(body)
    return accounts


async def run_upgrade(engine: Engine) -> int:
    """Run all steps. Returns how many there were."""
    cursor: bytes | None = b""
    steps = 0
    while cursor is not None:
        cursor = await engine.run(partial(upgrade.upgrade_settings, cursor=cursor))
        steps += 1
    return steps


@pytest.mark.parametrize("properties", [EVERYTHING, INITIAL, ServiceProperties(), ServiceProperties(cors=())])
async def test_documents_become_records(properties: ServiceProperties) -> None:
    engine = MemoryEngine()
    (account,) = await store_documents(engine, wire.encode(properties, wire.EVERY_ELEMENT))
    await run_upgrade(engine)
    assert await settings.get(engine, account, "blob") == INITIAL.updated(properties).updated(OFF)


async def test_it_can_run_again() -> None:
    engine = MemoryEngine()
    (account,) = await store_documents(engine, wire.encode(EVERYTHING, wire.EVERY_ELEMENT))
    await run_upgrade(engine)
    await settings.update(engine, account, "blob", ServiceProperties(cors=()))
    await run_upgrade(engine)
    expected = EVERYTHING.updated(OFF)._replace(cors=())
    assert await settings.get(engine, account, "blob") == expected


async def test_a_step_converts_a_bounded_number_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upgrade, "ROWS_AT_A_TIME", 2)
    engine = MemoryEngine()
    document = wire.encode(ServiceProperties(default_service_version="2021-12-02"), wire.EVERY_ELEMENT)
    accounts = await store_documents(engine, *[document] * 5)
    assert await run_upgrade(engine) == 3
    for account in accounts:
        found = await settings.get(engine, account, "blob")
        assert found.default_service_version == "2021-12-02"


async def test_rows_of_other_kinds_are_left_alone() -> None:
    engine = MemoryEngine()
    neighbours = {key: wire.encode(INITIAL, wire.EVERY_ELEMENT) for key in (b"r\xff", b"t", b"acme\0blob")}

    def body(tx: Transaction) -> None:
        for key, value in neighbours.items():
            tx.put(key, value)

    await engine.run(body)
    await run_upgrade(engine)
    assert await engine.read(lambda snap: {key: snap.get(key) for key in neighbours}) == neighbours


async def test_a_store_of_format_1(tmp_path: Path) -> None:
    unpack(STORE, tmp_path)
    engine = SqliteEngine.open(tmp_path / "engine")
    try:
        await run_upgrade(engine)
        blob = await settings.get(engine, "acme", "blob")
        assert (blob.delete_retention, blob.static_website) == (DeleteRetention(), StaticWebsite())
        assert blob.default_service_version == "2021-12-02"
        assert blob.logging is not None
        assert (blob.logging.delete, blob.logging.read, blob.logging.retention) == (True, False, Retention(7))
        assert [rule.max_age_seconds for rule in blob.cors or ()] == [500]
        file = await settings.get(engine, "acme", "file")
        assert file.share_retention == Retention(365)
        assert file.protocols == ProtocolSettings(smb_multichannel=True)
    finally:
        await engine.close()
