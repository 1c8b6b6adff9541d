"""A server whose bulk bytes are in an object store: restarts, a store that goes away, what is refused at the start."""

import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobServiceClient

from tests.extents.suite import MIB, noise
from tests.seaweed_server import SeaweedServer
from tests.server_process import ServerFailed, ServerProcess
from tests.tcp_proxy import TcpProxy


def blobs_of(server: ServerProcess) -> BlobServiceClient:
    """A client that does not retry."""
    return BlobServiceClient(
        server.endpoints["blob"], credential=server.account_key, retry_total=0, max_single_put_size=64 * MIB
    )


def test_a_store_that_is_away_is_busy_and_nothing_is_lost(seaweed: SeaweedServer, tmp_path: Path) -> None:
    with TcpProxy(urlsplit(seaweed.endpoint).port or 0) as proxy:
        url = seaweed._replace(endpoint=f"http://127.0.0.1:{proxy.port}").url(f"away/{tmp_path.name}")
        with ServerProcess("--extents", url, "--workers", "1", location=tmp_path / "store") as server:
            box = blobs_of(server).create_container("box")
            box.upload_blob("large", noise(12 * MIB))
            box.upload_blob("medium", noise(100_000))
            proxy.cut()
            for call in (
                lambda: box.upload_blob("new", noise(100_000)),
                lambda: box.upload_blob("new", noise(12 * MIB)),
                lambda: box.download_blob("large").readall(),
                lambda: box.download_blob("medium").readall(),
            ):
                with pytest.raises(HttpResponseError) as busy:
                    call()
                assert busy.value.status_code == 503
                assert "ServerBusy" in str(busy.value)
            box.upload_blob("small", b"rows need no object store")
            proxy.restore()
            assert not box.get_blob_client("new").exists()
            assert box.download_blob("large").readall() == noise(12 * MIB)
            server.kill9()
            server.start()
            box = blobs_of(server).get_container_client("box")
            assert box.download_blob("large").readall() == noise(12 * MIB)
            assert box.download_blob("medium").readall() == noise(100_000)
            assert box.download_blob("small").readall() == b"rows need no object store"


def test_a_bucket_that_cannot_be_used_is_said_in_one_sentence(seaweed: SeaweedServer, tmp_path: Path) -> None:
    for url, sentence in (
        (seaweed.url("x", bucket="not-there"), "does not exist"),
        (seaweed.url("x", user="reader", secret="reads"), "may not be written"),
        (seaweed.url("x", secret="wrong"), "does not accept the credentials"),
        ("s3://", "The URL of a bucket is"),
    ):
        with pytest.raises(ServerFailed) as failed:
            ServerProcess("--extents", url, location=tmp_path / "store").start()
        assert sentence in failed.value.errors
        assert len(failed.value.errors.strip().splitlines()) == 1
        assert "writes" not in failed.value.errors


def test_a_missing_client_is_said_in_one_sentence(seaweed: SeaweedServer, tmp_path: Path) -> None:
    without = "import sys; sys.modules['obstore'] = None; from kyanite.server.cli import main; main()"
    server = ServerProcess(
        "--extents",
        seaweed.url("x"),
        location=tmp_path / "store",
        program=(sys.executable, "-c", without, "serve"),
    )
    with pytest.raises(ServerFailed, match=r"need the extra s3: pip install 'kyanite\[s3\]'"):
        server.start()


def test_a_bucket_with_segments_of_a_lost_database_is_not_opened(
    seaweed: SeaweedServer, tmp_path: Path
) -> None:
    url = seaweed.url(f"lost/{tmp_path.name}")
    with ServerProcess("--extents", url, "--workers", "1", location=tmp_path / "first") as server:
        blobs_of(server).create_container("box").upload_blob("medium", noise(100_000))
    with pytest.raises(ServerFailed, match="database is missing or empty, but extents are there"):
        ServerProcess("--extents", url, location=tmp_path / "second").start()


def test_a_backup_of_the_folder_alone_is_refused(seaweed: SeaweedServer, tmp_path: Path) -> None:
    url = seaweed.url(f"kept/{tmp_path.name}")
    location = tmp_path / "store"
    with ServerProcess("--extents", url, "--workers", "1", location=location) as server:
        blobs_of(server).create_container("box").upload_blob("medium", noise(100_000))
    cli = [sys.executable, "-m", "kyanite.server.cli"]
    backup = [*cli, "backup", str(tmp_path / "backup"), "--location", str(location)]
    refused = subprocess.run(backup, capture_output=True, text=True, check=False, timeout=60)
    assert refused.returncode == 1
    assert "is not in its folder" in refused.stderr
    verify = [*cli, "verify", "--location", str(location), "--extents", url]
    sound = subprocess.run(verify, capture_output=True, text=True, check=False, timeout=60)
    assert "1 extents with 100000 bytes, all as they were written" in sound.stdout
