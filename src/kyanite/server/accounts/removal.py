"""Letting the data of removed accounts be purged, as soon as no process serves a request of theirs any more.

An account with a container that immutability protects is not removed. Only then can that be known for sure: a request
that was in progress may have made one.
"""

import logging
from collections.abc import Awaitable, Callable
from functools import partial

from kyanite.engine.api import Engine, Transaction
from kyanite.model import account_rows
from kyanite.model.blobs import protected_containers
from kyanite.model.maintenance.tasks import Step
from kyanite.values import Instant

_log = logging.getLogger("kyanite.accounts")


def removal_step(engine: Engine, obeyed: Callable[[], Awaitable[None]]) -> Step:
    """A step of maintenance. It finds in the store what a process that died has left undone.

    ``obeyed`` returns when every process has read what the store says about its accounts.
    """

    searched_at = Instant(-1)
    """The last change of an account, when none was found to be waiting."""

    async def step() -> bool:
        nonlocal searched_at
        changed_at = await engine.read(account_rows.last_change)
        if changed_at == searched_at:
            return False
        names = await engine.read_in_steps(account_rows.closed_accounts)
        if not names:
            searched_at = changed_at
            return False
        await obeyed()
        for name in names:
            protected = await engine.run(partial(_purge_or_reopen, name=name))
            if protected is not None:
                _log.warning("account not removed", extra={"account": name, "container": protected})
        return True

    return step


def _purge_or_reopen(tx: Transaction, name: str) -> str | None:
    """The name of a protected container, for whose sake the account is opened again."""
    protected = protected_containers.first(tx, name)
    if protected is None:
        account_rows.let_purge(tx, name)
    else:
        account_rows.reopen(tx, name)
    return protected
