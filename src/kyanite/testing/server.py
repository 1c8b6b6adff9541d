"""A server for tests: ``kyanite serve --testing`` as a process of its own, on loopback and on free ports."""

import contextlib
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from kyanite.testing.account import Account
from kyanite.testing.admin import AdminPort
from kyanite.testing.clock import Clock
from kyanite.testing.faults import Faults
from kyanite.testing.requests import Requests

_SERVE = (sys.executable, "-m", "kyanite.testing.served")
_START_SECONDS = 60.0
_STOP_SECONDS = 60.0
_SERVICES = ("blob", "queue", "table", "file", "smb")
_LOG_CHARACTERS_MAX = 4000


class ServerFailed(Exception):
    """The server did not start; the message says what it wrote."""


class Server:
    """A server in memory, which is gone when it is stopped; with ``location`` a store on disk.

    ``options`` are more options of ``kyanite serve``; with ``--services`` the ports are to be among them. Use it as a
    context manager, or call ``start`` and ``stop``.
    """

    def __init__(self, *options: str, location: Path | str | None = None) -> None:
        self._options = options
        self._location = location
        self._process: subprocess.Popen[str] | None = None
        self._errors: IO[str] | None = None
        self._endpoints: Mapping[str, str] = {}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Returns when the server is ready. Raises ServerFailed."""
        if self._process is not None:
            raise ServerFailed("The server has been started already.")
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        self._process = subprocess.Popen(
            [*_SERVE, *self._arguments()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env=_environment(),
            start_new_session=True,
        )
        try:
            self._endpoints = self._until_ready(self._process)
        except BaseException:
            self._end()
            raise

    def stop(self) -> None:
        """End the server. What was in memory is gone."""
        if self._process is not None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_STOP_SECONDS)
        self._end()

    # What it offers

    @property
    def endpoints(self) -> Mapping[str, str]:
        """Service to URL, the first account included, and ``admin``."""
        if self._process is None:
            raise ServerFailed("The server has not been started.")
        return self._endpoints

    @property
    def admin_url(self) -> str:
        """Of the admin port, which has the HTTP API for tests below ``/testing``."""
        return self.endpoints["admin"]

    @property
    def clock(self) -> Clock:
        return Clock(self._admin)

    @property
    def faults(self) -> Faults:
        """For all accounts."""
        return Faults(self._admin)

    @property
    def requests(self) -> Requests:
        """Of all accounts, from the start of the server."""
        return Requests(self._admin)

    def faults_of(self, account: Account) -> Faults:
        return Faults(self._admin, account.name)

    def requests_of(self, account: Account) -> Requests:
        return Requests(self._admin, account.name, account.requests_before)

    def fresh_account(self, name: str | None = None) -> Account:
        """A new account without data, with a new name unless one is given."""
        made = self._admin.request("POST", "accounts", {"name": name} if name else None)
        return Account(
            made["name"], made["key"], made["connection_string"], made["endpoints"], made["requests_before"]
        )

    def remove_account(self, account: Account) -> None:
        """Remove an account with its data."""
        self._admin.request("DELETE", "accounts", name=account.name)

    @property
    def log(self) -> str:
        """What the server has written to its log: lines of JSON."""
        if self._errors is None:
            return ""
        self._errors.seek(0)
        return self._errors.read()

    # Its process

    @property
    def _admin(self) -> AdminPort:
        return AdminPort(self.admin_url)

    def _arguments(self) -> list[str]:
        store = ["--in-memory"] if self._location is None else ["--location", str(self._location)]
        arguments = ["--testing", *store, "--host", "127.0.0.1", *self._options]
        given = {option.partition("=")[0] for option in self._options}
        services = _SERVICES if "--services" not in given else ()
        for name in (*services, "admin"):
            if f"--{name}-port" not in given:
                arguments += [f"--{name}-port", "0"]
        if "--console-port" not in given:
            arguments += ["--console-port", "none"]
        return arguments

    def _until_ready(self, process: subprocess.Popen[str]) -> Mapping[str, str]:
        stdout = process.stdout
        assert stdout is not None
        lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=lambda: lines.put(_ready_line(stdout)), daemon=True).start()
        try:
            line = lines.get(timeout=_START_SECONDS)
        except queue.Empty:
            raise ServerFailed(f"The server was not ready in time. {self._complaint()}") from None
        if not line:
            process.wait(_STOP_SECONDS)
            raise ServerFailed(f"The server ended with exit code {process.returncode}. {self._complaint()}")
        found: dict[str, object] = json.loads(line.removeprefix("ready "))
        return {name: url for name, url in found.items() if isinstance(url, str)}

    def _complaint(self) -> str:
        return self.log[-_LOG_CHARACTERS_MAX:].strip()

    def _end(self) -> None:
        if self._process is not None:
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait(_STOP_SECONDS)
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()
            self._process = None
        if self._errors is not None:
            self._errors.close()
            self._errors = None


def _ready_line(output: IO[str]) -> str:
    """The line that says that the server is ready; empty if it ended before."""
    for line in output:
        if line.startswith("ready "):
            return line
    return ""


def _environment() -> dict[str, str]:
    """Without options for the server, which the environment may have for another one."""
    return {name: value for name, value in os.environ.items() if not name.startswith("KYANITE_")}
