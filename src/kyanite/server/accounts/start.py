"""What is stated about accounts is applied at every start: settings that transactions read are written to the store.

The other settings are not stored. They are in force as long as they are stated (``served.py``).
"""

from collections.abc import Sequence
from functools import partial

from kyanite.engine.api import Engine, Transaction
from kyanite.model import account_rows, settings
from kyanite.model.account_rows import AccountRecord
from kyanite.server.accounts.settings import apply, apply_to_service, problem_of_both
from kyanite.server.config import StatedAccount
from kyanite.server.failures import Failure

SERVICE = "blob"
"""The service that these settings belong to."""


async def apply_stated(engine: Engine, stated: Sequence[StatedAccount]) -> None:
    for account in stated:
        if account.settings.given():
            await engine.run(partial(_apply, account=account))


def _apply(tx: Transaction, account: StatedAccount) -> None:
    record = account_rows.load(tx, account.name) or AccountRecord()
    present = settings.load(tx, account.name, SERVICE)
    wanted = apply_to_service(account.settings, present)
    problem = problem_of_both(apply(account.settings, record.settings), wanted)
    if problem is not None:
        raise Failure(f"Account {account.name} cannot have the settings that are stated: {problem}.")
    if wanted != present:
        settings.save(tx, account.name, SERVICE, wanted)
