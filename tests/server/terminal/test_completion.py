"""Completion, as bash does it."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from azure.storage.blob import BlobServiceClient
from azure.storage.fileshare import ShareServiceClient

from tests.server.terminal.commands import output
from tests.server.terminal.terminal import environment
from tests.server_process import ServerProcess

_PROGRAM = """\
kyanite() {{ "{python}" -m kyanite.server.cli "$@"; }}
env() {{ local name=${{@: -1}}; set -- "${{@:1:$#-1}}"; (export "$@"; "$name"); }}
eval "$(kyanite completion bash)"
compopt() {{ echo "compopt $*" >&2; }}
COMP_LINE=$1 COMP_POINT=${{#1}}
_kyanite_completion kyanite
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def completed(server: ServerProcess, line: str) -> tuple[list[str], str]:
    """What bash offers for a line, and which of its own ways it takes as well."""
    program = _PROGRAM.format(python=sys.executable)
    done = subprocess.run(
        ["bash", "-c", program, "bash", line],
        capture_output=True,
        text=True,
        check=True,
        env=environment(KYANITE_LOCATION=str(server.location)),
    )
    return done.stdout.split(), done.stderr.strip()


@pytest.fixture(scope="module", autouse=True)
def _stored(server: ServerProcess) -> Iterator[None]:
    with BlobServiceClient.from_connection_string(server.connection_string) as service:
        container = service.create_container("completed")
        container.upload_blob("dir/cat", b"")
        container.upload_blob("dog", b"")
        with ShareServiceClient.from_connection_string(server.connection_string) as shares:
            share = shares.create_share("finished")
            share.create_directory("dir")
            share.get_file_client("dir/file").upload_file(b"")
            yield
            share.delete_share()
        container.delete_container()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("kyanite se", ["serve"]),
        ("kyanite account rot", ["rotate-key"]),
        ("kyanite serve --smb-e", ["--smb-encryption"]),
        ("kyanite serve --log-format ", ["auto", "json", "text"]),
        ("kyanite sas user", ["user-delegation"]),
        ("kyanite connection-string o", ["other"]),
        ("kyanite ls blob://dev", ["//devstoreaccount1/"]),
        ("kyanite ls blob://devstoreaccount1/comp", ["//devstoreaccount1/completed/"]),
        ("kyanite cat blob://devstoreaccount1/completed/d", [
            "//devstoreaccount1/completed/dir/", "//devstoreaccount1/completed/dog",
        ]),
        ("kyanite rm file://devstoreaccount1/finished/dir/f", ["//devstoreaccount1/finished/dir/file"]),
        ("kyanite ls blob://nowhere/", []),
    ],
)  # fmt: skip
def test_what_bash_offers(server: ServerProcess, line: str, offered: list[str]) -> None:
    assert completed(server, line)[0] == offered


def test_local_paths_are_left_to_the_shell(server: ServerProcess) -> None:
    assert completed(server, "kyanite cp ./ca") == ([], "compopt -o default")
    assert completed(server, "kyanite cp blo")[0] == ["blob://"]


def test_without_a_server(server: ServerProcess, tmp_path: Path) -> None:
    assert completed(server, f"kyanite stats --location {tmp_path} --account ") == ([], "")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_scripts_of_other_shells(server: ServerProcess, shell: str) -> None:
    assert f"_KYANITE_COMPLETE={shell}_complete" in output(server, "completion", shell)
