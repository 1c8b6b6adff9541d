"""The two servers, each with shares on which sub-tests do not meet.

A sub-test works in folders whose names it shares with others of its suite, and may leave files behind when it fails. So
each gets an empty share.
"""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from azure.storage.fileshare import ShareServiceClient

from tests.server_process import ServerProcess
from tests.smb.programs import Login
from tests.smb.smbd import Smbd


class Target(ABC):
    """A running server."""

    login: Login

    def problems(self) -> list[str]:
        """What the server has logged as errors."""
        return []

    @abstractmethod
    def empty_share(self, lane: int, name: str) -> str:
        """A share for a sub-test. No two sub-tests run in the same lane at a time."""


class SmbdTarget(Target):
    def __init__(self, smbd: Smbd) -> None:
        self._smbd = smbd
        self.login = smbd.login

    def empty_share(self, lane: int, name: str) -> str:
        share = self._smbd.shares[lane]
        self._smbd.empty(share)
        return share


class KyaniteTarget(Target):
    def __init__(self, server: ServerProcess) -> None:
        self._server = server
        self._shares = ShareServiceClient(server.endpoints["file"], server.account_key)
        self._numbers = itertools.count()
        self.login = login_of(server)

    def empty_share(self, lane: int, name: str) -> str:
        share = f"torture-{lane}-{next(self._numbers)}"
        self._shares.create_share(share)
        return share

    def problems(self) -> list[str]:
        errors = [line for line in self._server.log if line.get("level") in {"error", "critical"}]
        return [str(line.get("exception") or line) for line in errors]


def login_of(server: ServerProcess) -> Login:
    """Where a server speaks SMB, and as whom the tests log in."""
    port = urlsplit(server.endpoints["smb"]).port
    assert port is not None
    return Login(port, server.account, server.account_key)


@contextmanager
def smbd(folder: Path, lanes: int) -> Iterator[Target]:
    with Smbd([f"lane{lane}" for lane in range(lanes)]) as started:
        yield SmbdTarget(started)


@contextmanager
def kyanite(folder: Path, lanes: int) -> Iterator[Target]:
    with ServerProcess("--workers", "2", location=folder) as server:
        yield KyaniteTarget(server)


TARGETS = {"smbd": smbd, "kyanite": kyanite}
