"""What is stated about accounts is written to the store, where transactions read it."""

import pytest

from kyanite.engine.memory.engine import MemoryEngine
from kyanite.model import account_rows, keys, settings
from kyanite.model.account_rows import AccountRecord
from kyanite.model.accounts import AccountSettings
from kyanite.model.blobs import container, protection
from kyanite.model.blobs.container import ContainerKey
from kyanite.model.records import encode
from kyanite.server.accounts.settings import SettingsChange
from kyanite.server.accounts.start import apply_stated
from kyanite.server.config import StatedAccount
from kyanite.server.failures import Failure
from kyanite.service_properties import INITIAL, CorsRule, DeleteRetention, Retention, ServiceProperties

CORS = (CorsRule(("*",), ("GET",), 1, (), ()),)


async def test_settings_of_the_service_are_written_and_the_rest_is_kept() -> None:
    engine = MemoryEngine()
    await settings.update(engine, "alpha", "blob", ServiceProperties(cors=CORS, versioning=False))
    change = SettingsChange(versioning=True, blob_soft_delete_days=7, container_soft_delete_days=3)
    await apply_stated(engine, [StatedAccount("alpha", (b"key",), change), StatedAccount("beta2", (b"key",))])
    assert await settings.get(engine, "alpha", "blob") == INITIAL._replace(
        cors=CORS,
        versioning=True,
        delete_retention=DeleteRetention(Retention(7)),
        container_retention=Retention(3),
    )
    assert await engine.read(lambda snap: list(snap.scan(b"", b"\xff"))) == [
        (keys.service_properties("alpha", "blob"), encode(await settings.get(engine, "alpha", "blob")))
    ]


async def test_an_account_that_is_being_removed() -> None:
    """What is applied now would be deleted with its data."""
    engine = MemoryEngine()
    await engine.run(lambda tx: account_rows.close(tx, "alpha"))
    with pytest.raises(
        Failure, match="The data of the account alpha that was removed is still being deleted"
    ):
        await apply_stated(engine, [StatedAccount("alpha", (b"key",))])


async def test_what_does_not_go_together() -> None:
    engine = MemoryEngine()
    stated = StatedAccount("alpha", (b"key",), SettingsChange(version_level_immutability=True))
    with pytest.raises(Failure, match="Account alpha cannot have the settings that are stated"):
        await apply_stated(engine, [stated])
    await settings.update(engine, "alpha", "blob", ServiceProperties(versioning=True))
    await apply_stated(engine, [stated])
    stored = AccountRecord((), AccountSettings(version_level_immutability=True))
    await engine.run(lambda tx: account_rows.save(tx, "alpha", stored))
    with pytest.raises(Failure, match="version_level_immutability needs versioning"):
        await apply_stated(engine, [StatedAccount("alpha", (b"key",), SettingsChange(versioning=False))])


async def test_containers_with_version_level_immutability_need_versioning() -> None:
    engine = MemoryEngine()
    off = SettingsChange(versioning=False)
    await settings.update(engine, "alpha", "blob", ServiceProperties(versioning=True))
    await container.create(engine, ContainerKey("alpha", "box"), metadata={}, public_access="")
    await protection.enable_version_level(engine, ContainerKey("alpha", "box"))
    with pytest.raises(Failure) as failed:
        await apply_stated(engine, [StatedAccount("alpha", (b"key",), off)])
    assert failed.value.sentence == (
        "Account alpha needs versioning, because its container box has version-level immutability."
    )
    await apply_stated(engine, [StatedAccount("beta2", (b"key",), off)])
    await apply_stated(engine, [StatedAccount("alpha", (b"key",), SettingsChange(blob_soft_delete_days=3))])
