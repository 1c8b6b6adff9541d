"""``kyanite ls``, ``cp``, ``cat`` and ``rm`` against a real server, checked with the official clients."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from azure.storage.blob import BlobServiceClient, ContainerClient
from azure.storage.fileshare import ShareClient, ShareServiceClient

from tests.server.terminal.commands import failure, output, run
from tests.server.terminal.terminal import OnTerminal
from tests.server_process import ServerProcess

ACCOUNT = "devstoreaccount1"
BIG = os.urandom(17 * 1024 * 1024 + 5)
"""More than two chunks of a blob."""


@pytest.fixture
def container(server: ServerProcess, request: pytest.FixtureRequest) -> Iterator[ContainerClient]:
    with BlobServiceClient.from_connection_string(server.connection_string) as service:
        made = service.create_container(f"c{abs(hash(request.node.name)):x}")
        yield made
        if made.exists():
            made.delete_container()


@pytest.fixture
def share(server: ServerProcess, request: pytest.FixtureRequest) -> Iterator[ShareClient]:
    with ShareServiceClient.from_connection_string(server.connection_string) as service:
        made = service.create_share(f"s{abs(hash(request.node.name)):x}")
        yield made
        if made.get_share_properties():
            made.delete_share()


def in_container(container: ContainerClient, name: str = "") -> str:
    return f"blob://{ACCOUNT}/{container.container_name}" + (f"/{name}" if name else "")


def in_share(share: ShareClient, name: str = "") -> str:
    return f"file://{ACCOUNT}/{share.share_name}" + (f"/{name}" if name else "")


def content(container: ContainerClient, name: str) -> bytes:
    return container.download_blob(name).readall()


def test_lists(server: ServerProcess, container: ContainerClient) -> None:
    for name in ("a", "dir/b c", "dir/ü", "dir/sub/d", "directory"):
        container.upload_blob(name, b"12")
    assert output(server, "ls").split() == [ACCOUNT, "other"]
    assert f"{in_container(container)}/\n" in output(server, "ls", f"blob://{ACCOUNT}")
    top = output(server, "ls", in_container(container)).splitlines()
    assert sorted(top) == [in_container(container, name) for name in ("a", "dir/", "directory")]
    inside = [in_container(container, name) for name in ("dir/b c", "dir/sub/", "dir/ü")]
    assert sorted(output(server, "ls", in_container(container, "dir/")).splitlines()) == inside
    assert sorted(output(server, "ls", in_container(container, "dir/sub")).splitlines()) == [
        in_container(container, "dir/sub/d")
    ]
    everything = output(server, "ls", "-r", in_container(container)).splitlines()
    assert len(everything) == 5
    assert in_container(container, "dir/sub/d") in everything
    long = output(server, "ls", "-l", in_container(container, "a"))
    assert long.split()[0] == "2"
    assert " GMT  blob://" in long
    line = json.loads(output(server, "ls", "--json", in_container(container, "a")))
    assert (line["path"], line["size"], line["directory"]) == (in_container(container, "a"), 2, False)


def test_a_file_to_a_blob_and_back(server: ServerProcess, container: ContainerClient, tmp_path: Path) -> None:
    source = tmp_path / "a b.png"
    source.write_bytes(b"png")
    output(server, "cp", str(source), in_container(container))
    assert content(container, "a b.png") == b"png"
    kind = container.get_blob_client("a b.png").get_blob_properties().content_settings.content_type
    assert kind == "image/png"
    output(server, "cp", in_container(container, "a b.png"), str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == b"png"
    (tmp_path / "into").mkdir()
    output(server, "cp", in_container(container, "a b.png"), str(tmp_path / "into"))
    assert os.listdir(tmp_path / "into") == ["a b.png"]


def test_large_ones_go_in_blocks(server: ServerProcess, container: ContainerClient, tmp_path: Path) -> None:
    source = tmp_path / "big"
    source.write_bytes(BIG)
    output(server, "cp", str(source), in_container(container, "big"))
    assert content(container, "big") == BIG
    committed, uncommitted = container.get_blob_client("big").get_block_list("all")
    assert (len(committed), len(uncommitted)) == (3, 0)
    output(server, "cp", "--parallel", "2", in_container(container, "big"), str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == BIG
    assert sorted(os.listdir(tmp_path)) == ["back", "big"]


def test_standard_input_and_output(server: ServerProcess, container: ContainerClient) -> None:
    output(server, "cp", "-", in_container(container, "text"), text="hello\n")
    assert content(container, "text") == b"hello\n"
    assert output(server, "cp", in_container(container, "text"), "-") == "hello\n"
    assert output(server, "cat", *[in_container(container, "text")] * 2) == "hello\nhello\n"
    done = run(server, "cat", in_container(container, "none"))
    assert (done.code, done.stdout) == (1, "")
    assert "BlobNotFound" in done.stderr


def test_a_tree_to_blobs_to_files_and_back(
    server: ServerProcess, container: ContainerClient, share: ShareClient, tmp_path: Path
) -> None:
    names = [f"{folder}{number}" for folder in ("", "x/", "x/y ü/") for number in range(4)]
    for name in names:
        path = tmp_path / "from" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
    output(server, "cp", "-r", str(tmp_path / "from"), in_container(container, "tree"))
    assert sorted(container.list_blob_names()) == sorted(f"tree/{name}" for name in names)
    output(server, "cp", "-r", in_container(container, "tree"), in_share(share, "copy/here"))
    assert share.get_file_client("copy/here/x/y ü/3").download_file().readall() == "x/y ü/3".encode()
    output(server, "cp", "-r", in_share(share, "copy/here/"), str(tmp_path / "back"))
    for name in names:
        assert (tmp_path / "back" / name).read_bytes() == name.encode()
    listed = output(server, "ls", "-r", in_share(share)).splitlines()
    assert sorted(listed) == sorted(in_share(share, f"copy/here/{name}") for name in names)
    assert sorted(output(server, "ls", in_share(share, "copy/here")).splitlines())[-1].endswith(
        "copy/here/x/"
    )


def test_large_files_of_a_share(server: ServerProcess, share: ShareClient, tmp_path: Path) -> None:
    source = tmp_path / "big"
    source.write_bytes(BIG[: 9 * 1024 * 1024 + 1])
    output(server, "cp", str(source), in_share(share, "dir/big"))
    assert share.get_file_client("dir/big").download_file().readall() == source.read_bytes()
    output(server, "cp", in_share(share, "dir/big"), str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == source.read_bytes()


def test_between_accounts(server: ServerProcess, container: ContainerClient) -> None:
    container.upload_blob("a", b"text", metadata={"kept": "yes"})
    output(server, "cp", "--create", in_container(container, "a"), "blob://other/made/b")
    assert output(server, "cat", "blob://other/made/b") == "text"
    output(server, "rm", "-r", "blob://other/made")
    assert output(server, "ls", "blob://other") == ""


def test_rm(server: ServerProcess, container: ContainerClient, share: ShareClient) -> None:
    for name in ("a", "dir", "dir/b", "dir/c/d", "directory"):
        container.upload_blob(name, b"")
    container.get_blob_client("dir/b").create_snapshot()
    output(server, "rm", in_container(container, "a"))
    output(server, "rm", "-r", in_container(container, "dir"))
    assert list(container.list_blob_names()) == ["directory"]
    output(server, "rm", "-r", in_container(container))
    assert not container.exists()
    share.create_directory("x")
    share.create_directory("x/y")
    for name in ("top", "x/1", "x/y/2"):
        share.get_file_client(name).upload_file(b"1")
    output(server, "rm", in_share(share, "top"))
    output(server, "rm", "-r", in_share(share, "x"))
    assert list(share.list_directories_and_files()) == []


def test_names_that_lead_elsewhere(server: ServerProcess, container: ContainerClient, tmp_path: Path) -> None:
    """A backslash of a client is a slash on the server. The exit code says that some are missing."""
    with BlobServiceClient.from_connection_string(server.connection_string) as service:
        for name in ("good", "a//b", "x\\..\\y"):
            service.get_blob_client(container.container_name, name).upload_blob(b"1")
    done = run(server, "cp", "-r", in_container(container), str(tmp_path / "into"))
    assert done.code == 1
    assert "a//b has a name that cannot be one of a file here." in done.stderr
    assert done.stderr.endswith("kyanite: 2 could not be copied.\n")
    assert "/x/../y has a name that cannot be one of a file here." in done.stderr
    assert os.listdir(tmp_path / "into") == ["good"]
    assert os.listdir(tmp_path) == ["into"]


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["ls", "ftp://x"], 2, "begins with blob://, file://"),
        (["ls", "photos"], 2, "names nothing that is stored"),
        (["ls", "file:///etc"], 2, "names no account. A path of this machine is written without file://."),
        (["ls", "blob://nowhere"], 2, "has no account 'nowhere'"),
        (["ls", "blob://devstoreaccount1/nowhere"], 1, "ContainerNotFound"),
        (["cp", "a", "b"], 2, "Neither is on the server"),
        (["cp", "nowhere", "blob://devstoreaccount1/c"], 1, "No such file or directory: nowhere."),
        (["cp", "-r", "blob://devstoreaccount1/c", "blob://devstoreaccount1/c/d"], 2, "would never end"),
        (["cp", "blob://devstoreaccount1/c/", "x"], 2, "is not one blob or file"),
        (["cp", "-", "file://devstoreaccount1/s/x"], 2, "Standard input can be copied to one blob"),
        (["cat", "blob://devstoreaccount1/c"], 2, "names no blob or file"),
        (["rm", "blob://devstoreaccount1/c"], 2, "-r deletes all that is in it"),
        (["rm", "-r", "blob://devstoreaccount1"], 2, "'kyanite account remove' removes accounts"),
    ],
)
def test_what_cannot_be(server: ServerProcess, words: list[str], code: int, says: str) -> None:
    assert says in failure(server, *words, code=code)


def test_a_wrong_key(server: ServerProcess) -> None:
    assert "AuthenticationFailed" in failure(server, "ls", f"blob://{ACCOUNT}", KYANITE_ACCOUNT_KEY="a2V5")


def test_a_bar_on_a_terminal(server: ServerProcess, container: ContainerClient, tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(BIG)
    words = ("cp", str(tmp_path / "big"), in_container(container), "--location", str(server.location))
    with OnTerminal(*words) as screen:
        assert screen.code == 0
        assert "big" in screen.text
        assert "17.0/17.0 MiB" in screen.text
