"""Samba's smbclient with what is too heavy for every build: large files, many files, a large tree; in each dialect."""

import hashlib
from pathlib import Path

from tests.smb.shares import KyaniteShare
from tests.smb.smbclient import SmbClient

from clients import installs
from clients.report import Report
from clients.workspace import Workspace, expect

WAYS = (
    ("2.1", "off"),
    ("2.1", "sign"),
    ("3.0", "sign"),
    ("3.0", "encrypt"),
    ("3.1.1", "off"),
    ("3.1.1", "sign"),
    ("3.1.1", "encrypt"),
)
MEBIBYTE = 1024 * 1024
LARGE_BYTES = 256 * MEBIBYTE
SMALL_FILES = 1000
DIRECTORIES, FILES_IN_EACH = 100, 100


def suite(workspace: Workspace, report: Report) -> None:
    if not workspace.offers("smb"):
        report.not_there("smb")
        return
    installs.samba()
    for dialect, protection in WAYS:
        client = new_client(workspace)
        title = f"SMB {dialect}, protection {protection}"
        with report.check(f"{title}: a file of 256 MiB"):
            one_large_file(client, dialect, protection)
        with report.check(f"{title}: {SMALL_FILES} small files"):
            many_small_files(client, dialect, protection)
    with report.check(f"a tree of {DIRECTORIES * FILES_IN_EACH} files"):
        large_tree(new_client(workspace))


def new_client(workspace: Workspace) -> SmbClient:
    """A client on a share of its own."""
    share = KyaniteShare(workspace.server, workspace.new_name())
    folder = workspace.folder / share.name
    folder.mkdir()
    return SmbClient(share, folder)


def one_large_file(client: SmbClient, dialect: str, protection: str) -> None:
    """Put, get, list, rename, delete; REST reads the same bytes."""
    options = [f"--client-protection={protection}"]
    piece = hashlib.shake_128(f"{dialect} {protection}".encode()).digest(MEBIBYTE)
    with (client.folder / "sent").open("wb") as file:
        for number in range(LARGE_BYTES // MEBIBYTE):
            file.write(number.to_bytes(4, "big") + piece[4:])
    expected = digest_of(client.folder / "sent")
    client("put sent large", "get large received", "rename large renamed", dialect=dialect, options=options)
    expect(digest_of(client.folder / "received"), expected, "the bytes that came back")
    expect(hashlib.sha256(client.share.content("renamed")).hexdigest(), expected, "the bytes that REST reads")
    listed = client("ls", "del renamed", dialect=dialect, options=options)
    expect(str(LARGE_BYTES) in listed, True, "the listed length")
    expect(client.share.names(), [], "names after the delete")
    (client.folder / "sent").unlink()
    (client.folder / "received").unlink()


def digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def many_small_files(client: SmbClient, dialect: str, protection: str) -> None:
    options = ["--client-protection=" + protection]
    names = [f"file{number:04}" for number in range(SMALL_FILES)]
    for name in names:
        (client.folder / name).write_bytes(name.encode() * 100)
    client("prompt", "mput file*", dialect=dialect, options=options)
    expect(client.share.names(), names, "names after the put")
    for name in names:
        (client.folder / name).unlink()
    client("prompt", "mget file*", dialect=dialect, options=options)
    received = [(client.folder / name).read_bytes() for name in names]
    expect(received == [name.encode() * 100 for name in names], True, "the contents that came back")
    expect(client.share.content(names[7]), names[7].encode() * 100, "the content that REST reads")
    client("prompt", "del file*", dialect=dialect, options=options)
    expect(client.share.names(), [], "names after the delete")
    for name in names:
        (client.folder / name).unlink()


def large_tree(client: SmbClient) -> None:
    paths = [
        Path(f"directory {number:03}") / f"file {file:03}"
        for number in range(DIRECTORIES)
        for file in range(FILES_IN_EACH)
    ]
    for path in paths:
        (client.folder / path).parent.mkdir(exist_ok=True)
        (client.folder / path).write_bytes(str(path).encode())
    client("recurse", "prompt", "mput directory*")
    directories = client.share.names()
    expect(len(directories), DIRECTORIES, "directories")
    found = [Path(directory) / name for directory in directories for name in client.share.names(directory)]
    expect(found, paths, "paths")
    listed = client("recurse", "ls")
    expect(listed.count("file "), len(paths), "files that are listed")
    expect(client.share.content(str(paths[4321])), str(paths[4321]).encode(), "the content that REST reads")
    client(*(f'deltree "{directory}"' for directory in directories))
    expect(client.share.names(), [], "names after the delete")
