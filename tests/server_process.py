"""A real server for tests: its processes, its endpoints, and ways to stop, kill and restart it.

    with ServerProcess(location=tmp_path) as server:
        client = BlobServiceClient(server.endpoints["blob"], credential=server.account_key)

The server listens on loopback and on free ports. ``program`` runs something else than the installed server, such as one
with a stand-in for a service.
"""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from kyanite.server.service_table import offered
from tests import chosen_store

SERVE = (sys.executable, "-m", "kyanite.server.cli", "serve")
DEVELOPMENT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

START_SECONDS = 60.0
STOP_SECONDS = 60.0


class ServerFailed(Exception):
    """The server did not become ready. ``code`` is its exit code, ``errors`` what it wrote to standard error."""

    def __init__(self, code: int | None, errors: str) -> None:
        super().__init__(f"exit code {code}: {errors}")
        self.code = code
        self.errors = errors


class ServerProcess:
    """One server on one location, which outlives stops and kills, so that it can be started again on the same store.

    ``args`` are more options of ``kyanite serve``; a port that they do not name is 0, a free one, and without a
    ``location`` there is a new folder, which goes with the object. ``defaults=False`` leaves all of this to the caller.
    """

    account = "devstoreaccount1"
    account_key = DEVELOPMENT_KEY

    def __init__(
        self,
        *args: str,
        location: Path | None = None,
        environment: Mapping[str, str] | None = None,
        program: Sequence[str] = SERVE,
        defaults: bool = True,
    ) -> None:
        self._args = args
        self._defaults = defaults
        self._own_folder = None if location else tempfile.TemporaryDirectory(prefix="kyanite-test-")
        self.location = location or Path(self._own_folder.name if self._own_folder else "")
        self._environment = environment or {}
        self._program = program
        self._process: subprocess.Popen[str] | None = None
        self._errors: IO[str] | None = None
        self.endpoints: dict[str, str] = {}
        """Service to URL, account included, as in the ready line, with the other ports that the server has."""
        self.accounts: list[str] = []
        """All accounts that the ready line names."""

    @property
    def connection_string(self) -> str:
        """What clients take instead of addresses and a key."""
        parts = {
            "DefaultEndpointsProtocol": "http",
            "AccountName": self.account,
            "AccountKey": self.account_key,
            **{
                f"{name.title()}Endpoint": url
                for name, url in self.endpoints.items()
                if name in ("blob", "queue", "table", "file", "dfs")
            },
        }
        return ";".join(f"{name}={value}" for name, value in parts.items())

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Starting

    def start(self, *more_args: str) -> dict[str, str]:
        """Start, wait for the ready line, and return the endpoints. Raises ServerFailed."""
        assert self._process is None, "already started"
        self.launch(*more_args)
        try:
            return self.wait_ready()
        except ServerFailed:
            self.close()
            raise

    def launch(self, *more_args: str) -> None:
        """Start without waiting."""
        args = [*self._args, *more_args]
        if self._defaults:
            if not {"--in-memory", "--location"} & set(args):
                args += ["--location", str(self.location)]
            if not {"--in-memory", "--engine", "--extents"} & set(args) and self._program == SERVE:
                args += chosen_store.options_for(self.location)
            others = ("identity", "managed-identity") if "builtin" in args else ()
            for option in (f"--{name}-port" for name in (*self._services(args), *others)):
                if option not in args:
                    args += [option, "0"]
            if "--console-port" not in args:
                args += ["--console-port", "none"]
        if self._errors is None:
            self._errors = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115
        self._process = subprocess.Popen(
            [*self._program, *args],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={**_clean_environment(), **self._environment},
            start_new_session=True,
        )

    def _services(self, args: Sequence[str]) -> Sequence[str]:
        """Those that the server offers: a port of another one would be an error."""
        stated = self._environment.get("KYANITE_SERVICES")
        if "--services" in args:
            stated = args[args.index("--services") + 1]
        return stated.split(",") if stated else offered()

    def wait_ready(self) -> dict[str, str]:
        line = self._first_line()
        if not line.startswith("ready "):
            code = self.wait()
            errors = self.errors
            self._forget()
            raise ServerFailed(code, errors)
        found = json.loads(line.removeprefix("ready "))
        self.accounts = found.pop("accounts")
        self.endpoints = found
        return self.endpoints

    def _first_line(self) -> str:
        assert self._process is not None
        assert self._process.stdout is not None
        lines: queue.Queue[str] = queue.Queue()
        stdout = self._process.stdout
        threading.Thread(target=lambda: lines.put(stdout.readline()), daemon=True).start()
        try:
            return lines.get(timeout=START_SECONDS)
        except queue.Empty:
            errors = self.errors
            self.kill9()
            raise ServerFailed(None, f"not ready after {START_SECONDS} seconds. {errors}") from None

    def restart(self) -> dict[str, str]:
        """Start again on the same store, after a stop or a kill, or in place of what still runs."""
        if self._process is not None:
            self.stop()
        return self.start()

    # Looking

    @property
    def pid(self) -> int:
        """The supervisor's."""
        assert self._process is not None, "not started"
        return self._process.pid

    @property
    def errors(self) -> str:
        """What was written to standard error so far."""
        if self._errors is None:
            return ""
        self._errors.flush()
        with open(f"/proc/self/fd/{self._errors.fileno()}", encoding="utf-8") as again:
            return again.read()

    @property
    def log(self) -> list[dict[str, object]]:
        """The log lines so far, decoded."""
        return [json.loads(line) for line in self.errors.splitlines() if line.startswith("{")]

    def child_pids(self) -> list[int]:
        """All processes of the server but the supervisor, in order of their start."""
        path = Path(f"/proc/{self.pid}/task/{self.pid}/children")
        return sorted(int(pid) for pid in path.read_text().split())

    def worker_pids(self) -> list[int]:
        """The worker processes, in order of their start."""
        return [
            pid for pid in self.child_pids() if _title(pid).startswith("kyanite worker") and is_alive(pid)
        ]

    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    # Ending

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def wait(self, seconds: float = STOP_SECONDS) -> int:
        """Wait for the supervisor's end and return its exit code."""
        assert self._process is not None
        return self._process.wait(seconds)

    def stop(self) -> int:
        """Stop gracefully and return the exit code."""
        assert self._process is not None, "not started"
        if self._process.poll() is None:
            self.signal(signal.SIGTERM)
        code = self.wait()
        self._forget()
        return code

    def kill9(self) -> None:
        """End every process of the server at once, as a power cut would."""
        assert self._process is not None, "not started"
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):
            children = self.child_pids()
            for pid in (self.pid, *children):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self._process.wait(STOP_SECONDS)
        self._forget()

    def kill_supervisor(self) -> None:
        """End the supervisor alone; its workers are left to notice."""
        assert self._process is not None, "not started"
        self._process.kill()
        self._process.wait(STOP_SECONDS)
        self._forget()

    def close(self) -> None:
        """Leave nothing behind."""
        if self._process is not None:
            self.kill9()
        if self._errors is not None:
            self._errors.close()
            self._errors = None
        if self._own_folder is not None:
            self._own_folder.cleanup()

    def _forget(self) -> None:
        if self._process is not None and self._process.stdout is not None:
            self._process.stdout.close()
        self._process = None


@contextlib.contextmanager
def server(
    *args: str, location: Path | None = None, program: Sequence[str] = SERVE
) -> Iterator[ServerProcess]:
    """A started server that ends with the block."""
    with ServerProcess(*args, location=location, program=program) as started:
        yield started


def eventually(check: object, seconds: float = 20.0) -> None:
    """Wait until a check holds; it is a callable that returns a truth value."""
    assert callable(check)
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    """Whether a process runs. One that has ended and waits to be buried does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _title(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _clean_environment() -> dict[str, str]:
    """Without options for the server, and with compiled modules kept, which halves the time to start."""
    unwanted = ("KYANITE_", "PYTHONDONTWRITEBYTECODE")
    return {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
