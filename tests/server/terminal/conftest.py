"""One server for the commands of this folder, with two accounts."""

from collections.abc import Iterator

import pytest

from tests.server_process import DEVELOPMENT_KEY, ServerProcess

OTHER_KEY = "b3RoZXIga2V5IG9mIGFuIGFjY291bnQ="


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    options = (
        "--account",
        f"devstoreaccount1:{DEVELOPMENT_KEY}:{OTHER_KEY}",
        "--account",
        f"other:{OTHER_KEY}",
    )
    with ServerProcess(*options, "--workers", "1", location=tmp_path_factory.mktemp("store")) as started:
        yield started
        assert not [line for line in started.log if line.get("level") in {"error", "critical"}]
