"""A server whose rows are in PostgreSQL: what it says when that cannot be, and that nothing is lost with it."""

from pathlib import Path

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobServiceClient

from tests.postgres_server import PostgresServer
from tests.server_process import ServerFailed, ServerProcess

CONTENT = bytes(range(256)) * 4096


def failure_of(*options: str, location: Path, **environment: str) -> ServerFailed:
    with pytest.raises(ServerFailed) as raised:
        ServerProcess(*options, location=location, environment=environment).start()
    return raised.value


def test_a_store_outlives_its_server(postgres_server: PostgresServer, tmp_path: Path) -> None:
    url = postgres_server.new_schema_url()
    with ServerProcess("--workers", "2", "--engine", url, location=tmp_path) as server:
        for what in ("stop", "kill9"):
            with BlobServiceClient(server.endpoints["blob"], credential=server.account_key) as client:
                container = client.create_container(what)
                container.upload_blob("small", b"text")
                container.upload_blob("large", CONTENT)
            getattr(server, what)()
            server.start()
            with BlobServiceClient(server.endpoints["blob"], credential=server.account_key) as client:
                assert client.get_blob_client(what, "small").download_blob().readall() == b"text"
                assert client.get_blob_client(what, "large").download_blob().readall() == CONTENT


def test_a_database_without_the_rows_of_the_extents(postgres_server: PostgresServer, tmp_path: Path) -> None:
    """All content would be garbage."""
    with ServerProcess("--engine", postgres_server.new_schema_url(), location=tmp_path) as server:
        with BlobServiceClient(server.endpoints["blob"], credential=server.account_key) as client:
            client.create_container("box").upload_blob("large", CONTENT)
        server.stop()
        failed = failure_of("--engine", postgres_server.new_schema_url(), location=tmp_path)
        assert failed.code == 1
        assert "has no rows, but extents are there" in failed.errors


def test_a_missing_driver(postgres_server: PostgresServer, tmp_path: Path) -> None:
    stand_ins = tmp_path / "modules"
    stand_ins.mkdir()
    (stand_ins / "asyncpg.py").write_text("raise ModuleNotFoundError('no driver', name='asyncpg')")
    url = postgres_server.new_schema_url()
    failed = failure_of("--engine", url, location=tmp_path / "store", PYTHONPATH=str(stand_ins))
    assert failed.code == 1
    assert "pip install 'kyanite[postgres]'" in failed.errors
    assert "Traceback" not in failed.errors


@pytest.mark.parametrize(
    ("change", "code", "sentence"),
    [
        (("/kyanite?", "/missing?"), 1, "no such database"),
        (("schema=", "schema=A"), 2, "schema"),
        (("postgres@", "with_password:secret@"), 1, "refuses the user or the password"),
    ],
)
def test_a_database_that_cannot_be_used(
    postgres_server: PostgresServer, tmp_path: Path, change: tuple[str, str], code: int, sentence: str
) -> None:
    failed = failure_of("--engine", postgres_server.new_schema_url().replace(*change), location=tmp_path)
    assert failed.code == code
    assert sentence in failed.errors
    assert "secret" not in failed.errors
    assert "Traceback" not in failed.errors


def test_a_schema_of_a_newer_version(postgres_server: PostgresServer, tmp_path: Path) -> None:
    url = postgres_server.new_schema_url()
    with ServerProcess("--engine", url, "--workers", "1", location=tmp_path):
        pass
    schema = url.partition("schema=")[2]
    postgres_server.sql(f"UPDATE {schema}.schema_version SET version = 99")
    failed = failure_of("--engine", url, location=tmp_path)
    assert failed.code == 1
    assert "version 99" in failed.errors
    assert len(failed.errors.strip().splitlines()) == 1


def test_a_full_database_refuses_writes_and_goes_on(postgres_server: PostgresServer, tmp_path: Path) -> None:
    url = postgres_server.new_schema_url()
    schema = url.partition("schema=")[2]
    with (
        ServerProcess("--engine", url, "--workers", "2", location=tmp_path) as server,
        BlobServiceClient(server.endpoints["blob"], credential=server.account_key, retry_total=0) as client,
    ):
        box = client.create_container("box")
        box.upload_blob("kept", CONTENT)
        postgres_server.sql(
            f"CREATE FUNCTION {schema}.full() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'No space left on device' USING ERRCODE = 'disk_full'; END $$;"
            f"CREATE TRIGGER full_disk BEFORE INSERT ON {schema}.kv FOR EACH ROW EXECUTE FUNCTION {schema}.full()"
        )
        for name, data in (("small", b"text"), ("large", CONTENT), ("kept", b"other")):
            with pytest.raises(HttpResponseError) as full:
                box.upload_blob(name, data, overwrite=True)
            assert full.value.status_code == 507
            assert "InsufficientStorage" in str(full.value)
        assert box.download_blob("kept").readall() == CONTENT
        postgres_server.sql(f"DROP TRIGGER full_disk ON {schema}.kv")
        box.upload_blob("small", b"text")
        assert {blob.name for blob in box.list_blobs()} == {"kept", "small"}
