"""How commands find the server that runs, and the key of an account.

Both come through the management socket in the folder of the store, which only the user of the server can use. Whoever
has a key already needs no socket for it.
"""

import base64
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from kyanite.server.failures import BadUsage
from kyanite.server.options import DecoratedCommand, option
from kyanite.server.site import ServerDescription


@dataclass(frozen=True)
class RunningServer:
    location: Path
    account_key: str | None = None
    """In base64, if the caller has one."""

    @cached_property
    def description(self) -> ServerDescription:
        return msgspec.convert(self._call("server describe"), ServerDescription)

    def check_account(self, account: str) -> None:
        names = [each.name for each in self.description.accounts]
        if account not in names:
            there = f"There are {', '.join(names[:10])}." if names else "There is none."
            raise BadUsage(f"The server has no account {account!r}. {there}")

    def key(self, account: str, number: int = 1) -> bytes:
        text = self.account_key
        if text is None:
            keys = self._call("account keys", name=account)["keys"]
            if number > len(keys):
                raise BadUsage(f"Account {account} has no key {number}.")
            text = keys[number - 1]
        try:
            key = base64.b64decode(text, validate=True)
        except ValueError:
            key = b""
        if not key:
            raise BadUsage("The account key is not base64.")
        return key

    def _call(self, command: str, **arguments: object) -> Any:
        from kyanite.server.management.client import call

        return call(self.location, command, **arguments)


def account_key_option(command: DecoratedCommand) -> DecoratedCommand:
    return option(
        "--account-key",
        metavar="KEY",
        help="A key of the account, if the running server is not to say it. Better in the environment: other users "
        "can list command lines.",
    )(command)
