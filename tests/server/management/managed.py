"""What commands work on, over a service without a server."""

from pathlib import Path

from kyanite.engine.clock import wall_clock
from kyanite.server.accounts.directory import AccountDirectory
from kyanite.server.accounts.sealed_keys import KeyFile
from kyanite.server.management.command import Management
from kyanite.server.processes.process_table import ProcessTable
from tests.services.harness import ACCOUNT, Harness


def management_of(service: Harness) -> Management:
    accounts = service.environment.accounts
    store = accounts[ACCOUNT.name].store
    slots = ProcessTable(["worker 1"]).slots
    key_file = KeyFile(Path("nowhere"), may_make=False)
    directory = AccountDirectory(
        store, (), key_file, host="127.0.0.1", allow_development_key=True, slot=slots["worker 1"]
    )
    return Management(store, accounts, wall_clock, directory, slots)
