"""A server with two workers, for tests that are violent to it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.client import token_of
from tests.server_process import ServerProcess


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess("--workers", "2", location=tmp_path / "store") as started:
        yield started


@pytest.fixture
def token(server: ServerProcess) -> str:
    return token_of(server)
