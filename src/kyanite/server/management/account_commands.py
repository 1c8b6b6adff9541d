"""The commands about accounts."""

import msgspec

from kyanite.model.accounts import Account, AccountSettings
from kyanite.server.management.command import Command, CommandRequest, Management


class ListAccounts(CommandRequest, frozen=True):
    pass


class AccountDescription(msgspec.Struct, frozen=True):
    """An account as it is listed: without its keys."""

    name: str
    keys: int
    """How many it has."""
    settings: dict[str, object]


async def list_accounts(management: Management, _request: ListAccounts) -> list[AccountDescription]:
    return [_described(account) for _, account in sorted(management.accounts.items())]


def _described(account: Account) -> AccountDescription:
    return AccountDescription(account.name, len(account.keys), _settings_of(account.settings))


def _settings_of(settings: AccountSettings) -> dict[str, object]:
    return msgspec.structs.asdict(settings)


COMMANDS = (Command("account list", ListAccounts, list_accounts),)
