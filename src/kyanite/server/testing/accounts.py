"""Accounts for tests, made and removed by the management commands of the server."""

import base64
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from kyanite.server.config import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY
from kyanite.server.failures import Failure
from kyanite.server.management.http_api import pass_on
from kyanite.server.management.messages import RequestMessage

_NAME_BYTES = 8


class NewAccount(msgspec.Struct, frozen=True):
    name: str
    key: str
    connection_string: str
    endpoints: dict[str, str]
    """Service to URL, the account included."""


@dataclass(slots=True)
class Accounts:
    folder: Path
    """Where the management socket is."""
    bases: Mapping[str, str]
    """Service to URL, without an account."""
    keeps_development_account: bool = False

    async def add(self, name: str | None) -> NewAccount | str:
        """A new account, or why there is none."""
        try:
            await self._keep_development_account()
            added = await self._call("account add", name=name or f"test{os.urandom(_NAME_BYTES).hex()}")
        except Failure as failure:
            return failure.sentence
        return described(added["name"], added["keys"][0], self.bases)

    async def remove(self, name: str) -> str | None:
        """Remove an account with its data. Returns why it could not be."""
        try:
            await self._call("account remove", name=name, with_data=True)
        except Failure as failure:
            return failure.sentence
        return None

    async def _keep_development_account(self) -> None:
        """It is served while there is no other account. Tests that have begun with it go on with it."""
        if self.keeps_development_account:
            return
        names = [account["name"] for account in await self._call("account list")]
        if names == [DEVELOPMENT_ACCOUNT]:
            key = base64.b64encode(DEVELOPMENT_KEY).decode()
            with suppress(Failure):  # It is stored already, perhaps with other keys.
                await self._call("account add", name=DEVELOPMENT_ACCOUNT, keys=[key])
        self.keeps_development_account = True

    async def _call(self, command: str, **arguments: object) -> Any:
        message = await pass_on(self.folder, RequestMessage(command, arguments))
        if message.failure is not None:
            raise Failure(message.failure)
        return message.result


def described(name: str, key: str, bases: Mapping[str, str]) -> NewAccount:
    endpoints = {service: f"{base}/{name}" for service, base in bases.items()}
    parts = {
        "DefaultEndpointsProtocol": next(iter(bases.values()), "http").partition(":")[0],
        "AccountName": name,
        "AccountKey": key,
        **{f"{service.title()}Endpoint": url for service, url in endpoints.items()},
    }
    text = ";".join(f"{part}={value}" for part, value in parts.items())
    return NewAccount(name, key, text, endpoints)
