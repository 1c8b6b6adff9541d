"""The servers that are measured: how each is started, filled with blobs, and stopped.

All listen on loopback with a store of their own in a folder that the run removes. Kyanite and Azurite run
with their defaults; nginx serves plain files and is the ceiling for what reads can be. A server is stopped by
its process id.
"""

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from time import monotonic, perf_counter, sleep
from urllib.parse import urlsplit

from bench.load.client import load
from bench.load.lane import Work
from bench.load.single_request import send_request
from bench.load.site import Site, storage_site
from bench.load.works import Content, put_blob
from bench.servers import installs, processes

START_SECONDS = 60.0
STOP_SECONDS = 30.0


class Server(ABC):
    """One server and its store, started and stopped as often as needed. Each kind says how it is launched."""

    name = ""
    is_store = True
    """Whether it is a store. Others take part in single rows."""
    can_be_read = True

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._log = folder.with_suffix(".log")
        self._process: subprocess.Popen[bytes] | None = None
        self.sites: Mapping[str, Site] = {}
        """The address of each service while the server runs."""
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def site(self) -> Site:
        """The blob service."""
        return self.sites["blob"]

    @property
    def pids(self) -> list[int]:
        """All its processes."""
        assert self._process is not None, f"{self.name} is not running"
        return processes.family(self._process.pid)

    def start(self) -> float:
        """Start it on its folder; the seconds until it answered a request with success."""
        began_at = perf_counter()
        self.sites = self._launch()
        self._wait_for_answer(self.site)
        return perf_counter() - began_at

    @property
    def has_ended(self) -> bool:
        """Whether it has ended by itself."""
        return self._process is not None and self._process.poll() is not None

    def start_anew(self) -> None:
        """Start one that has ended, on an empty folder."""
        self._forget()
        shutil.rmtree(self.folder)
        self.folder.mkdir()
        self.start()

    def stop(self) -> None:
        """Ask it to end, and end all its processes if it does not. Stopping twice is no harm."""
        if self._process is None:
            return
        pids = self.pids
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._kill(pids)
        self._forget()

    def kill(self) -> None:
        """End all its processes at once, with no chance to save anything."""
        self._kill(self.pids)
        self._forget()

    def _kill(self, pids: Sequence[int]) -> None:
        assert self._process is not None
        for pid in pids:
            processes.kill(pid)
        self._process.wait()

    def _forget(self) -> None:
        assert self._process is not None
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._process = None

    def fill(self, container: str, names: Iterable[str], content: Content, *, lanes: int = 32) -> None:
        """Make the container and put a blob under each of the names."""
        site = self.site
        self.create_container(container)
        shared = list(names)

        def puts(lane: int) -> Work:
            for name in shared[lane::lanes]:
                yield put_blob(site, container, name, content)

        tally = load(site, puts, lanes=min(lanes, len(shared)), seconds=None)
        if tally.errors:
            raise RuntimeError(f"{self.name} could not be filled: {tally.errors[0]}")

    def create_container(self, container: str) -> None:
        send_request(
            self.site,
            self.site.head("PUT", f"/{container}", "restype=container", "Content-Length: 0\r\n"),
            201,
        )

    def delete_container(self, container: str) -> None:
        send_request(self.site, self.site.head("DELETE", f"/{container}", "restype=container"), 202)

    @abstractmethod
    def _launch(self) -> Mapping[str, Site]:
        """Spawn the server; returns the address of each of its services."""

    def _probe(self, site: Site) -> bytes:
        return site.head("GET", "", "comp=list")

    def _spawn(self, *command: str | Path, stdout: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [str(part) for part in command],
                stdout=stdout,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
            )
        return self._process

    def _wait_for_answer(self, site: Site) -> None:
        deadline = monotonic() + START_SECONDS
        while True:
            try:
                send_request(site, self._probe(site), 200)
                return
            except (OSError, RuntimeError) as problem:
                self._check_alive()
                if monotonic() > deadline:
                    raise RuntimeError(f"{self.name} did not answer: {problem}") from problem
                sleep(0.005)

    def _first_line(self, process: subprocess.Popen[bytes]) -> bytes:
        """By which it says that it is ready."""
        assert process.stdout is not None
        deadline = monotonic() + START_SECONDS
        while not select.select([process.stdout], [], [], 0.2)[0]:
            self._check_alive()
            if monotonic() > deadline:
                raise RuntimeError(f"{self.name} did not say that it is ready")
        line = process.stdout.readline()
        if not line:
            process.wait(STOP_SECONDS)
            self._check_alive()
        return line

    def _check_alive(self) -> None:
        assert self._process is not None
        if self._process.poll() is not None:
            tail = self._log.read_text(errors="replace")[-1000:]
            raise SystemExit(f"{self.name} ended with code {self._process.returncode}:\n{tail}")


class Kyanite(Server):
    """The checkout that the benchmark belongs to; a class below it may run another one."""

    name = "kyanite"
    program: Sequence[str | Path] = (Path(sys.executable).parent / "kyanite",)
    options: Sequence[str] = ()

    def _launch(self) -> Mapping[str, Site]:
        services = ("blob", "queue", "table", "file", "smb")
        ports = [text for service in services for text in (f"--{service}-port", "0")]
        command = [*self.program, "serve", "--location", self.folder, *ports, *self.options]
        process = self._spawn(*command, stdout=subprocess.PIPE)
        endpoints = json.loads(self._first_line(process).removeprefix(b"ready"))
        return {
            service: storage_site(_port_of(endpoint))
            for service, endpoint in endpoints.items()
            if service in services
        }


class Azurite(Server):
    """With its defaults but for the time it keeps idle connections.

    After five seconds without reading from one it resets it, even if the reason is that it was too busy to read.
    """

    name = "azurite"

    def _launch(self) -> Mapping[str, Site]:
        services = ("blob", "queue", "table")
        sites = {service: storage_site(port) for service, port in zip(services, free_ports(3), strict=True)}
        program = installs.azurite() / "azurite" / "dist" / "src" / "azurite.js"
        options = ["--silent", "--skipApiVersionCheck", "--disableTelemetry"]
        for service, site in sites.items():
            options += [f"--{service}Port", str(site.port), f"--{service}KeepAliveTimeout", "600"]
        self._spawn(installs.node(), program, *options, "--location", self.folder)
        return sites


class Nginx(Server):
    name = "nginx"
    is_store = False

    def fill(self, container: str, names: Iterable[str], content: Content, *, lanes: int = 32) -> None:
        for name in names:
            path = self.folder / container / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                for _ in range(content.times):
                    file.write(content.piece)

    def create_container(self, container: str) -> None:
        (self.folder / container).mkdir(exist_ok=True)

    def delete_container(self, container: str) -> None:
        shutil.rmtree(self.folder / container, ignore_errors=True)

    def _launch(self) -> Mapping[str, Site]:
        (port,) = free_ports(1)
        config = self.folder / "nginx.conf"
        user = "user root;" if os.geteuid() == 0 else ""
        config.write_text(_NGINX_CONFIG.format(user=user, folder=self.folder, port=port))
        (self.folder / "probe").write_text("ready")
        self._spawn(installs.nginx(), "-p", self.folder, "-c", config, "-e", "stderr")
        return {"blob": Site("127.0.0.1", port, "", "")}

    def _probe(self, site: Site) -> bytes:
        return site.head("GET", "/probe")


_NGINX_CONFIG = """
{user} daemon off; worker_processes auto; pid {folder}/nginx.pid; error_log stderr warn;
events {{ worker_connections 1024; }}
http {{
  access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000000; open_file_cache max=10000;
  client_body_temp_path {folder}/t; proxy_temp_path {folder}/t; fastcgi_temp_path {folder}/t;
  uwsgi_temp_path {folder}/t; scgi_temp_path {folder}/t;
  server {{ listen 127.0.0.1:{port} reuseport; root {folder}; }}
}}
"""


class Receiver(Server):
    """Writes what it receives, and does nothing else: see ``bench/servers/receiver.py``."""

    name = "receiver"
    is_store = False
    can_be_read = False

    def create_container(self, container: str) -> None:
        pass

    def delete_container(self, container: str) -> None:
        pass

    def _launch(self) -> Mapping[str, Site]:
        program = Path(__file__).with_name("receiver.py")
        process = self._spawn(sys.executable, program, self.folder, stdout=subprocess.PIPE)
        site = Site("127.0.0.1", int(self._first_line(process)), "", "")
        return {"blob": site, "file": site}

    def _wait_for_answer(self, site: Site) -> None:
        """It has printed its port, so it answers."""


KINDS: dict[str, Callable[[Path], Server]] = {
    "kyanite": Kyanite,
    "azurite": Azurite,
    "nginx": Nginx,
    "receiver": Receiver,
}
STORES = ("kyanite", "azurite")


def _port_of(endpoint: str) -> int:
    """The port of an endpoint such as http://127.0.0.1:10000/devstoreaccount1."""
    port = urlsplit(endpoint).port
    assert port is not None
    return port


def free_ports(count: int) -> list[int]:
    """Free ports, for servers that do not report their own."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports
