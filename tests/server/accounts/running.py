"""A running server, and clients of its accounts."""

import subprocess
import sys
from pathlib import Path

from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobServiceClient

from tests.server_process import ServerProcess


def kyanite(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line."""
    return subprocess.run(
        [sys.executable, "-m", "kyanite.server.cli", *arguments], capture_output=True, text=True, check=False
    )


def blob_service(server: ServerProcess, name: str, key: str) -> BlobServiceClient:
    """A client of an account of the server, with that key."""
    url = server.endpoints["blob"].rpartition("/")[0]
    return BlobServiceClient(f"{url}/{name}", credential=key, retry_total=0)


def opens(server: ServerProcess, name: str, key: str) -> bool:
    """Whether a key opens an account."""
    with blob_service(server, name, key) as client:
        try:
            client.get_service_properties()
        except HttpResponseError as error:
            if error.status_code != 403:
                raise
            return False
        return True


def toml(folder: Path, text: str) -> Path:
    path = folder / "kyanite.toml"
    path.write_text(text)
    return path
