"""The commands that say where the server is reached, whom it serves, and with which keys."""

import base64

from kyanite.server.config import DEVELOPMENT_KEY
from kyanite.server.management.account_commands import AccountKeyTexts
from kyanite.server.management.command import Command, CommandRefused, CommandRequest, Management
from kyanite.server.site import ServedAccount, ServerDescription
from kyanite.values import unix_seconds


class DescribeServer(CommandRequest, frozen=True):
    pass


class TellTime(CommandRequest, frozen=True):
    pass


class ShowKeys(CommandRequest, frozen=True):
    name: str


async def describe(management: Management, _request: DescribeServer) -> ServerDescription:
    site = management.site
    if site is None:
        raise CommandRefused("This server does not know where it is reached.")
    return ServerDescription(
        services=dict(site.services),
        others=dict(site.others),
        accounts=[
            ServedAccount(name, DEVELOPMENT_KEY in account.keys)
            for name, account in management.accounts.items()
        ],
        location=str(site.folder.absolute()),
        is_in_memory=site.is_in_memory,
        certificate="" if site.certificate is None else str(site.certificate.absolute()),
    )


async def tell_time(management: Management, _request: TellTime) -> int:
    """The seconds since 1970, by the server's clock, which tests may have moved."""
    return unix_seconds(management.clock())


async def show_keys(management: Management, request: ShowKeys) -> AccountKeyTexts:
    account = management.account(request.name)
    return AccountKeyTexts(request.name, [base64.b64encode(key).decode("ascii") for key in account.keys])


COMMANDS = (
    Command("server describe", DescribeServer, describe, is_quiet=True),
    Command("server time", TellTime, tell_time, is_quiet=True),
    Command("account keys", ShowKeys, show_keys),
)
