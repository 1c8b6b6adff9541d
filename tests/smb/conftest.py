"""One server for all tests of a process, and an empty share for each."""

import itertools
import os
from collections.abc import Callable, Iterator

import pytest

from tests.server_process import ServerProcess
from tests.smb.shares import KyaniteShare, Share, SmbdShare
from tests.smb.smbclient import SmbClient
from tests.smb.smbd import Smbd

ShareMaker = Callable[[], Share]
_numbers = itertools.count()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess("--workers", "2", location=tmp_path_factory.mktemp("store")) as started:
        yield started
        assert started.is_running(), started.errors
        unexpected = [line for line in started.log if line.get("level") in {"error", "critical"}]
        assert not unexpected


@pytest.fixture(scope="session")
def make_share(request: pytest.FixtureRequest) -> Iterator[ShareMaker]:
    """Makes an empty share: this server's, or smbd's when it is the oracle for the tests themselves."""
    if not os.environ.get("SMB_ORACLE"):
        server: ServerProcess = request.getfixturevalue("server")
        yield lambda: KyaniteShare(server, f"share-{next(_numbers)}")
        return
    with Smbd(["share"]) as smbd:
        yield lambda: SmbdShare(smbd, "share")


@pytest.fixture
def share(make_share: ShareMaker) -> Share:
    return make_share()


@pytest.fixture
def smbclient(share: Share, tmp_path_factory: pytest.TempPathFactory) -> SmbClient:
    """Samba's smbclient on that share, in a folder of its own."""
    return SmbClient(share, tmp_path_factory.mktemp("smbclient"))
