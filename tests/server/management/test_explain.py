"""``kyanite explain``: the refusals of all workers, from the command line and from the admin port."""

import http.client
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from kyanite.server.failures import Failure
from kyanite.server.management.client import call
from tests.server_process import ServerProcess

REQUESTS = 24
TERMS = "sv=2022-11-02&sr=b&sp=r&se=2099-01-01T00:00:00Z"


@pytest.fixture(scope="module", params=["embedded", "memory"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    in_memory = ("--in-memory",) if request.param == "memory" else ("--workers", "2")
    with ServerProcess(
        *in_memory, "--services", "blob,file", location=tmp_path_factory.mktemp("explain")
    ) as started:
        serving = next(line for line in started.log if line["message"] == "serving")
        started.location = Path(str(serving["management"])).parent
        yield started


def refuse(server: ServerProcess, path: str = f"/devstoreaccount1/box/blob?{TERMS}&sig=SECRET%2B") -> str:
    """A request of a connection of its own, so that all workers get some. The id of its refusal."""
    connection = http.client.HTTPConnection(urlsplit(server.endpoints["blob"]).netloc, timeout=30)
    connection.request("GET", path, headers={"User-Agent": "me/1", "x-ms-client-request-id": "mine"})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    assert answer.status == 403
    return answer.headers["x-ms-request-id"]


def location_of(server: ServerProcess) -> list[str]:
    return ["--location", str(server.location)]


def test_every_refusal_of_every_worker_is_found(server: ServerProcess) -> None:
    ids = [refuse(server) for _ in range(REQUESTS)]
    for request_id in ids:
        found = call(server.location, "explain", request_id=request_id)
        assert found["request_id"] == request_id
        assert (found["account"], found["code"]) == ("devstoreaccount1", "AuthenticationFailed")
        assert (found["user_agent"], found["client_request_id"]) == ("me/1", "mine")
        assert "SECRET" not in json.dumps(found)


def test_the_command_line_says_it_in_sentences(server: ServerProcess) -> None:
    request_id = refuse(server)
    ran = subprocess.run(
        [sys.executable, "-m", "kyanite.server.cli", "explain", request_id, *location_of(server)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    first, second, *_ = ran.stdout.splitlines()
    assert first == f"Get Blob: GET /devstoreaccount1/box/blob?{TERMS}&sig=..."
    assert second.startswith("Answered with 403 AuthenticationFailed at ")
    assert "user agent me/1" in ran.stdout


def test_an_unknown_id_is_one_clear_sentence(server: ServerProcess) -> None:
    with pytest.raises(Failure) as failure:
        call(server.location, "explain", request_id="00000000-0000-0000-0000-000000000000")
    assert "too long ago" in failure.value.sentence


def test_a_refusal_belongs_to_its_account(server: ServerProcess) -> None:
    request_id = refuse(server)
    assert call(server.location, "explain", request_id=request_id, account="devstoreaccount1")
    with pytest.raises(Failure):
        call(server.location, "explain", request_id=request_id, account="other")


def test_an_account_that_does_not_exist_is_named(server: ServerProcess) -> None:
    found = call(server.location, "explain", request_id=refuse(server, f"/nobody/box/blob?{TERMS}&sig=a"))
    assert (found["account"], found["operation"]) == ("nobody", "")
