"""A server whose rows are in PostgreSQL: what it says when that cannot be, and that nothing is lost with it."""

from pathlib import Path

import pytest
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
