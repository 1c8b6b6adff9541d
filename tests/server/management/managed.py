"""What commands work on, over a service without a server."""

from pathlib import Path
from typing import Any, cast

from kyanite.engine.clock import wall_clock
from kyanite.server.accounts.directory import AccountDirectory
from kyanite.server.accounts.sealed_keys import KeyFile
from kyanite.server.management.command import Management
from kyanite.server.processes.process_table import ProcessTable
from kyanite.server.stamps.served import ServedStamp, ServedStamps, StampSettings
from kyanite.server.stamps.stamp import MAIN
from tests.services.harness import ACCOUNT, Harness


def management_of(service: Harness) -> Management:
    accounts = service.environment.accounts
    store = accounts[ACCOUNT.name].store
    slots = ProcessTable(["worker 1"]).slots
    key_file = KeyFile(Path("nowhere"), may_make=False)
    directory = AccountDirectory(
        store, (), key_file, host="127.0.0.1", allow_development_key=True, slot=slots["worker 1"]
    )
    settings = StampSettings(
        location=Path("nowhere"),
        stated=(),
        accounts=(),
        clock=wall_clock,
        dead_after_seconds=15.0,
        process="worker 1",
        prepares=True,
    )
    stamps = ServedStamps(settings, _no_stamp, _no_stamp)
    stamps.stamps.append(ServedStamp(MAIN, cast(Any, None), store, directory))
    stamps.accounts.update(accounts)
    return Management(stamps, wall_clock, slots)


def _no_stamp(*_arguments: object) -> Any:
    raise AssertionError("There is one stamp only.")
