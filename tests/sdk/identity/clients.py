"""The official clients with a token of our own making, as users of the emulator make one."""

import time
from typing import Any

from azure.core.credentials import AccessToken
from azure.storage.fileshare import ShareServiceClient
from azure.storage.fileshare import aio as async_files

from tests.sdk.clients import SYNC, Sdk
from tests.signed_tokens import claims_at, signed


class StaticCredential:
    """Always the same token, whatever is asked for."""

    def __init__(self, token: str) -> None:
        self.token = token
        self.scopes: list[str] = []

    def get_token(self, *scopes: str, **_: Any) -> AccessToken:
        self.scopes += scopes
        return AccessToken(self.token, int(time.time()) + 3600)


class AsyncStaticCredential(StaticCredential):
    async def get_token(self, *scopes: str, **more: Any) -> AccessToken:  # type: ignore[override]
        return super().get_token(*scopes, **more)

    async def close(self) -> None:
        """There is nothing to close."""

    async def __aenter__(self) -> "AsyncStaticCredential":
        return self

    async def __aexit__(self, *_: object) -> None:
        pass


def token_of(**claims: object) -> str:
    return signed(claims_at(time.time(), **claims))


def credential_of(sdk: Sdk, token: str | None = None, **claims: object) -> Any:
    kind = StaticCredential if sdk.form == SYNC else AsyncStaticCredential
    return kind(token or token_of(**claims))


def share_service(sdk: Sdk, credential: Any) -> Any:
    kind = ShareServiceClient if sdk.form == SYNC else async_files.ShareServiceClient
    url = sdk.server.endpoints["file"]
    return sdk.open(kind(url, credential, token_intent="backup", **sdk.options()))
