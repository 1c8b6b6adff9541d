"""``kyanite verify`` on a store that a real server has written."""

import subprocess
import sys
from pathlib import Path

import pytest
from azure.storage.blob import BlobServiceClient

from tests.server_process import ServerProcess


def verify(location: Path) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "kyanite.server.cli", "verify", "--location", str(location)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return ended.returncode, ended.stdout, ended.stderr


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A stopped store with one inline blob and two in extents."""
    with ServerProcess("--workers", "1", location=tmp_path) as server:
        credential = {"account_name": server.account, "account_key": server.account_key}
        with BlobServiceClient(server.endpoints["blob"], credential=credential) as client:
            container = client.create_container("verified")
            for size in (100, 100_000, 200_000):
                container.upload_blob(f"of {size}", bytes(size))
        assert server.stop() == 0
    return tmp_path


def test_a_sound_store(store: Path) -> None:
    assert verify(store) == (0, "2 extents with 300000 bytes, all as they were written.\n", "")


def test_a_damaged_store(store: Path) -> None:
    (segment,) = (path for path in (store / "extents" / "segments").rglob("*") if path.is_file())
    with segment.open("r+b") as file:
        file.seek(50_000)
        file.write(b"!")
    code, out, err = verify(store)
    assert code == 1
    assert out.startswith("The CRC of extent ")
    assert out.count("\n") == 1
    assert err == f"kyanite: 1 of 2 extents in {store} are damaged.\n"


def test_a_store_in_use(tmp_path: Path) -> None:
    with ServerProcess("--workers", "1", location=tmp_path):
        code, _, err = verify(tmp_path)
    assert (code, err) == (1, f"kyanite: The store {tmp_path} is in use by another Kyanite server.\n")
