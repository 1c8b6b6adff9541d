"""``kyanite container …`` against a running server."""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import ContainerClient

from tests.server_process import ServerProcess


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess("--workers", "2", location=tmp_path_factory.mktemp("containers")) as started:
        yield started


def run(server: ServerProcess, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kyanite.server.cli", "container", *words]
    return subprocess.run(
        [*command, "--location", str(server.location)], capture_output=True, text=True, check=False
    )


def printed(server: ServerProcess, *words: str) -> Any:
    ended = run(server, *words, "--json")
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_every_command(server: ServerProcess) -> None:
    box = (server.account, "box")
    assert printed(server, "create", *box) is None
    assert printed(server, "immutability", "set", *box, "--days", "3")["policy_days"] == 3
    assert (
        printed(server, "immutability", "set", *box, "--days", "4", "--append-writes", "append")[
            "policy_append_writes"
        ]
        == "append"
    )
    assert printed(server, "immutability", "delete", *box)["policy_days"] is None
    held = printed(server, "legal-hold", "set", *box, "case1", "case2", "--append-writes")
    assert (held["legal_hold_tags"], held["legal_hold_append_writes"]) == (["case1", "case2"], True)
    client = ContainerClient.from_container_url(f"{server.endpoints['blob']}/box", server.account_key)
    with client:
        client.upload_blob("blob", b"data")
        with pytest.raises(HttpResponseError, match="legal holds"):
            client.delete_blob("blob")
        assert printed(server, "legal-hold", "clear", *box, "case1", "case2")["legal_hold_tags"] == []
        client.delete_blob("blob")
    printed(server, "immutability", "set", *box, "--days", "3")
    assert printed(server, "immutability", "lock", *box)["policy_state"] == "Locked"
    assert printed(server, "immutability", "extend", *box, "--days", "5")["policy_extensions"] == 1
    text = run(server, "immutability", "show", *box).stdout
    assert "policy_days: 5\npolicy_state: Locked\n" in text
    ended = run(server, "immutability", "delete", *box)
    assert (ended.returncode, ended.stderr) == (1, "kyanite: The policy is locked: it cannot be deleted.\n")
    assert printed(server, "delete", *box) is None


@pytest.mark.parametrize(
    ("words", "says", "exit_code"),
    [
        (
            ["delete", "devstoreaccount1", "none"],
            "ContainerNotFound: The specified container does not exist.",
            1,
        ),
        (["immutability", "show", "nobody", "box"], "There is no account 'nobody'.", 1),
        (["immutability", "set", "devstoreaccount1", "box"], "Missing option '--days'", 2),
        (
            ["create", "devstoreaccount1", "kept", "--version-level-immutability"],
            "BlobVersioningNotEnabled: ",
            1,
        ),
        (["set", "devstoreaccount1", "box"], "Missing option '--version-level-immutability'", 2),
        (["legal-hold", "set", "devstoreaccount1", "box"], "Missing argument 'TAGS...'", 2),
    ],
)
def test_refusals(server: ServerProcess, words: list[str], says: str, exit_code: int) -> None:
    ended = run(server, *words)
    assert says in ended.stderr
    assert ended.returncode == exit_code
