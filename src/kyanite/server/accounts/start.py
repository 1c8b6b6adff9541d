"""What is stated about accounts is applied at every start: settings that transactions read are written to the store.

The other settings are not stored. They are in force as long as they are stated (``served.py``).
"""

from collections.abc import Sequence
from functools import partial

from kyanite.engine.api import Engine, Snapshot, Transaction
from kyanite.model import account_rows, settings
from kyanite.model.account_rows import AccountRecord
from kyanite.model.blobs import protected_containers
from kyanite.server.accounts.settings import apply, apply_to_service, problem_of_both
from kyanite.server.config import StatedAccount
from kyanite.server.failures import Failure
from kyanite.service_properties import ServiceProperties

SERVICE = "blob"
"""The service that these settings belong to."""


async def apply_stated(engine: Engine, stated: Sequence[StatedAccount]) -> None:
    for account in stated:
        await engine.run(partial(_apply, account=account))


def problem_without_versioning(snap: Snapshot, name: str, wanted: ServiceProperties) -> str | None:
    """Why an account cannot have these properties of the Blob service, if they are without versioning."""
    container = None if wanted.versioning else protected_containers.first(snap, name, version_level_only=True)
    if container is None:
        return None
    return (
        f"Account {name} needs versioning, because its container {container} has version-level immutability."
    )


def _apply(tx: Transaction, account: StatedAccount) -> None:
    record = account_rows.load(tx, account.name) or AccountRecord()
    if record.is_removed:
        raise Failure(
            f"The data of the account {account.name} that was removed is still being deleted: start the server once "
            "without stating that account."
        )
    present = settings.load(tx, account.name, SERVICE)
    wanted = apply_to_service(account.settings, present)
    problem = problem_of_both(apply(account.settings, record.settings), wanted)
    if problem is not None:
        raise Failure(f"Account {account.name} cannot have the settings that are stated: {problem}.")
    if (problem := problem_without_versioning(tx, account.name, wanted)) is not None:
        raise Failure(problem)
    if wanted != present:
        settings.save(tx, account.name, SERVICE, wanted)
