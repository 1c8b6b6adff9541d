"""A server with a console, for the tests of this folder; each takes names of its own."""

from collections.abc import Iterator

import pytest

from tests.console.visitor import Visitor
from tests.server_process import ServerProcess

ACCOUNT = "devstoreaccount1"


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with ServerProcess("--console-port", "0", "--in-memory") as started:
        yield started


@pytest.fixture
def visitor(server: ServerProcess) -> Visitor:
    return Visitor(server.endpoints["console"])
