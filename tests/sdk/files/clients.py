"""The official client of the File service in both its forms, made for one test."""

from typing import Any

from azure.storage.fileshare import ShareServiceClient
from azure.storage.fileshare import aio as async_forms

from tests.sdk.clients import SYNC, Sdk, done, fresh_name


def share_service(sdk: Sdk, credential: Any = "the key", **options: Any) -> Any:
    kind = ShareServiceClient if sdk.form == SYNC else async_forms.ShareServiceClient
    credential = sdk.key if credential == "the key" else credential
    return sdk.open(kind(sdk.server.endpoints["file"], credential, **sdk.options(**options)))


async def new_share(sdk: Sdk, **options: Any) -> Any:
    """A share of the test's own."""
    return await done(share_service(sdk).create_share(fresh_name(), **options))


async def downloaded(file: Any, **options: Any) -> bytes:
    data = await done((await done(file.download_file(**options))).readall())
    assert isinstance(data, bytes)
    return data
