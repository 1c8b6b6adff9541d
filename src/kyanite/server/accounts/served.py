"""Which accounts are served: those that the operator states when the server is started, and those in the store.

What an option, the environment or the configuration file states is in force as long as the server runs, whatever is
stored. The rest comes from the store. Without any account there is the development account, whose key everyone knows.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from kyanite.model.account_rows import AccountRecord
from kyanite.model.accounts import DEFAULT_SETTINGS, AccountSettings
from kyanite.server.accounts.settings import apply
from kyanite.server.config import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY, StatedAccount, well_known_key
from kyanite.server.failures import Failure


class ServedAccount(NamedTuple):
    keys: tuple[bytes, ...]
    settings: AccountSettings
    fixed: Mapping[str, str]


Opened = Callable[[str, bytes], bytes]
"""Decrypts a stored key of an account."""


def served_accounts(
    stated: Sequence[StatedAccount],
    stored: Mapping[str, AccountRecord],
    opened: Opened,
    *,
    has_default: bool = True,
) -> dict[str, ServedAccount]:
    """The accounts that are served, in the order in which they are stated, then by name.

    ``has_default`` is whether the development account is there if there is no other.

    An account that is being removed is not among them, not even if it is stated: it is made again when nothing is left.
    """
    served = {}
    for account in stated:
        record = stored.get(account.name, _NO_RECORD)
        if record.is_removed:
            continue
        keys = account.keys or _opened_keys(account.name, record, opened)
        if not keys:
            raise Failure(
                f"Account {account.name} has no key: state one with it, or add the account with 'kyanite account add'."
            )
        settings = apply(account.settings, record.settings)
        served[account.name] = ServedAccount(keys, settings, account.stated_by)
    for name, record in sorted(stored.items()):
        if name not in served and record.sealed_keys and not record.is_removed:
            served[name] = ServedAccount(_opened_keys(name, record, opened), record.settings, {})
    if (
        has_default
        and not served
        and not stated
        and not stored.get(DEVELOPMENT_ACCOUNT, _NO_RECORD).is_removed
    ):
        settings = stored.get(DEVELOPMENT_ACCOUNT, _NO_RECORD).settings
        served[DEVELOPMENT_ACCOUNT] = ServedAccount((DEVELOPMENT_KEY,), settings, {})
    return served


_NO_RECORD = AccountRecord(settings=DEFAULT_SETTINGS)


def _opened_keys(name: str, record: AccountRecord, opened: Opened) -> tuple[bytes, ...]:
    return tuple(opened(name, sealed) for sealed in record.sealed_keys)


def check_well_known_key(served: Mapping[str, ServedAccount], host: str) -> None:
    """Refuse to serve an account with the development key to other machines."""
    for name, account in served.items():
        if DEVELOPMENT_KEY in account.keys:
            raise Failure(well_known_key(name, host))
