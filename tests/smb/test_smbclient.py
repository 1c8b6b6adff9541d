"""Samba's smbclient in every dialect, signed and encrypted: what it stores is what the other way to the files reads."""

import random
from collections.abc import Sequence

import pytest

from tests.smb.shares import Share
from tests.smb.smbclient import SmbClient, SmbClientFailed

PROTECTIONS = {
    "plain": ["--client-protection=off"],
    "signed": ["--client-protection=sign"],
    "encrypted": ["--client-protection=encrypt"],
}
WAYS = [
    *[("2.1", protection) for protection in ("plain", "signed")],
    *[(dialect, protection) for dialect in ("3.0", "3.0.2", "3.1.1") for protection in PROTECTIONS],
]
MEBIBYTE = 1024 * 1024


def some_bytes(count: int) -> bytes:
    return random.Random(count).randbytes(count)


def with_algorithm(kind: str, algorithm: str) -> Sequence[str]:
    return [f"--option=client smb3 {kind} algorithms={algorithm}"]


@pytest.mark.parametrize(("dialect", "protection"), WAYS)
def test_it_stores_and_reads_a_file(
    smbclient: SmbClient, share: Share, dialect: str, protection: str
) -> None:
    data = some_bytes(9 * MEBIBYTE + 123)
    (smbclient.folder / "sent").write_bytes(data)
    smbclient("put sent file.bin", "get file.bin received", dialect=dialect, options=PROTECTIONS[protection])
    assert (smbclient.folder / "received").read_bytes() == data
    assert share.content("file.bin") == data


@pytest.mark.parametrize(("dialect", "protection"), WAYS)
def test_it_lists_renames_and_deletes(
    smbclient: SmbClient, share: Share, dialect: str, protection: str
) -> None:
    (smbclient.folder / "sent").write_bytes(b"text")
    listed = smbclient(
        "mkdir Folder",
        r"put sent Folder\a.txt",
        r"put sent Folder\b.txt",
        r"rename Folder\a.txt Folder\Ä.txt",
        r"del Folder\b.txt",
        "mkdir empty",
        "rmdir empty",
        r"ls Folder\*",
        dialect=dialect,
        options=PROTECTIONS[protection],
    )
    names = [line.split()[0] for line in listed.splitlines() if line.startswith("  ")]
    assert names == [".", "..", "Ä.txt"]
    assert share.names() == ["Folder"]
    assert share.names("Folder") == ["Ä.txt"]
    assert share.content("Folder/Ä.txt") == b"text"


@pytest.mark.parametrize("cipher", ["AES-128-GCM", "AES-128-CCM", "AES-256-GCM"])
def test_it_encrypts_with_each_cipher(smbclient: SmbClient, share: Share, cipher: str) -> None:
    data = some_bytes(2 * MEBIBYTE + 1)
    (smbclient.folder / "sent").write_bytes(data)
    options = [*PROTECTIONS["encrypted"], *with_algorithm("encryption", cipher)]
    smbclient("put sent file.bin", "get file.bin received", options=options)
    assert (smbclient.folder / "received").read_bytes() == data
    assert share.content("file.bin") == data


@pytest.mark.parametrize("algorithm", ["AES-128-GMAC", "AES-128-CMAC", "HMAC-SHA256"])
def test_it_signs_with_each_algorithm(smbclient: SmbClient, share: Share, algorithm: str) -> None:
    data = some_bytes(MEBIBYTE + 1)
    (smbclient.folder / "sent").write_bytes(data)
    options = [*PROTECTIONS["signed"], *with_algorithm("signing", algorithm)]
    smbclient("put sent file.bin", "get file.bin received", options=options)
    assert (smbclient.folder / "received").read_bytes() == data
    assert share.content("file.bin") == data


def test_it_reads_what_came_the_other_way(smbclient: SmbClient, share: Share) -> None:
    data = some_bytes(3 * MEBIBYTE + 7)
    share.make_directory("inner")
    share.put("inner/file.bin", data)
    share.put("empty", b"")
    smbclient("cd inner", "get file.bin received", "cd ..", "get empty nothing")
    assert (smbclient.folder / "received").read_bytes() == data
    assert (smbclient.folder / "nothing").read_bytes() == b""


def test_it_shows_all_information(smbclient: SmbClient, share: Share) -> None:
    (smbclient.folder / "sent").write_bytes(b"12345")
    output = smbclient("put sent file.bin", "allinfo file.bin")
    assert "stream: [::$DATA], 5 bytes" in output
    assert "attributes: A (20)" in output
    for time in ("create_time", "access_time", "write_time", "change_time"):
        assert f"{time}:" in output


def test_it_changes_attributes_and_times(smbclient: SmbClient, share: Share) -> None:
    (smbclient.folder / "sent").write_bytes(b"12345")
    smbclient("put sent file.bin", "setmode file.bin +rh", "utimes file.bin -1 -1 2020:01:02-03:04:05 -1")
    output = smbclient("allinfo file.bin")
    assert "attributes: RHA (23)" in output
    assert "write_time:     Thu Jan  2 03:04:05 2020" in output
    with pytest.raises(SmbClientFailed, match=r"NT_STATUS_(CANNOT_DELETE|ACCESS_DENIED)"):
        smbclient("del file.bin")
    smbclient("setmode file.bin -rh", "del file.bin")
    assert share.names() == []


@pytest.mark.parametrize("protection", PROTECTIONS)
def test_it_lists_the_shares(smbclient: SmbClient, share: Share, protection: str) -> None:
    listed = smbclient.shares(options=PROTECTIONS[protection])
    assert {share.name, "IPC$"} <= set(listed)


def test_it_stores_a_tree_and_reads_it_again(smbclient: SmbClient, share: Share) -> None:
    expected = {
        f"folder {number}/sub/file {number}.txt": some_bytes(1000 * number) for number in range(12)
    } | {f"folder {number}/{name}": some_bytes(10) for number in range(12) for name in "abc"}
    for path, data in expected.items():
        (smbclient.folder / "sent" / path).parent.mkdir(parents=True, exist_ok=True)
        (smbclient.folder / "sent" / path).write_bytes(data)
    smbclient("recurse", "prompt", "lcd sent", "mput *")
    assert all(share.content(path) == data for path, data in expected.items())
    (smbclient.folder / "received").mkdir()
    smbclient("recurse", "prompt", "lcd received", "mget *")
    received = (smbclient.folder / "received").rglob("*")
    found = {
        str(path.relative_to(smbclient.folder / "received")): path.read_bytes()
        for path in received
        if path.is_file()
    }
    assert found == expected
    smbclient(*(f'deltree "folder {number}"' for number in range(12)))
    assert share.names() == []


def test_many_small_files_come_and_go(smbclient: SmbClient, share: Share) -> None:
    names = [f"file{number:03}" for number in range(150)]
    for name in names:
        (smbclient.folder / name).write_bytes(name.encode())
    smbclient("prompt", "mput file*")
    assert share.names() == names
    assert share.content("file042") == b"file042"
    smbclient("prompt", "del file*")
    assert share.names() == []


def test_a_wrong_password_is_refused(share: Share, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("smbclient")
    client = SmbClient(share, folder)
    secret = folder / "authentication"
    secret.write_text(secret.read_text().replace("password = ", "password = x"))
    with pytest.raises(SmbClientFailed, match="NT_STATUS_LOGON_FAILURE"):
        client("ls")


def test_a_missing_share_is_refused(smbclient: SmbClient, share: Share) -> None:
    share.name = "missing"
    with pytest.raises(SmbClientFailed, match="NT_STATUS_BAD_NETWORK_NAME"):
        smbclient("ls")


def test_an_anonymous_login_is_refused(smbclient: SmbClient) -> None:
    with pytest.raises(SmbClientFailed, match=r"NT_STATUS_(ACCESS_DENIED|LOGON_FAILURE)"):
        smbclient("ls", options=["-N", "-U%"])
