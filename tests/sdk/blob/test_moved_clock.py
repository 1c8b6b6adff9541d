"""What passes with time, with the official client and a clock that the test moves: retention, and the last access.

Settings that no request can change are those of a configuration file.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from azure.core.exceptions import ResourceNotFoundError

from tests.sdk.clients import Sdk, done, items, refused
from tests.sdk.raw_http import fetch
from tests.server_process import DEVELOPMENT_KEY, ServerProcess

DAY = 86_400
CONFIGURATION = f"""
[accounts.{ServerProcess.account}]
keys = ["{DEVELOPMENT_KEY}"]
container_soft_delete_days = 2
last_access_tracking = true
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    file = Path(tmp_path_factory.mktemp("configuration")) / "kyanite.toml"
    file.write_text(CONFIGURATION)
    options = ("--workers", "2", "--testing", "--admin-port", "0", "--config", str(file))
    with ServerProcess(*options, location=tmp_path_factory.mktemp("store")) as started:
        yield started


def wait(sdk: Sdk, seconds: float) -> None:
    url = f"{sdk.server.endpoints['admin'].rstrip('/')}/testing/clock"
    answer = fetch(url, "POST", {}, json.dumps({"advance_seconds": seconds}).encode())
    assert answer.status == 200, answer.body


async def test_a_deleted_container_is_kept_for_its_days(sdk: Sdk) -> None:
    service, container = sdk.service(), await sdk.new_container()
    name = container.container_name
    await done(container.upload_blob("blob", b"12345"))
    await done(container.delete_container())
    wait(sdk, 1.5 * DAY)
    (item,) = await items(service.list_containers(name, include_deleted=True))
    assert item.deleted
    await done(service.undelete_container(name, item.version))
    await done(container.delete_container())
    (item,) = await items(service.list_containers(name, include_deleted=True))
    wait(sdk, 2 * DAY)
    assert await items(service.list_containers(name, include_deleted=True)) == []
    with refused(404, "ContainerNotFound", ResourceNotFoundError):
        await done(service.undelete_container(name, item.version))


async def test_the_last_access_moves_once_a_day(sdk: Sdk) -> None:
    container = await sdk.new_container()
    blob = container.get_blob_client("blob")
    await done(blob.upload_blob(b"12345"))
    created = await done(blob.get_blob_properties())
    assert created.last_accessed_on == created.creation_time
    wait(sdk, DAY / 2)
    assert await done((await done(blob.download_blob())).readall()) == b"12345"
    assert (await done(blob.get_blob_properties())).last_accessed_on == created.last_accessed_on
    wait(sdk, DAY)
    download = await done(blob.download_blob())
    assert download.properties.last_accessed_on == created.last_accessed_on
    after = await done(blob.get_blob_properties())
    assert (after.last_accessed_on - created.last_accessed_on).total_seconds() >= DAY
    assert (after.etag, after.last_modified) == (created.etag, created.last_modified)
    (listed,) = await items(container.list_blobs())
    assert listed.last_accessed_on == after.last_accessed_on
