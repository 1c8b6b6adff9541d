"""Moving accounts into PostgreSQL and a bucket, and verifying such a store, also while it is served."""

import os
import threading
from pathlib import Path

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobServiceClient

from tests.postgres_server import PostgresServer, require_postgres
from tests.seaweed_server import SeaweedServer
from tests.server.backup.test_backup import run, succeed
from tests.server.migration.test_migrate import STATED, content_of, fill
from tests.server.store.test_verify import verify
from tests.server_process import ServerProcess
from tests.stores.recorded import unpack
from tests.stores.test_golden_stores import STORES

require_postgres()


@pytest.fixture
def engine(postgres_server: PostgresServer) -> str:
    return postgres_server.url(postgres_server.new_database())


@pytest.mark.parametrize("archive", STORES, ids=lambda path: path.name)
def test_through_every_engine_and_extents(
    archive: Path, tmp_path: Path, engine: str, seaweed: SeaweedServer
) -> None:
    """From files to PostgreSQL and a bucket, to the embedded engine and a bucket, and back to files."""
    first, node, second, third = (tmp_path / name for name in ("first", "node", "second", "third"))
    buckets = [seaweed.url(f"{tmp_path.name}-{number}") for number in range(2)]
    first.mkdir()
    unpack(archive, first)
    moved = [
        succeed("migrate", "--from", first, "--to", node, "--to", engine, "--to", buckets[0]),
        succeed(
            "migrate",
            "--from",
            node,
            "--from",
            engine,
            "--from",
            buckets[0],
            "--to",
            second,
            "--to",
            buckets[1],
        ),
        succeed("migrate", "--from", second, "--from", buckets[1], "--to", third),
    ]
    assert len(set(moved)) == 1
    for location, *options in (
        (node, "--engine", engine, "--extents", buckets[0]),
        (second, "--extents", buckets[1]),
        (third,),
    ):
        code, out, err = verify(location, *options)
        assert (code, err) == (0, ""), out
        assert "20 extents with 9849964 bytes, all as they were written." in out


def test_between_servers(tmp_path: Path, engine: str) -> None:
    """From an embedded store to a node, both serving; then all data is verified while the node is written."""
    source, node = tmp_path / "source", tmp_path / "node"
    with (
        ServerProcess("--workers", "1", location=source) as first,
        ServerProcess("--workers", "2", "--engine", engine, "--account", STATED, location=node) as second,
    ):
        settings = ("--versioning", "on", "--blob-soft-delete-days", "7", "--container-soft-delete-days", "7")
        keys = succeed("account", "add", "moving", "--location", source, *settings, "--json")
        key = keys.split('"')[keys.split('"').index("keys") + 2]
        texts = [
            each.connection_string.replace(each.account, "moving").replace(each.account_key, key)
            for each in (first, second)
        ]
        fill(texts[0])
        before = content_of(texts[0])
        succeed("migrate", "--from", source, "--to", node, "--to", engine, "--account", "moving")
        assert content_of(texts[1]) == before
        with (
            BlobServiceClient.from_connection_string(texts[0], retry_total=0) as old,
            pytest.raises(HttpResponseError, match="InsufficientAccountPermissions"),
        ):
            old.get_blob_client("container", "new").upload_blob(b"new")
        ended = threading.Event()
        with BlobServiceClient.from_connection_string(texts[1]) as blobs:
            container = blobs.get_container_client("container")

            def write() -> None:
                number = 0
                while not ended.is_set():
                    container.upload_blob("overwritten", os.urandom(40_000), overwrite=True)
                    container.upload_blob(f"{number}", os.urandom(100))
                    number += 1

            writer = threading.Thread(target=write)
            writer.start()
            try:
                code, out, err = verify(node, "--engine", engine)
            finally:
                ended.set()
                writer.join()
        assert (code, err) == (0, ""), out
        third = tmp_path / "third"
        succeed("migrate", "--from", node, "--from", engine, "--to", third, "--account", "moving")
        with (
            BlobServiceClient.from_connection_string(texts[1], retry_total=0) as blobs,
            pytest.raises(HttpResponseError, match="InsufficientAccountPermissions"),
        ):
            blobs.get_blob_client("container", "overwritten").delete_blob()
        assert verify(third)[0] == 0
        assert second.stop() == 0
        assert first.stop() == 0


def test_a_database_that_does_not_answer(tmp_path: Path) -> None:
    source, node, engine = tmp_path / "source", tmp_path / "node", "postgresql://127.0.0.1:1/none"
    with ServerProcess("--workers", "1", location=source) as server:
        assert server.stop() == 0
    sentence = (
        f"kyanite: The store {node} cannot be opened. The database none at 127.0.0.1:1 cannot be reached: "
    )
    code, out, err = run("migrate", "--from", source, "--to", node, "--to", engine)
    assert (code, out) == (1, "")
    assert err.startswith(sentence)
