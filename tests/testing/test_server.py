"""``kyanite.testing.Server``: accounts, clients and the clock, without pytest's fixtures and with them."""

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobServiceClient

from kyanite.testing import Account, Clock, KitError, MissingClient, Server, ServerFailed
from tests.server_process import eventually, is_alive

SERVICES = ("blob", "queue", "table", "file")


def test_ready_clients_of_every_service(kyanite_account: Account) -> None:
    with kyanite_account.blob_service() as blobs:
        blobs.create_container("box").upload_blob("blob", b"bytes")
        assert blobs.get_blob_client("box", "blob").download_blob().readall() == b"bytes"
    with kyanite_account.queue_service() as queues:
        queues.create_queue("queue").send_message("text")
        assert [each.content for each in queues.get_queue_client("queue").peek_messages()] == ["text"]
    with kyanite_account.table_service() as tables:
        tables.create_table("table").create_entity({"PartitionKey": "p", "RowKey": "r", "Value": 1})
        assert tables.get_table_client("table").get_entity("p", "r")["Value"] == 1
    with kyanite_account.share_service() as shares:
        shares.create_share("share").get_file_client("file").upload_file(b"bytes")
        assert shares.get_share_client("share").get_file_client("file").download_file().readall() == b"bytes"


async def test_asynchronous_clients(kyanite_account: Account) -> None:
    async with kyanite_account.client("blob", aio=True) as blobs:
        container = await blobs.create_container("box")
        await container.upload_blob("blob", b"bytes")
    async with kyanite_account.client("table", aio=True) as tables:
        await tables.create_table("table")


def test_accounts_are_fresh_and_apart(kyanite_server: Server) -> None:
    first, second = kyanite_server.fresh_account(), kyanite_server.fresh_account("named")
    assert second.name == "named"
    with first.blob_service() as blobs:
        blobs.create_container("box")
    with second.blob_service() as blobs:
        assert list(blobs.list_containers()) == []
    with pytest.raises(KitError, match="There is an account named already"):
        kyanite_server.fresh_account("named")
    kyanite_server.remove_account(second)
    with second.blob_service(retry_total=0) as blobs, pytest.raises(HttpResponseError):
        list(blobs.list_containers())
    with pytest.raises(KitError, match="named"):
        kyanite_server.remove_account(second)


def test_the_development_account_stays(kyanite_server: Server) -> None:
    kyanite_server.fresh_account()
    key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
    assert kyanite_server.endpoints["blob"].endswith("/devstoreaccount1")
    with BlobServiceClient(kyanite_server.endpoints["blob"], credential=key) as blobs:
        list(blobs.list_containers())


def test_an_account_says_where_it_is(kyanite_account: Account, kyanite_connection_string: str) -> None:
    assert kyanite_account.connection_string == kyanite_connection_string
    parts = dict(part.split("=", 1) for part in kyanite_connection_string.split(";"))
    assert parts["AccountName"] == kyanite_account.name
    assert parts["AccountKey"] == kyanite_account.key
    for service in SERVICES:
        assert parts[f"{service.title()}Endpoint"] == kyanite_account.endpoints[service]


def test_the_clock(kyanite_clock: Clock) -> None:
    before = kyanite_clock.now
    assert kyanite_clock.advance(60) >= before + timedelta(seconds=60)
    assert kyanite_clock.advance(timedelta(minutes=1)) >= before + timedelta(seconds=120)
    wanted = before + timedelta(hours=1)
    assert wanted <= kyanite_clock.advance_to(wanted) < wanted + timedelta(minutes=10)
    with pytest.raises(KitError, match="does not go back"):
        kyanite_clock.advance_to(wanted)
    with pytest.raises(ValueError, match="time zone"):
        kyanite_clock.advance_to(datetime(2030, 1, 1))
    assert kyanite_clock.now.tzinfo is UTC


def test_a_missing_package_is_one_sentence(kyanite_account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "azure.data.tables", None)
    with pytest.raises(
        MissingClient, match="needs the package azure-data-tables: pip install azure-data-tables"
    ):
        kyanite_account.table_service()
    with pytest.raises(ValueError, match="There is blob, queue, table, file"):
        kyanite_account.client("tables")


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for options, location, words in (
        (("--nonsense",), None, "No such option"),
        ((), tmp_path / "file" / "store", "exit code 1"),
    ):
        with pytest.raises(ServerFailed, match=words):
            Server(*options, location=location).start()


def test_a_server_that_was_not_started_says_so(kyanite_server: Server) -> None:
    with pytest.raises(ServerFailed, match="has not been started"):
        assert Server().clock
    with pytest.raises(ServerFailed, match="started already"):
        kyanite_server.start()


STARTED = """
import os
from kyanite.testing import Server
server = Server()
server.start()
print(server._process.pid, flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux signals the end of a pipe")
def test_a_server_ends_with_the_process_that_started_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", STARTED], capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    assert done.returncode == -9, done.stderr
    pid = int(done.stdout)
    eventually(lambda: not is_alive(pid))
