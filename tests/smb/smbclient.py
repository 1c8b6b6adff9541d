"""Samba's smbclient as a command."""

from collections.abc import Sequence
from pathlib import Path

from tests.smb.programs import HOST, program, run
from tests.smb.shares import Share

LIMIT_SECONDS = 240.0
PROTOCOLS = {"2.1": "SMB2_10", "3.0": "SMB3_00", "3.0.2": "SMB3_02", "3.1.1": "SMB3_11"}


class SmbClientFailed(Exception):
    """smbclient ended with an error; the text is its output."""


class SmbClient:
    """Runs commands on a share. ``folder`` is where files are taken from and put."""

    def __init__(self, share: Share, folder: Path) -> None:
        self.share = share
        self.folder = folder / "files"
        self.folder.mkdir()
        self._options = share.login.write(folder)

    def __call__(self, *commands: str, dialect: str = "3.1.1", options: Sequence[str] = ()) -> str:
        """The output of smbclient for these commands, through one session. Raises SmbClientFailed."""
        return self._run([f"//{HOST}/{self.share.name}", "-c", "; ".join(commands)], dialect, options)

    def shares(self, dialect: str = "3.1.1", options: Sequence[str] = ()) -> list[str]:
        """The names of the shares that the server lists."""
        listed = self._run(["-g", "-L", f"//{HOST}"], dialect, options)
        lines = [line.split("|") for line in listed.splitlines()]
        return [line[1] for line in lines if line[0] in {"Disk", "IPC"}]

    def _run(self, arguments: Sequence[str], dialect: str, options: Sequence[str]) -> str:
        protocol = PROTOCOLS[dialect]
        exact = ["-m", protocol, f"--option=client min protocol={protocol}"]
        command = [program("smbclient"), *self._options, *exact, *options, *arguments]
        done = run(command, LIMIT_SECONDS, self.folder)
        if done.returncode or "NT_STATUS_" in done.stdout:
            raise SmbClientFailed(f"exit code {done.returncode}\n{done.stdout[-3000:]}")
        return done.stdout
