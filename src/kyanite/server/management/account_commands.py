"""The commands about accounts. Each returns when every worker obeys it.

What was stated when the server was started is fixed: a command that would change it is refused.
"""

import asyncio
import base64
import os
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType

from kyanite.engine.api import Transaction
from kyanite.model import account_rows, keys, members, settings
from kyanite.model.account_rows import AccountRecord
from kyanite.model.accounts import Account, AccountSettings
from kyanite.model.blobs import protected_containers
from kyanite.server.accounts.directory import AccountDirectory, all_obey
from kyanite.server.accounts.settings import (
    NO_CHANGE,
    SettingsChange,
    apply,
    apply_to_service,
    named,
    problem_of,
    problem_of_both,
)
from kyanite.server.accounts.start import SERVICE, problem_without_versioning
from kyanite.server.config import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY, KEYS, is_account_name, parse_key
from kyanite.server.management.command import Command, CommandRefused, CommandRequest, Management
from kyanite.server.stamps.served import ServedStamp
from kyanite.server.stamps.stamp import MAIN, all_stamps
from kyanite.values import Instant

KEY_BYTES = 64
"""Of a new key, as in Azure."""
KEYS_MAX = 2
PURGE_SECONDS = 60.0
"""How long a removal waits for the end of the names; the rest goes on in the background."""
_PURGE_POLL_SECONDS = 0.05


class ListAccounts(CommandRequest, frozen=True):
    pass


class AddAccount(CommandRequest, frozen=True):
    name: str
    keys: tuple[str, ...] = ()
    """In base64. Without any, two new ones are made."""
    settings: SettingsChange = NO_CHANGE
    stamp: str = MAIN
    """Where it is to live."""


class SetAccount(CommandRequest, frozen=True):
    name: str
    settings: SettingsChange


class RotateKey(CommandRequest, frozen=True):
    name: str
    number: Annotated[int, msgspec.Meta(ge=1, le=KEYS_MAX)]
    key: str | UnsetType = UNSET
    """In base64; a new one if it is left out."""


class RemoveAccount(CommandRequest, frozen=True):
    name: str
    with_data: bool = False


class AccountDescription(msgspec.Struct, frozen=True):
    """An account as it is listed: without its keys."""

    name: str
    keys: int
    """How many it has."""
    settings: dict[str, Any]
    stamp: str
    """Where it lives."""
    stated_by: dict[str, str]
    """Where the keys and settings were stated that cannot be changed."""


class AccountKeyTexts(msgspec.Struct, frozen=True):
    name: str
    keys: list[str]
    """In base64, to be given to clients."""
    note: str = ""


# Commands


async def list_accounts(management: Management, _request: ListAccounts) -> list[AccountDescription]:
    return [await _description(management, account) for _, account in sorted(management.accounts.items())]


async def _description(management: Management, account: Account) -> AccountDescription:
    load = partial(settings.load, account=account.name, service=SERVICE)
    properties = await account.store.engine.read(load)
    return AccountDescription(
        account.name,
        len(account.keys),
        named(account.settings, properties),
        management.stamps.stamp_of(account).name,
        dict(account.fixed),
    )


async def add_account(management: Management, request: AddAccount) -> AccountKeyTexts:
    name = request.name
    if not is_account_name(name):
        raise CommandRefused("The name of an account is 3 to 24 lower-case letters and digits.")
    if len(request.keys) > KEYS_MAX:
        raise CommandRefused(f"An account has {KEYS_MAX} keys at most.")
    keys = [_decoded(management, text) for text in request.keys] or [_new_key(), _new_key()]
    _check_values(request.settings)
    stamp = management.stamps.named(request.stamp)
    if stamp is None:
        raise CommandRefused(f"There is no stamp {request.stamp!r}.")
    await _check_key_file(management, stamp.directory)
    sealed = _sealed(management, stamp.directory, name, keys)
    await _check_unique(management, stamp, name)

    def body(tx: Transaction) -> None:
        present = account_rows.load(tx, name)
        if present is not None and present.is_removed:
            raise CommandRefused(f"The data of the account {name} that was removed is still being deleted.")
        if name in stamp.directory.stated or (present is not None and present.sealed_keys):
            raise CommandRefused(f"There is an account {name} already.")
        _save(tx, stamp.directory, name, request.settings, sealed)

    was_served = DEVELOPMENT_ACCOUNT in management.accounts
    await _change(management, stamp, body)
    note = ""
    if was_served and DEVELOPMENT_ACCOUNT not in management.accounts:
        note = (
            f"{DEVELOPMENT_ACCOUNT} is not served any more, because there is another account now. "
            f"Its data is still there for 'kyanite account add {DEVELOPMENT_ACCOUNT}'."
        )
    return AccountKeyTexts(name, [_text(key) for key in keys], note)


async def set_account(management: Management, request: SetAccount) -> AccountDescription:
    name = request.name
    account = management.account(name)
    stamp = management.stamps.stamp_of(account)
    given = request.settings.given()
    if not given:
        raise CommandRefused("The command names no setting to change.")
    _check_values(request.settings)

    def body(tx: Transaction) -> None:
        record = _present(tx, name)
        in_force = _in_force(stamp.directory, name, record.settings)
        before = named(in_force, settings.load(tx, name, SERVICE))
        for setting, value in given.items():
            if value != before[setting]:
                check_not_fixed(account, setting)
        _save(tx, stamp.directory, name, request.settings, record.sealed_keys)

    await _change(management, stamp, body)
    return await _description(management, management.account(name))


async def rotate_key(management: Management, request: RotateKey) -> AccountKeyTexts:
    name = request.name
    account = management.account(name)
    check_not_fixed(account, KEYS)
    key = _new_key() if request.key is UNSET else _decoded(management, request.key)
    if request.number > len(account.keys) + 1:
        raise CommandRefused(f"Account {name} has no key 1 yet.")
    # Those that stay are sealed again: the development account has a key that is not stored.
    keys = list(account.keys)
    keys[request.number - 1 : request.number] = [key]
    stamp = management.stamps.stamp_of(account)
    sealed = _sealed(management, stamp.directory, name, keys)
    expected = stamp.directory.stored.get(name, AccountRecord()).sealed_keys

    def body(tx: Transaction) -> None:
        if _present(tx, name).sealed_keys != expected:
            raise CommandRefused(f"Another command has just changed a key of account {name}. Try again.")
        _save(tx, stamp.directory, name, NO_CHANGE, sealed)

    await _change(management, stamp, body)
    return AccountKeyTexts(name, [_text(each) for each in keys])


async def remove_account(management: Management, request: RemoveAccount) -> str:
    name = request.name
    account = management.account(name)
    for where in account.fixed.values():
        raise CommandRefused(
            f"Account {name} is stated by {where}, so the next start would make it again: remove it there."
        )

    stamp = management.stamps.stamp_of(account)
    engine = stamp.store.engine

    def body(tx: Transaction) -> None:
        _present(tx, name)
        if tx.get(keys.migration(name)) is not None:
            raise CommandRefused(
                f"Account {name} is being moved into this store: let kyanite migrate finish, or use its --give-up."
            )
        # It is checked again when no request can protect another one any more.
        if (protected := protected_containers.first(tx, name)) is not None:
            raise CommandRefused(
                f"Account {name} cannot be removed: its container {protected} has an immutability policy, legal "
                "holds or version-level immutability."
            )
        if not request.with_data and account_rows.has_data(tx, name):
            raise CommandRefused(f"Account {name} has data, which is removed with --with-data only.")
        account_rows.close(tx, name)

    await _change(management, stamp, body)
    deadline = asyncio.get_running_loop().time() + PURGE_SECONDS
    while (record := await engine.read(partial(account_rows.load, name=name))) is not None:
        if not record.is_removed:
            raise CommandRefused(f"Account {name} has got protected containers meanwhile, so it stays.")
        if asyncio.get_running_loop().time() > deadline:
            return f"Account {name} is removed. Its data is being deleted in the background."
        await asyncio.sleep(_PURGE_POLL_SECONDS)
    return f"Account {name} is removed."


# What they share


def check_not_fixed(account: Account, setting: str) -> None:
    where = account.fixed.get(setting)
    if where is not None:
        what = "The keys" if setting == KEYS else f"The setting {setting}"
        verb = "are" if setting == KEYS else "is"
        raise CommandRefused(
            f"{what} of account {account.name} {verb} stated by {where} and cannot be changed here."
        )


async def _check_unique(management: Management, stamp: ServedStamp, name: str) -> None:
    """The names of accounts are unique over all stamps. One that is away may still have it, and is asked."""
    wanted = all_stamps(management.stamps.location, management.stamps.stated)
    if len(wanted) + 1 > len(management.stamps.stamps):
        raise CommandRefused("A stamp is away, and may have an account of that name. Try again later.")
    for other in management.stamps.stamps:
        if other is stamp:
            continue
        present = await other.store.engine.read(partial(account_rows.load, name=name))
        if name in other.directory.stated or present is not None:
            raise CommandRefused(f"There is an account {name} already, on the stamp {other.name}.")


async def _change(management: Management, stamp: ServedStamp, body: Callable[[Transaction], None]) -> None:
    """Run a transaction that changes an account, and wait until every worker obeys it."""

    def change(tx: Transaction) -> Instant:
        body(tx)
        account_rows.note_change(tx)
        return tx.now

    changed_at = await stamp.store.engine.run(change)
    if stamp is management.stamps.main:
        await all_obey(management.workers, changed_at, management.late_elsewhere)
    else:
        await management.obeyed(stamp.store.engine)


def _present(tx: Transaction, name: str) -> AccountRecord:
    """What is stored of an account that is served, which may be nothing."""
    record = account_rows.load(tx, name) or AccountRecord()
    if record.is_removed:
        raise CommandRefused(f"There is no account {name!r}.")
    return record


def _save(
    tx: Transaction,
    directory: AccountDirectory,
    name: str,
    change: SettingsChange,
    sealed_keys: tuple[bytes, ...],
) -> None:
    """Store the keys, and both parts of the settings: those of the account and those of the Blob service."""
    record = _present(tx, name)
    stored = apply(change, record.settings)
    present = settings.load(tx, name, SERVICE)
    properties = apply_to_service(change, present)
    problem = problem_of_both(_in_force(directory, name, stored), properties)
    if problem is not None:
        raise CommandRefused(f"Account {name} cannot have these settings: {problem}.")
    if (problem := problem_without_versioning(tx, name, properties)) is not None:
        raise CommandRefused(problem)
    if properties != present:
        settings.save(tx, name, SERVICE, properties)
    account_rows.save(tx, name, msgspec.structs.replace(record, sealed_keys=sealed_keys, settings=stored))


def _in_force(directory: AccountDirectory, name: str, stored: AccountSettings) -> AccountSettings:
    """The stored settings of an account with those that are stated."""
    stated = directory.stated.get(name)
    return stored if stated is None else apply(stated.settings, stored)


def _check_values(change: SettingsChange) -> None:
    if (problem := problem_of(change)) is not None:
        raise CommandRefused(f"The setting {problem[0]} cannot be used: {problem[1]}.")


async def _check_key_file(management: Management, directory: AccountDirectory) -> None:
    """The first key decides which key file all nodes must have. One that this node makes no other would have."""
    if _present_keys(management) or not directory.key_file.is_of_one_node:
        return
    if len(await management.stamps.main.store.engine.read(members.living_nodes)) > 1:
        raise CommandRefused(
            "Several nodes serve this store, and the key file of this one is in its own folder: "
            "start all of them with the same --key-file first."
        )


def _present_keys(management: Management) -> list[tuple[str, bytes]]:
    return [
        (account, sealed)
        for stamp in management.stamps.stamps
        for account, record in stamp.directory.stored.items()
        for sealed in record.sealed_keys
    ]


def _sealed(
    management: Management, directory: AccountDirectory, name: str, keys: list[bytes]
) -> tuple[bytes, ...]:
    sealer = directory.key_file.sealer_for_new_key(_present_keys(management))
    return tuple(sealer.seal(name, key) for key in keys)


def _decoded(management: Management, text: str) -> bytes:
    key = parse_key(text)
    if key is None:
        raise CommandRefused("A key is not base64.")
    if key == DEVELOPMENT_KEY and not management.stamps.main.directory.allows_development_key:
        raise CommandRefused(
            "The well-known development key would open the account to everyone who can reach this server: "
            "it takes a server on loopback, or --allow-development-key."
        )
    return key


def _new_key() -> bytes:
    return os.urandom(KEY_BYTES)


def _text(key: bytes) -> str:
    return base64.b64encode(key).decode("ascii")


COMMANDS = (
    Command("account list", ListAccounts, list_accounts),
    Command("account add", AddAccount, add_account),
    Command("account set", SetAccount, set_account),
    Command("account rotate-key", RotateKey, rotate_key),
    Command("account remove", RemoveAccount, remove_account),
)
