"""The servers of the SMB rows, each with one share, and Samba's smbclient as the client of both."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter

from tests.smb.programs import HOST, Login, program
from tests.smb.smbd import Smbd

from bench.load.single_request import send_request
from bench.load.site import ACCOUNT, KEY
from bench.servers.peers import Kyanite

SHARE = "bench"
LIMIT_SECONDS = 600.0
IDLE_ROUNDS = 3


class SmbPeer:
    """A running server: where smbclient finds it."""

    def __init__(self, name: str, login: Login, folder: Path) -> None:
        self.name = name
        self.folder = folder
        """Where the client's files are."""
        folder.mkdir()
        self._options = login.write(folder)
        self._idle: dict[tuple[int, str], float] = {}

    def seconds(self, commands: Sequence[Sequence[str]], options: Sequence[str] = ()) -> float:
        """How long several clients take, each with the commands of its own session, all at the same time."""
        began_at = perf_counter()
        running = [self._start([*lines, "exit"], options) for lines in commands]
        outputs = [process.communicate(timeout=LIMIT_SECONDS)[0] for process in running]
        took = perf_counter() - began_at
        for output in outputs:
            if "NT_STATUS_" in output:
                raise RuntimeError(f"{self.name}: {output[-500:]}")
        return took

    def idle_seconds(self, clients: int, protection: str) -> float:
        """How long as many sessions take that do nothing: measured once."""
        kind = (clients, protection)
        if kind not in self._idle:
            times = [self.seconds([[]] * clients, [protection]) for _ in range(IDLE_ROUNDS)]
            self._idle[kind] = median(times)
        return self._idle[kind]

    def _start(self, commands: Sequence[str], options: Sequence[str]) -> subprocess.Popen[str]:
        command = [program("smbclient"), *self._options, *options, f"//{HOST}/{SHARE}"]
        return subprocess.Popen(
            [*command, "-c", "; ".join(commands)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.folder,
        )


@contextmanager
def kyanite(folder: Path, durability: str) -> Iterator[SmbPeer]:
    server = Kyanite(folder / durability)
    server.options = ("--smb-durability", durability)
    try:
        server.start()
        site = server.sites["file"]
        send_request(site, site.head("PUT", f"/{SHARE}", "restype=share", "Content-Length: 0\r\n"), 201)
        login = Login(server.sites["smb"].port, ACCOUNT, KEY)
        yield SmbPeer("kyanite", login, folder / f"{durability}-client")
    finally:
        server.stop()


@contextmanager
def smbd(folder: Path) -> Iterator[SmbPeer]:
    with Smbd([SHARE], parent=folder) as server:
        yield SmbPeer("smbd", server.login, folder / "smbd-client")
