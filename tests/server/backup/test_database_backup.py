"""PostgreSQL and a bucket: an older state of the database finds its content for the stated time, and no longer."""

import json
import urllib.request
from pathlib import Path

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobServiceClient, ContainerClient

from tests.extents.suite import MIB, noise
from tests.postgres_server import PostgresServer
from tests.seaweed_server import SeaweedServer
from tests.server.store.test_verify import verify
from tests.server_process import ServerProcess, eventually

KEEP_SECONDS = 900


def serving(location: Path, engine: str, extents: str) -> ServerProcess:
    store = ("--engine", engine, "--extents", extents)
    return ServerProcess(*store, "--workers", "1", "--testing", "--admin-port", "0", location=location)


def box_of(server: ServerProcess) -> ContainerClient:
    service = BlobServiceClient(server.endpoints["blob"], credential=server.account_key, retry_total=0)
    return service.get_container_client("box")


def advance(server: ServerProcess, seconds: int) -> None:
    body = json.dumps({"advance_seconds": seconds}).encode()
    request = urllib.request.Request(f"{server.endpoints['admin']}/testing/clock", body, method="POST")
    urllib.request.urlopen(request, timeout=10).close()


def test_an_older_database_finds_its_content(
    postgres_server: PostgresServer, seaweed: SeaweedServer, tmp_path: Path
) -> None:
    database, soon, late = (postgres_server.new_database() for _ in range(3))
    prefix = f"backup/{tmp_path.name}"
    extents = seaweed.url(prefix) + f"&keep_seconds={KEEP_SECONDS}"
    contents = {"medium": noise(100_000), "large": noise(12 * MIB), "small": b"a row"}

    def objects() -> int:
        return sum(len(page) for page in seaweed.client(f"{prefix}/segments").list())

    def unneeded() -> int:
        where = r"key >= '\x2d' AND key < '\x2e'"
        return int(postgres_server.sql(f"SELECT count(*) FROM kyanite.kv WHERE {where}", database))

    with serving(tmp_path / "node", postgres_server.url(database), extents) as server:
        box = box_of(server)
        box.create_container()
        for name, data in contents.items():
            box.upload_blob(name, data)
        for copied in (soon, late):
            postgres_server.copy_database(database, copied)
        stored = objects()
        assert stored >= 2
        for name in contents:
            box.delete_blob(name)
        eventually(lambda: unneeded() == stored, 60)
        advance(server, KEEP_SECONDS - 60)
        assert (objects(), unneeded()) == (stored, stored)

        with serving(tmp_path / "restored", postgres_server.url(soon), extents) as restored:
            for name, data in contents.items():
                assert box_of(restored).download_blob(name).readall() == data
        code, out, err = verify(
            tmp_path / "restored", "--engine", postgres_server.url(soon), "--extents", extents
        )
        assert (code, err) == (0, ""), out
        assert "all as they were written" in out

        advance(server, 120)
        eventually(lambda: objects() == 0, 60)
    with serving(tmp_path / "too late", postgres_server.url(late), extents) as restored:
        assert box_of(restored).download_blob("small").readall() == contents["small"]
        with pytest.raises(HttpResponseError):
            box_of(restored).download_blob("large").readall()
