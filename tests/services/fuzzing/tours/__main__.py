"""Records what the official clients send: ``python -m tests.services.fuzzing.tours`` writes ``corpus.json`` anew.

Each client does once what it can do, to a server in this process, with the names that the other requests have as well.
"""

import asyncio
import base64
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import requests
import uvloop
from azure.core.exceptions import AzureError
from azure.core.pipeline.transport import RequestsTransport
from requests.adapters import HTTPAdapter

from kyanite.values import instant_from_unix_seconds
from tests.services.fuzzing.local_server import LocalServer
from tests.services.fuzzing.tours import blob, file, queue, table
from tests.services.fuzzing.tours.corpus import Recorded, save
from tests.services.harness import ACCOUNT

_UNWANTED = frozenset(
    (
        "host",
        "authorization",
        "x-ms-date",
        "date",
        "content-length",
        "user-agent",
        "connection",
        "accept-encoding",
        "x-ms-client-request-id",
        "transfer-encoding",
    )
)
TOURS = {"blob": blob, "queue": queue, "table": table, "file": file}


class Recorder(HTTPAdapter):
    """Keeps every request of one service, and sends it."""

    def __init__(self, service: str, ports: dict[str, int], found: list[Recorded]) -> None:
        super().__init__()
        self._service = service
        self._ports = ports
        self._found = found

    def send(self, request: Any, *more: Any, **options: Any) -> Any:
        if hasattr(request.body, "read"):
            request.body = request.body.read()
        body = request.body or b""
        octets = body.encode() if isinstance(body, str) else bytes(body)
        url = urlsplit(request.url)
        self._found.append(
            Recorded(
                self._service,
                request.method,
                unquote(url.path.removeprefix(f"/{ACCOUNT.name}")) or "/",
                url.query,
                [
                    (name, self._without_ports(str(value)))
                    for name, value in request.headers.items()
                    if name.lower() not in _UNWANTED
                ],
                self._without_ports(octets.decode("latin-1")),
            )
        )
        return super().send(request, *more, **options)

    def _without_ports(self, text: str) -> str:
        for word, port in self._ports.items():
            text = text.replace(f"127.0.0.1:{port}", f"{{{word}}}")
        return text


@contextmanager
def running_server() -> Iterator[LocalServer]:
    """In a thread, by the clock of this machine, which the clients sign."""
    started, stopped = threading.Event(), asyncio.Event()
    with tempfile.TemporaryDirectory() as folder:
        server = LocalServer(Path(folder))
        server.clock.now = instant_from_unix_seconds(int(time.time()))
        loops: list[asyncio.AbstractEventLoop] = []

        async def serve() -> None:
            loops.append(asyncio.get_running_loop())
            await server.start()
            started.set()
            await stopped.wait()
            await server.close()

        thread = threading.Thread(target=lambda: uvloop.run(serve()))
        thread.start()
        started.wait(10)
        try:
            yield server
        finally:
            loops[0].call_soon_threadsafe(stopped.set)
            thread.join(10)


def record() -> list[Recorded]:
    found: list[Recorded] = []
    key = base64.b64encode(ACCOUNT.keys[0]).decode()
    with running_server() as server:
        for service, tour in TOURS.items():
            session = requests.Session()
            session.mount("http://", Recorder(service, server.ports, found))
            options = {"transport": RequestsTransport(session=session, session_owner=False), "retry_total": 0}
            for step in tour.steps(f"http://127.0.0.1:{server.ports[service]}/{ACCOUNT.name}", key, options):
                with suppress(AzureError, IndexError):  # A step that needs what another did not get.
                    step()
            session.close()
    return found


if __name__ == "__main__":
    save(record())
