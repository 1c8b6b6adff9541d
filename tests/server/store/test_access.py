"""Other users of the machine cannot read a store."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from azure.storage.blob import BlobServiceClient

from tests.server_process import ServerProcess


def readable_by_others(folder: Path) -> Iterator[Path]:
    """What every user can read, if ``folder`` can be entered."""
    for entry in os.scandir(folder):
        mode = entry.stat(follow_symlinks=False).st_mode
        if entry.is_dir(follow_symlinks=False):
            if mode & (stat.S_IXGRP | stat.S_IXOTH):
                yield from readable_by_others(Path(entry.path))
        elif mode & (stat.S_IRGRP | stat.S_IROTH) and entry.name != "format":
            yield Path(entry.path)


def test_others_can_read_nothing(tmp_path: Path) -> None:
    with ServerProcess("--workers", "2", location=tmp_path / "store") as server:
        client = BlobServiceClient(server.endpoints["blob"], credential=server.account_key, retry_total=0)
        box = client.create_container("box")
        for size in (100, 100_000, 5_000_000):
            box.upload_blob(str(size), bytes(size))
        assert list(readable_by_others(server.location)) == []
