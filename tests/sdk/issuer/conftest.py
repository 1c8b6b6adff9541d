"""One server with the built-in issuer for all tests of a process, and the environment that programs get for it."""

from collections.abc import Iterator

import pytest

from tests.sdk.issuer.environment import environment_of
from tests.server_process import ServerProcess


@pytest.fixture(scope="session")
def issuing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    options = ("--dev-identity", "builtin", "--workers", "2")
    with ServerProcess(*options, location=tmp_path_factory.mktemp("issuing")) as started:
        yield started
        assert started.is_running(), started.errors
        assert not [line for line in started.log if line.get("level") in {"error", "critical"}]


@pytest.fixture(scope="session")
def environment(issuing: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return environment_of(issuing, tmp_path_factory.mktemp("federated") / "token")
