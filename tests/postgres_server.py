"""A private PostgreSQL for tests: a cluster in a temporary folder, on loopback, that ends with the test process.

``postgres_server`` in ``tests/conftest.py`` is one for each test process. Tests use a database of their own
(``new_database``) or a schema of their own (``new_schema_url``). ``add_standby`` starts a synchronous standby, for
tests of a failover; these start a cluster of their own (``running_postgres``).

PostgreSQL refuses to run as root, so there it runs as the user ``postgres``. ``KYANITE_TEST_POSTGRES_BIN`` is the
folder of the programs of another version than the newest that is installed; that user has to be able to read it.
"""

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

_USER = "postgres"
_START_SECONDS = 30.0
_PR_SET_PDEATHSIG = 1
_GIVEN = os.environ.get("KYANITE_TEST_POSTGRES_BIN")
_INSTALLED = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
_PROGRAMS = Path(_GIVEN) if _GIVEN else _INSTALLED[-1] if _INSTALLED else None
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "max_wal_size": "512MB",
    "fsync": "on",
    "hot_standby": "on",
    "autovacuum_naptime": "1s",
    "wal_keep_size": "256MB",
    "log_min_messages": "warning",
}
_ACCESS = """\
local all all trust
host all with_password 127.0.0.1/32 scram-sha-256
host replication all 127.0.0.1/32 trust
host all all 127.0.0.1/32 trust
"""
_numbers = count(1)


def require_postgres() -> None:
    """Skip the test where PostgreSQL is not installed; in CI that is a failure."""
    if _PROGRAMS is not None or shutil.which("initdb"):
        return
    if os.environ.get("CI"):
        pytest.fail("PostgreSQL is not installed: scripts/postgres does that")
    pytest.skip("PostgreSQL is not installed: scripts/postgres does that")


class PostgresServer:
    """One cluster. It has a database ``kyanite``, and accepts any user from this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def hosts(self) -> str:
        return f"127.0.0.1:{self.port}"

    def url(self, database: str = "kyanite", *, schema: str | None = None, hosts: str | None = None) -> str:
        """``hosts`` are those of several servers, separated by commas."""
        text = f"postgresql://{_USER}@{hosts or self.hosts}/{database}"
        return text if schema is None else f"{text}?schema={schema}"

    def new_schema_url(self) -> str:
        """Of a store of its own: the engine makes the schema."""
        return self.url(schema=f"test_{os.getpid()}_{next(_numbers)}")

    def new_database(self) -> str:
        name = f"test_{os.getpid()}_{next(_numbers)}"
        self.sql(f"CREATE DATABASE {name}")
        return name

    def copy_database(self, database: str, copy: str) -> None:
        """As a dump and its restoration do: the database as it is now, into another one that is empty."""
        with tempfile.NamedTemporaryFile(suffix=".sql", dir=self.folder) as dump:
            where = ["-h", str(self.folder), "-p", str(self.port), "-U", _USER]
            Path(dump.name).write_text(_run(["pg_dump", *where, database]))
            Path(dump.name).chmod(0o644)
            _run(["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", *where, "-d", copy, "-f", dump.name])

    def sql(self, statement: str, database: str = "kyanite") -> str:
        """Run a statement, and return its rows as psql prints them, unaligned."""
        command = ["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", str(self.folder)]
        command += ["-p", str(self.port), "-U", _USER, "-d", database, "-c", statement]
        return _run(command).strip()

    def initialise(self) -> None:
        _run(["initdb", "-D", str(self.data), "-U", _USER, "-A", "trust", "-E", "UTF8", "--no-locale", "-N"])
        (self.data / "pg_hba.conf").write_text(_ACCESS)

    def start(self, *, is_standby: bool = False) -> None:
        settings = {**_SETTINGS, "port": str(self.port), "unix_socket_directories": str(self.folder)}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [_program("postgres"), "-D", str(self.data), *options],
                stdout=log,
                stderr=log,
                preexec_fn=_end_with_parent,  # noqa: PLW1509
                **_as_user(),
            )
        deadline = time.monotonic() + _START_SECONDS
        while not self._is_ready():
            assert self._process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < deadline, (self.folder / "log").read_text()
            time.sleep(0.02)
        if not is_standby and not self.sql("SELECT 1 FROM pg_database WHERE datname = 'kyanite'", "postgres"):
            self.sql("CREATE DATABASE kyanite", "postgres")

    def _is_ready(self) -> bool:
        command = [_program("pg_isready"), "-q", "-h", str(self.folder), "-p", str(self.port)]
        return subprocess.run(command, check=False, **_as_user()).returncode == 0

    def stop(self, number: signal.Signals = signal.SIGINT) -> None:
        """By default a fast shutdown, which ends sessions; SIGQUIT is a crash without a checkpoint."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(_START_SECONDS)
            self._process = None

    def kill(self) -> None:
        """As by ``kill -9`` of every process of the cluster."""
        assert self._process is not None
        parent = self._process.pid
        pids = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        for pid in [parent, *map(int, pids)]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait(_START_SECONDS)
        self._process = None

    def add_standby(self, folder: Path) -> "PostgresServer":
        """A synchronous standby: from now on, this server acknowledges a commit when the standby has it too."""
        standby = PostgresServer(folder)
        primary = f"host=127.0.0.1 port={self.port} user={_USER} application_name=standby"
        command = ["pg_basebackup", "-D", str(standby.data), "-R", "-X", "stream", "-c", "fast", "-N"]
        _run([*command, "-d", primary])
        standby.start(is_standby=True)
        self.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.sql("ALTER SYSTEM SET synchronous_commit = 'remote_apply'")
        self.sql("SELECT pg_reload_conf()")
        deadline = time.monotonic() + _START_SECONDS
        while self.sql("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") != "1":
            assert time.monotonic() < deadline, (standby.folder / "log").read_text()
            time.sleep(0.05)
        return standby

    def promote(self) -> None:
        """Make this standby the primary. It then waits for no standby of its own."""
        self.sql("SELECT pg_promote()", "postgres")
        self.sql("ALTER SYSTEM RESET synchronous_standby_names")
        self.sql("SELECT pg_reload_conf()")


@contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    """A cluster of its own."""
    require_postgres()
    with private_folder() as folder:
        server = PostgresServer(folder)
        server.initialise()
        server.start()
        try:
            yield server
        finally:
            server.stop(signal.SIGQUIT)


@contextmanager
def private_folder() -> Iterator[Path]:
    """A folder of the user as whom PostgreSQL runs. The folders of pytest are closed to that user."""
    folder = Path(tempfile.mkdtemp(prefix="kyanite-postgres-"))
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, _USER, _USER)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _as_user() -> dict[str, Any]:
    return {"user": _USER, "group": _USER, "extra_groups": []} if os.geteuid() == 0 else {}


def _program(name: str) -> str:
    return name if _PROGRAMS is None else str(_PROGRAMS / name)


def _run(command: list[str]) -> str:
    found = subprocess.run(
        [_program(command[0]), *command[1:]],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        **_as_user(),
    )
    assert found.returncode == 0, f"{command[0]}: {found.stderr}"
    text: str = found.stdout
    return text


def _end_with_parent() -> None:
    """The kernel stops the cluster at once when the test process ends, however it ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT)


def _free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        return port
