"""The accounts of one process, kept up to date, and the wait for all processes."""

import asyncio
from collections.abc import Collection
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from kyanite.engine.memory.engine import MemoryEngine
from kyanite.model import account_rows
from kyanite.model.account_rows import AccountRecord
from kyanite.model.accounts import AccountSettings, Store
from kyanite.server.accounts import directory as accounts
from kyanite.server.accounts.directory import AccountDirectory, all_obey
from kyanite.server.accounts.sealed_keys import KeyFile, Sealer
from kyanite.server.config import StatedAccount
from kyanite.server.failures import Failure
from kyanite.server.processes.process_table import ProcessTable, Slot, State
from kyanite.values import Instant

SECRET = b"s" * 32


@pytest.fixture
def key_file(tmp_path: Path) -> KeyFile:
    path = tmp_path / "seal"
    path.write_bytes(SECRET)
    return KeyFile(path, may_make=False)


def new_directory(engine: MemoryEngine, key_file: KeyFile, *stated: StatedAccount) -> AccountDirectory:
    # Accounts are rows only.
    store = Store(engine, SimpleNamespace(has_files=True), None)  # type: ignore[arg-type]
    slot = ProcessTable(["worker 1"]).slots["worker 1"]
    return AccountDirectory(store, stated, key_file, host="localhost", allow_development_key=True, slot=slot)


def record(name: str, key: bytes, **settings: object) -> AccountRecord:
    return AccountRecord((Sealer(SECRET).seal(name, key),), AccountSettings(**settings))  # type: ignore[arg-type]


def slot_of(directory: AccountDirectory) -> Slot:
    assert directory._slot is not None
    return directory._slot


async def save(engine: MemoryEngine, name: str, saved: AccountRecord) -> None:
    await engine.run(partial(account_rows.save, name=name, record=saved))


async def test_an_account_is_replaced_only_if_it_has_changed(key_file: KeyFile) -> None:
    engine = MemoryEngine()
    await save(engine, "alpha", record("alpha", b"a"))
    await save(engine, "beta2", record("beta2", b"b"))
    directory = new_directory(engine, key_file)
    await directory.load()
    served = directory.accounts
    alpha, beta = served["alpha"], served["beta2"]
    assert (alpha.keys, beta.keys) == ((b"a",), (b"b",))
    # The same key, sealed again, is no change.
    await save(engine, "alpha", record("alpha", b"a"))
    await save(engine, "beta2", record("beta2", b"c"))
    await directory.load()
    assert directory.accounts is served
    assert served["alpha"] is alpha
    assert served["beta2"] is not beta
    assert (beta.keys, served["beta2"].keys) == ((b"b",), (b"c",))
    await save(engine, "alpha", record("alpha", b"a", require_https=True))
    await directory.load()
    assert served["alpha"].settings.require_https
    assert not alpha.settings.require_https


async def test_it_follows_what_other_processes_change(key_file: KeyFile) -> None:
    engine = MemoryEngine()
    directory = new_directory(engine, key_file)
    await directory.load()
    assert list(directory.accounts) == ["devstoreaccount1"]
    removed: list[Collection[str]] = []

    async def note(names: Collection[str]) -> None:
        # The accounts are not found any more when what they have in progress is ended.
        assert not names & directory.accounts.keys()
        removed.append(names)

    directory.on_removed.append(note)
    following = asyncio.create_task(directory.follow())
    await asyncio.sleep(0)
    await save(engine, "alpha", record("alpha", b"a"))
    changed_at = await engine.read(account_rows.last_change)
    slots = {"worker 1": slot_of(directory)}
    slot_of(directory).state = State.SERVING
    await all_obey(slots, changed_at)
    assert list(directory.accounts) == ["alpha"]
    assert removed == [{"devstoreaccount1"}]
    await engine.run(partial(account_rows.close, name="alpha"))
    await all_obey(slots, await engine.read(account_rows.last_change))
    assert directory.accounts.keys() == {"devstoreaccount1"}
    assert removed[1:] == [{"alpha"}]
    await engine.close()
    await asyncio.wait_for(following, 5)


async def test_a_lost_notification_is_made_up_for(key_file: KeyFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "POLL_SECONDS", 0.01)
    engine = MemoryEngine()
    directory = new_directory(engine, key_file)
    await directory.load()
    following = asyncio.create_task(directory.follow())
    await asyncio.sleep(0)
    monkeypatch.setattr(account_rows, "TOPIC", b"another")
    await save(engine, "alpha", record("alpha", b"a"))
    slot_of(directory).state = State.SERVING
    await all_obey({"worker 1": slot_of(directory)}, await engine.read(account_rows.last_change))
    assert "alpha" in directory.accounts
    await engine.close()
    await following


async def test_a_wrong_key_file_is_one_sentence_and_leaves_what_is_served(key_file: KeyFile) -> None:
    engine = MemoryEngine()
    await save(engine, "alpha", record("alpha", b"a"))
    directory = new_directory(engine, key_file)
    await directory.load()
    key_file.path.write_bytes(b"t" * 32)
    # Keys that the secret in memory opens go on to be read.
    await save(engine, "beta2", record("beta2", b"b"))
    await directory.load()
    assert directory.accounts.keys() == {"alpha", "beta2"}
    strange = AccountRecord((Sealer(b"u" * 32).seal("gamma", b"c"),))
    await save(engine, "gamma", strange)
    with pytest.raises(Failure, match="is not the one that the key of account"):
        await directory.load()
    assert directory.accounts.keys() == {"alpha", "beta2"}
    assert slot_of(directory).accounts_at < await engine.read(account_rows.last_change)


async def test_who_has_to_obey(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "OBEY_SECONDS", 0.05)
    slots = ProcessTable(["worker 1", "worker 2"]).slots
    first, second = slots.values()
    # A process that is gone serves nothing.
    await all_obey(slots, Instant(5))
    first.take(1)
    first.accounts_at = Instant(5)
    await all_obey(slots, Instant(5))
    for state in (State.STARTING, State.SERVING, State.STOPPING):
        second.take(2)
        second.state = state
        with pytest.raises(Failure, match="but worker 2 has not confirmed yet that it obeys it"):
            await all_obey(slots, Instant(5))
        second.accounts_at = Instant(4)
        waiting = asyncio.create_task(all_obey(slots, Instant(5)))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        second.accounts_at = Instant(6)
        await waiting
    second.take(3)
    waiting = asyncio.create_task(all_obey(slots, Instant(5)))
    await asyncio.sleep(0.01)
    second.leave()
    await waiting
