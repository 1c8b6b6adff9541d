"""Debian's haproxy in front of several nodes, as ``docs/scale-out.md`` says."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from tests.server_process import ServerProcess, eventually

_PROGRAM = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")

_CONFIGURATION = """\
global
    stats socket {folder}/stats level admin
defaults
    mode tcp
    option redispatch
    retries 3
    timeout connect 5s
    timeout client 1m
    timeout server 1m
frontend blob
    bind 127.0.0.1:{port}
    default_backend nodes
backend nodes
    balance leastconn
    option httpchk GET /readyz
    default-server check inter 200ms fall 1 rise 1
"""


class LoadBalancer(NamedTuple):
    url: str
    """Of the Blob service and the account."""
    stats: Path

    def ready_nodes(self) -> int:
        """How many nodes get new connections."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self.stats))
            connection.sendall(b"show stat\n")
            text = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
        rows = [line.split(",") for line in text.splitlines()]
        return sum(row[:1] == ["nodes"] and row[1].startswith("node") and row[17] == "UP" for row in rows)


@contextmanager
def balancing(nodes: Sequence[ServerProcess]) -> Iterator[LoadBalancer]:
    if _PROGRAM is None:
        if os.environ.get("CI"):
            pytest.fail("haproxy is not installed: scripts/debian haproxy does that")
        pytest.skip("haproxy is not installed: scripts/debian haproxy does that")
    with tempfile.TemporaryDirectory(prefix="kyanite-haproxy-") as name:
        folder = Path(name)
        port = free_port()
        lines = [
            f"    server node{number} {urlsplit(node.endpoints['blob']).netloc} "
            f"port {urlsplit(node.endpoints['admin']).port}\n"
            for number, node in enumerate(nodes)
        ]
        configuration = folder / "haproxy.cfg"
        configuration.write_text(_CONFIGURATION.format(folder=folder, port=port) + "".join(lines))
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen([_PROGRAM, "-db", "-f", str(configuration)], stdout=log, stderr=log)
        try:
            eventually((folder / "stats").exists)
            path = urlsplit(nodes[0].endpoints["blob"]).path
            balancer = LoadBalancer(f"http://127.0.0.1:{port}{path}", folder / "stats")
            eventually(lambda: balancer.ready_nodes() == len(nodes))
            yield balancer
        finally:
            process.terminate()
            process.wait(10)


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        return port
