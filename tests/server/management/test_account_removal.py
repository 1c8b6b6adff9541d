"""Removing an account that is being moved into the store."""

from pathlib import Path

import pytest

from kyanite.model import account_rows, keys
from kyanite.model.account_rows import AccountRecord
from kyanite.server.failures import Failure
from kyanite.server.management.command import carry_out
from kyanite.server.management.commands import COMMANDS
from tests.server.management.managed import management_of
from tests.services.harness import Harness


async def test_an_account_stays_while_it_is_moved_into_the_store(tmp_path: Path) -> None:
    service = Harness(tmp_path)
    await service.engine.run(lambda tx: account_rows.save(tx, "acme", AccountRecord()))
    await service.engine.run(lambda tx: tx.put(keys.migration("acme"), b""))
    with pytest.raises(Failure, match="Account acme is being moved into this store"):
        await carry_out(COMMANDS, management_of(service), "account remove", {"name": "acme"})
    assert await service.engine.read(lambda snap: account_rows.load(snap, "acme")) == AccountRecord()
