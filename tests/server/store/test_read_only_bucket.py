"""A bucket that becomes read-only while a server uses it, and writable again."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobBlock, BlobServiceClient, ContainerClient
from azure.storage.fileshare import ShareClient

from tests.extents.suite import MIB, noise
from tests.read_only_gateway import ReadOnlyGateway
from tests.seaweed_server import SeaweedServer
from tests.server_process import ServerProcess
from tests.smb.messages import CREATE, Client, connected, refused
from tests.smb.torture.targets import login_of

MEDIUM = noise(100_000)
BLOCK = noise(2 * MIB)
LARGE = noise(12 * MIB)
PAGES = noise(65_536)
INSUFFICIENT_RESOURCES = 0xC000009A


@pytest.fixture
def gateway(seaweed: SeaweedServer) -> Iterator[ReadOnlyGateway]:
    with ReadOnlyGateway(urlsplit(seaweed.endpoint).port or 0) as gateway:
        yield gateway


@pytest.fixture
def url(seaweed: SeaweedServer, gateway: ReadOnlyGateway, tmp_path: Path) -> str:
    return seaweed._replace(endpoint=f"http://127.0.0.1:{gateway.port}").url(f"read-only/{tmp_path.name}")


class Clients:
    """None of them retries."""

    def __init__(self, server: ServerProcess) -> None:
        service = BlobServiceClient(
            server.endpoints["blob"],
            credential=server.account_key,
            retry_total=0,
            max_single_put_size=64 * MIB,
        )
        self.box: ContainerClient = service.get_container_client("box")
        self.share = ShareClient(
            server.endpoints["file"], "share", credential=server.account_key, retry_total=0
        )

    def write_before(self) -> None:
        self.box.create_container()
        self.box.upload_blob("medium", MEDIUM)
        self.box.upload_blob("large", LARGE)
        self.box.get_blob_client("blocks").stage_block("0001", BLOCK)
        self.box.get_blob_client("append").create_append_blob()
        self.box.get_blob_client("append").append_block(MEDIUM)
        self.box.get_blob_client("page").create_page_blob(2 * len(PAGES))
        self.box.get_blob_client("page").upload_page(PAGES, 0, len(PAGES))
        self.share.create_share()
        self.share.get_file_client("file").upload_file(MEDIUM)

    @property
    def writes(self) -> dict[str, Callable[[], object]]:
        """What needs the bucket. Each can be repeated until it succeeds."""
        box = self.box
        return {
            "Put Blob": lambda: box.upload_blob("new", MEDIUM),
            "Put Blob, large": lambda: box.upload_blob("new large", LARGE),
            "Put Blob over another": lambda: box.upload_blob("medium", MEDIUM[::-1], overwrite=True),
            "Put Block": lambda: box.get_blob_client("blocks").stage_block("0002", BLOCK),
            "Append Block": lambda: box.get_blob_client("append").append_block(MEDIUM),
            "Put Page": lambda: box.get_blob_client("page").upload_page(PAGES, len(PAGES), len(PAGES)),
            "Put Range": lambda: self.share.get_file_client("file").upload_range(MEDIUM[::-1], 0, 100_000),
        }

    def check_before(self) -> None:
        assert self.box.download_blob("medium").readall() == MEDIUM
        assert self.box.download_blob("large").readall() == LARGE
        assert self.box.download_blob("append").readall() == MEDIUM
        assert self.box.download_blob("page").readall() == PAGES + bytes(len(PAGES))
        assert self.share.get_file_client("file").download_file().readall() == MEDIUM
        assert not self.box.get_blob_client("new").exists()
        assert not self.box.get_blob_client("new large").exists()
        _, uncommitted = self.box.get_blob_client("blocks").get_block_list("all")
        assert [each.id for each in uncommitted] == ["0001"]

    def check_after(self) -> None:
        assert self.box.download_blob("new").readall() == MEDIUM
        assert self.box.download_blob("new large").readall() == LARGE
        assert self.box.download_blob("medium").readall() == MEDIUM[::-1]
        assert self.box.download_blob("append").readall() == MEDIUM + MEDIUM
        assert self.box.download_blob("page").readall() == PAGES + PAGES
        self.box.get_blob_client("blocks").commit_block_list([BlobBlock("0001"), BlobBlock("0002")])
        assert self.box.download_blob("blocks").readall() == BLOCK + BLOCK
        assert self.share.get_file_client("file").download_file().readall() == MEDIUM[::-1]


def check_smb_while_read_only(client: Client) -> None:
    opened = client.create("by smb", disposition=CREATE)
    assert client.write(opened, b"rows need no bucket") == 19
    with refused(INSUFFICIENT_RESOURCES):
        client.write(opened, MEDIUM[:50_000])
    assert client.read(opened, 0, 100) == b"rows need no bucket"


def test_reads_and_small_writes_go_on_and_the_others_can_be_repeated(
    gateway: ReadOnlyGateway, url: str, tmp_path: Path
) -> None:
    location = tmp_path / "store"
    options = ("--extents", url, "--workers", "1", "--smb-port", "0")
    with ServerProcess(*options, location=location) as server:
        clients = Clients(server)
        clients.write_before()
        workers = server.worker_pids()
        with connected(login_of(server), "share") as client:
            gateway.is_read_only = True
            for name, write in clients.writes.items():
                with pytest.raises(HttpResponseError) as busy:
                    write()
                assert busy.value.status_code == 503, name
                assert "ServerBusy" in str(busy.value)
            check_smb_while_read_only(client)
            clients.box.upload_blob("small", b"rows need no bucket")
            clients.check_before()
            gateway.is_read_only = False
            for write in clients.writes.values():
                write()
            by_smb = client.create("by smb")
            assert client.write(by_smb, MEDIUM[:50_000]) == 50_000
        clients.check_after()
        assert server.worker_pids() == workers, "a worker did not survive"
        assert "the object store refuses requests" in server.errors
        assert "a request failed" not in server.errors
        assert clients.share.get_file_client("by smb").download_file().readall() == MEDIUM[:50_000]
        assert server.stop() == 0
    verify = [sys.executable, "-m", "kyanite.server.cli", "verify", "--location", str(location)]
    sound = subprocess.run(
        [*verify, "--extents", url], capture_output=True, text=True, check=False, timeout=60
    )
    assert sound.returncode == 0, sound.stdout + sound.stderr
    assert "all as they were written" in sound.stdout
