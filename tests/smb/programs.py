"""Samba's programs, which ``make test`` installs, and who logs in with them."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PACKAGES = "samba, samba-vfs-modules, smbclient and samba-testsuite"
HOST = "127.0.0.1"
_PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin"])


class MissingProgramError(Exception):
    """One of Samba's programs is not installed. Nothing is skipped for that: the tests fail."""


def program(name: str) -> str:
    """Where a program is."""
    found = shutil.which(name, path=_PATH)
    if found is None:
        raise MissingProgramError(f"there is no {name}: please install {PACKAGES}")
    return found


@dataclass(frozen=True, slots=True)
class Login:
    """The port of a server, a user and the password."""

    port: int
    user: str
    password: str

    def write(self, folder: Path) -> list[str]:
        """The options of a program for this port and user. The password is in a file: a key may hold any sign."""
        secret = folder / "authentication"
        secret.touch(mode=0o600)
        secret.write_text(f"username = {self.user}\npassword = {self.password}\n")
        return ["-p", str(self.port), "-A", str(secret), *configuration(folder)]


def configuration(folder: Path, more: Sequence[str] = ()) -> list[str]:
    """The option for a configuration with nothing but these lines, so that the system's own has no say."""
    names = ("private dir", "lock directory", "state directory", "cache directory", "pid directory")
    own = [f"{name} = {folder}" for name in names]
    path = folder / "client.conf"
    path.write_text("\n".join(["[global]", *own, "client min protocol = SMB2_10", *more, ""]))
    return ["-s", str(path)]


def run(command: Sequence[str], seconds: float, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program in this folder, with its messages after its output, as they come."""
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=seconds,
        cwd=folder,
        env={**os.environ, "TZ": "UTC"},
        check=False,
    )
