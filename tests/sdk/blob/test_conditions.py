"""Optimistic concurrency as the client spells it: ETags with a match condition, and times."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceModifiedError, ResourceNotFoundError

from tests.sdk.clients import Sdk, content, done, refused

HOUR = timedelta(hours=1)
STALE = '"0x8DE24A1B2C3D4E5"'

Action = Callable[..., Awaitable[Any]]


async def _read(blob: Any, **condition: Any) -> Any:
    return await content(blob, **condition)


async def _describe(blob: Any, **condition: Any) -> Any:
    return await done(blob.get_blob_properties(**condition))


async def _overwrite(blob: Any, **condition: Any) -> Any:
    return await done(blob.upload_blob(b"new", overwrite=True, **condition))


async def _annotate(blob: Any, **condition: Any) -> Any:
    return await done(blob.set_blob_metadata({"a": "b"}, **condition))


async def _label(blob: Any, **condition: Any) -> Any:
    return await done(blob.set_http_headers(**condition))


async def _delete(blob: Any, **condition: Any) -> Any:
    return await done(blob.delete_blob(**condition))


READS = [_read, _describe]
WRITES = [_overwrite, _annotate, _label, _delete]


async def _blob(sdk: Sdk) -> tuple[Any, Any]:
    container = await sdk.new_container()
    blob = await done(container.upload_blob("blob", b"data"))
    return blob, await done(blob.get_blob_properties())


def _holding(properties: Any) -> list[dict[str, Any]]:
    """Conditions that hold for a blob with these properties."""
    return [
        {"etag": properties.etag, "match_condition": MatchConditions.IfNotModified},
        {"etag": STALE, "match_condition": MatchConditions.IfModified},
        {"match_condition": MatchConditions.IfPresent},
        {"if_modified_since": properties.last_modified - HOUR},
        {"if_unmodified_since": properties.last_modified},
        {"if_unmodified_since": properties.last_modified + HOUR},
    ]


def _failing(properties: Any) -> list[tuple[dict[str, Any], int]]:
    """Conditions that do not hold, and the status with which a read tells so."""
    return [
        ({"etag": STALE, "match_condition": MatchConditions.IfNotModified}, 412),
        ({"etag": properties.etag, "match_condition": MatchConditions.IfModified}, 304),
        ({"if_modified_since": properties.last_modified}, 304),
        ({"if_modified_since": properties.last_modified + HOUR}, 304),
        ({"if_unmodified_since": properties.last_modified - HOUR}, 412),
    ]


@pytest.mark.parametrize("read", READS)
async def test_reads_under_a_condition(sdk: Sdk, read: Action) -> None:
    blob, properties = await _blob(sdk)
    for condition in _holding(properties):
        await read(blob, **condition)
    for condition, status in _failing(properties):
        with pytest.raises(HttpResponseError) as caught:
            await read(blob, **condition)
        assert (caught.value.status_code, caught.value.error_code) == (status, "ConditionNotMet")  # type: ignore[attr-defined]


@pytest.mark.parametrize("write", WRITES)
async def test_writes_under_a_condition(sdk: Sdk, write: Action) -> None:
    blob, properties = await _blob(sdk)
    for condition, _ in _failing(properties):
        with refused(412, "ConditionNotMet", ResourceModifiedError):
            await write(blob, **condition)
    assert (await done(blob.get_blob_properties())).etag == properties.etag
    assert await content(blob) == b"data"
    for number in range(len(_holding(properties))):
        await done(blob.upload_blob(b"data", overwrite=True))
        condition = _holding(await done(blob.get_blob_properties()))[number]
        await write(blob, **condition)


async def test_nothing_there_is_a_condition_too(sdk: Sdk) -> None:
    container = await sdk.new_container()
    blob = container.get_blob_client("blob")
    with refused(412, "ConditionNotMet", ResourceModifiedError):
        await done(
            blob.upload_blob(b"", overwrite=True, etag=STALE, match_condition=MatchConditions.IfNotModified)
        )
    with refused(412, "ConditionNotMet", ResourceModifiedError):
        await done(blob.upload_blob(b"", overwrite=True, match_condition=MatchConditions.IfPresent))
    assert await done(blob.exists()) is False
    await done(blob.upload_blob(b"first", overwrite=True, match_condition=MatchConditions.IfMissing))
    assert await content(blob) == b"first"
    with pytest.raises(HttpResponseError) as caught:
        await done(blob.upload_blob(b"second", overwrite=True, match_condition=MatchConditions.IfMissing))
    assert caught.value.status_code == 409
    assert await content(blob) == b"first"


@pytest.mark.parametrize("write", WRITES[1:])
async def test_a_condition_on_nothing_is_about_nothing(sdk: Sdk, write: Action) -> None:
    blob = (await sdk.new_container()).get_blob_client("nothing")
    with refused(404, "BlobNotFound", ResourceNotFoundError):
        await write(blob, etag=STALE, match_condition=MatchConditions.IfNotModified)


async def test_large_uploads_are_judged_as_small_ones(sdk: Sdk) -> None:
    blob, properties = await _blob(sdk)
    with refused(412, "ConditionNotMet", ResourceModifiedError):
        await done(
            blob.upload_blob(
                bytes(6_000_000),
                overwrite=True,
                etag=STALE,
                match_condition=MatchConditions.IfNotModified,
            )
        )
    assert await content(blob) == b"data"
    await done(
        blob.upload_blob(
            bytes(6_000_000),
            overwrite=True,
            etag=properties.etag,
            match_condition=MatchConditions.IfNotModified,
        )
    )
    assert (await done(blob.get_blob_properties())).size == 6_000_000


async def test_a_counter_loses_no_step(sdk: Sdk) -> None:
    """Read, add one, write if unchanged: the classic use of an ETag, by clients that take turns unwillingly."""
    container = await sdk.new_container()
    await done(container.upload_blob("counter", b"0"))
    clients = [sdk.service().get_blob_client(container.container_name, "counter") for _ in range(3)]
    for _ in range(5):
        read = [await done(client.download_blob()) for client in clients]
        values = [int(await done(stream.readall())) for stream in read]
        outcomes = []
        for client, stream, value in zip(clients, read, values, strict=True):
            try:
                await done(
                    client.upload_blob(
                        str(value + 1),
                        overwrite=True,
                        etag=stream.properties.etag,
                        match_condition=MatchConditions.IfNotModified,
                    )
                )
                outcomes.append(True)
            except ResourceModifiedError:
                outcomes.append(False)
        assert outcomes == [True, False, False]
    assert await content(clients[0]) == b"5"
