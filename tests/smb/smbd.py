"""Debian's smbd as a child process, with a configuration that is always the same: what this server is compared with.

    with Smbd(shares=["first", "second"]) as smbd:
        login = smbd.login

It listens on a free port of loopback and keeps everything in a temporary folder. The user is the one who runs it, which
is root as a rule: like a session with the key of an account, root is above the permissions of files. A session has one
channel, as in this server.
"""

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.smb.programs import HOST, Login, program

PASSWORD = "bm90IGEga2V5/+=="
START_SECONDS = 30.0
STOP_SECONDS = 20.0

_GLOBAL = """\
[global]
    server role = standalone server
    netbios name = oracle
    interfaces = 127.0.0.1
    bind interfaces only = yes
    smb ports = {port}
    passdb backend = tdbsam
    private dir = {folder}/private
    lock directory = {folder}/lock
    state directory = {folder}/state
    cache directory = {folder}/cache
    pid directory = {folder}/pid
    ncalrpc dir = {folder}/ncalrpc
    log file = {folder}/log/%m
    server multi channel support = no
    disable spoolss = yes
    load printers = no
    kernel oplocks = no
    kernel share modes = no
    vfs objects = acl_xattr streams_xattr
"""
_SHARE = """\
[{name}]
    path = {path}
    read only = no
"""
_FOLDERS = ("private", "lock", "state", "cache", "pid", "ncalrpc", "log", "shares")


class SmbdFailed(Exception):
    """smbd did not start. The text is its output."""


class Smbd:
    """One smbd and its shares."""

    def __init__(self, shares: Sequence[str], *, parent: Path | None = None) -> None:
        self._own_folder = tempfile.TemporaryDirectory(prefix="smbd-", dir=parent, ignore_cleanup_errors=True)
        self.folder = Path(self._own_folder.name)
        self.shares = tuple(shares)
        self._process: subprocess.Popen[bytes] | None = None
        self.login = Login(0, pwd.getpwuid(os.getuid()).pw_name, PASSWORD)

    def __enter__(self) -> Self:
        self._make_folders()
        self.login = Login(_free_port(), self.login.user, PASSWORD)
        self._configuration.write_text(self._configured())
        try:
            self._add_user()
            self._launch()
            self._wait_ready()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def share_folder(self, share: str) -> Path:
        """Where the files of a share are."""
        return self.folder / "shares" / share

    def empty(self, share: str) -> None:
        """Remove all files of a share."""
        for path in self.share_folder(share).iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()

    def _make_folders(self) -> None:
        for name in _FOLDERS:
            (self.folder / name).mkdir()
        for share in self.shares:
            self.share_folder(share).mkdir()

    @property
    def pid(self) -> int:
        assert self._process is not None, "not started"
        return self._process.pid

    def close(self) -> None:
        """End it. Its children, one for each connection, end with it or with their clients."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
        self._own_folder.cleanup()

    @property
    def _configuration(self) -> Path:
        return self.folder / "smb.conf"

    def _configured(self) -> str:
        shares = [_SHARE.format(name=share, path=self.share_folder(share)) for share in self.shares]
        return "".join([_GLOBAL.format(port=self.login.port, folder=self.folder), *shares])

    def _add_user(self) -> None:
        subprocess.run(
            [program("smbpasswd"), "-c", str(self._configuration), "-a", "-s", self.login.user],
            input=f"{PASSWORD}\n{PASSWORD}\n".encode(),
            stdout=subprocess.DEVNULL,
            check=True,
        )

    def _launch(self) -> None:
        command = [
            program("smbd"),
            "-F",
            "--no-process-group",
            "--debug-stdout",
            "-s",
            str(self._configuration),
        ]
        with (self.folder / "output").open("wb") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self.folder,
                start_new_session=True,  # At its end it signals its whole process group.
            )

    def _wait_ready(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + START_SECONDS
        while True:
            with contextlib.suppress(OSError), socket.create_connection((HOST, self.login.port), 1.0):
                return
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise SmbdFailed((self.folder / "output").read_text(errors="replace")[-2000:])
            time.sleep(0.02)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port
