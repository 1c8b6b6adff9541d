"""The Python client smbprotocol: its module of file functions, in every dialect, and each cipher on single messages."""

import io
import os
import random
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import smbclient
import smbclient.path
import smbclient.shutil
from smbprotocol.connection import Ciphers, SigningAlgorithms
from smbprotocol.exceptions import LogonFailure, SMBOSError

from tests.smb.messages import DIALECTS, NON_DIRECTORY, OVERWRITE_IF, READ_WRITE, connected
from tests.smb.programs import HOST, Login
from tests.smb.shares import Share

OBJECT_NAME_NOT_FOUND, OBJECT_NAME_COLLISION = 0xC0000034, 0xC0000035
OBJECT_PATH_NOT_FOUND, DIRECTORY_NOT_EMPTY = 0xC000003A, 0xC0000101


@contextmanager
def failing(status: int) -> Iterator[None]:
    """A function of ``smbclient`` raises an error with this status."""
    with pytest.raises(SMBOSError) as caught:
        yield
    assert hex(caught.value.ntstatus) == hex(status)


class Files:
    """The functions of ``smbclient`` for one share, through connections of their own."""

    def __init__(self, share: Share, *, encrypted: bool = False) -> None:
        self._cache: dict[str, Any] = {}
        self._options = {
            "username": share.login.user,
            "password": share.login.password,
            "port": share.login.port,
            "connection_cache": self._cache,
        }
        self.root = rf"\\{HOST}\{share.name}"
        smbclient.register_session(HOST, **self._options, encrypt=encrypted)

    def path(self, *names: str) -> str:
        return "\\".join([self.root, *names])

    def __getattr__(self, name: str) -> Any:
        function = getattr(smbclient, name)
        return lambda *arguments, **options: function(*arguments, **self._options, **options)

    def is_there(self, path: str) -> bool:
        return bool(smbclient.path.exists(path, **self._options))

    def copy(self, source: str, target: str) -> None:
        smbclient.shutil.copyfile(source, target, **self._options)

    def remove_tree(self, path: str) -> None:
        smbclient.shutil.rmtree(path, **self._options)

    def close(self) -> None:
        smbclient.reset_connection_cache(connection_cache=self._cache)


@pytest.fixture(params=[False, True], ids=["signed", "encrypted"])
def files(request: pytest.FixtureRequest, share: Share) -> Iterator[Files]:
    made = Files(share, encrypted=request.param)
    yield made
    made.close()


def some_bytes(count: int) -> bytes:
    return random.Random(count).randbytes(count)


def test_files_are_written_and_read(files: Files, share: Share) -> None:
    data = some_bytes(2_500_000)
    with files.open_file(files.path("file.bin"), mode="wb") as file:
        file.write(data)
    with files.open_file(files.path("FILE.BIN"), mode="rb") as file:
        assert file.read() == data
        file.seek(-10, io.SEEK_END)
        assert file.read() == data[-10:]
    assert share.content("file.bin") == data


def test_files_are_appended_to_and_changed_in_the_middle(files: Files, share: Share) -> None:
    share.put("file.txt", b"one two three")
    with files.open_file(files.path("file.txt"), mode="ab") as file:
        file.write(b" four")
    with files.open_file(files.path("file.txt"), mode="r+b") as file:
        file.seek(4)
        file.write(b"TWO")
        file.truncate(13)
    assert share.content("file.txt") == b"one TWO three"


def test_a_file_made_exclusively_is_made_once(files: Files) -> None:
    files.open_file(files.path("file"), mode="xb").close()
    with failing(OBJECT_NAME_COLLISION):
        files.open_file(files.path("file"), mode="xb")


def test_directories_are_made_listed_and_removed(files: Files, share: Share) -> None:
    files.makedirs(files.path("a", "b", "c"))
    share.put("a/b/file.txt", b"12345")
    assert sorted(files.listdir(files.path("a", "b"))) == ["c", "file.txt"]
    entries = {entry.name: entry for entry in files.scandir(files.path("a", "b"))}
    assert entries["c"].is_dir()
    assert entries["file.txt"].is_file()
    assert entries["file.txt"].smb_info.end_of_file == 5
    assert [name for name, _, _ in files.walk(files.path("a"))] == [
        files.path("a"),
        files.path("a", "b"),
        files.path("a", "b", "c"),
    ]
    with failing(DIRECTORY_NOT_EMPTY):
        files.rmdir(files.path("a", "b"))
    files.remove_tree(files.path("a"))
    assert share.names() == []


def test_names_are_found_by_pattern(files: Files, share: Share) -> None:
    for name in ("a.txt", "b.txt", "c.bin"):
        share.put(name, b"")
    assert sorted(files.listdir(files.root, search_pattern="*.txt")) == ["a.txt", "b.txt"]
    assert files.listdir(files.root, search_pattern="*.none") == []


def test_a_file_is_renamed_and_replaced(files: Files, share: Share) -> None:
    share.put("old", b"first")
    share.put("other", b"second")
    files.rename(files.path("old"), files.path("New"))
    assert share.names() == ["New", "other"]
    with failing(OBJECT_NAME_COLLISION):
        files.rename(files.path("New"), files.path("other"))
    files.replace(files.path("New"), files.path("other"))
    assert share.names() == ["other"]
    assert share.content("other") == b"first"


def test_a_file_is_removed(files: Files, share: Share) -> None:
    share.put("file", b"")
    files.remove(files.path("file"))
    assert share.names() == []
    with failing(OBJECT_NAME_NOT_FOUND):
        files.remove(files.path("file"))


def test_a_missing_path_differs_from_a_missing_name(files: Files) -> None:
    assert not files.is_there(files.path("missing"))
    with failing(OBJECT_PATH_NOT_FOUND):
        files.open_file(files.path("missing", "file"), mode="rb")


def test_information_of_files_and_directories(files: Files, share: Share) -> None:
    share.put("file", b"12345")
    share.make_directory("directory")
    found = files.stat(files.path("file"))
    assert found.st_size == 5
    assert stat.S_ISREG(found.st_mode)
    assert found.st_nlink == 1
    assert stat.S_ISDIR(files.stat(files.path("directory")).st_mode)
    assert found.st_ino != files.stat(files.path("directory")).st_ino


def test_times_are_set_and_kept(files: Files, share: Share) -> None:
    share.put("file", b"")
    files.utime(files.path("file"), times=(1_500_000_000, 1_600_000_000))
    assert files.stat(files.path("file")).st_mtime == 1_600_000_000


def test_a_file_is_cut_and_grown(files: Files, share: Share) -> None:
    share.put("file", b"12345")
    files.truncate(files.path("file"), 2)
    assert share.content("file") == b"12"
    files.truncate(files.path("file"), 4)
    assert share.content("file") == b"12\0\0"


def test_the_volume_has_a_size(files: Files) -> None:
    volume = files.stat_volume(files.root)
    assert 0 < volume.actual_available_size <= volume.total_size


def test_the_server_copies(files: Files, share: Share) -> None:
    data = some_bytes(3_000_000)
    share.put("source", data)
    files.copy(files.path("source"), files.path("target"))
    assert share.content("target") == data


def test_a_tree_is_copied_in(files: Files, share: Share, tmp_path: Path) -> None:
    (tmp_path / "in" / "ner").mkdir(parents=True)
    for number in range(20):
        (tmp_path / "in" / "ner" / f"{number}.txt").write_bytes(some_bytes(number))
    files.makedirs(files.path("in", "ner"))
    for path in (tmp_path / "in" / "ner").iterdir():
        with (
            files.open_file(files.path("in", "ner", path.name), mode="wb") as file,
            path.open("rb") as source,
        ):
            shutil.copyfileobj(source, file)
    assert all(share.content(f"in/ner/{number}.txt") == some_bytes(number) for number in range(20))


def test_a_wrong_password_is_refused(share: Share) -> None:
    wrong = Login(share.login.port, share.login.user, share.login.password + "x")
    with pytest.raises(LogonFailure), connected(wrong, share.name):
        pass


@pytest.mark.parametrize(
    ("dialect", "is_encrypted"),
    [
        *[(dialect, False) for dialect in DIALECTS],
        *[(dialect, True) for dialect in DIALECTS if dialect != "2.1"],
    ],
)
def test_each_dialect(share: Share, dialect: str, is_encrypted: bool) -> None:
    with connected(share.login, share.name, dialect=dialect, encrypted=is_encrypted) as client:
        assert client.connection.dialect == DIALECTS[dialect]
        _check_contents(client, share)


@pytest.mark.parametrize(
    "cipher", [Ciphers.AES_128_CCM, Ciphers.AES_128_GCM, Ciphers.AES_256_GCM], ids=["ccm", "gcm", "gcm256"]
)
def test_each_cipher(share: Share, cipher: int) -> None:
    with connected(share.login, share.name, encrypted=True, ciphers=[cipher]) as client:
        assert client.connection.cipher_id == cipher
        _check_contents(client, share)


@pytest.mark.parametrize(
    "algorithm",
    [SigningAlgorithms.HMAC_SHA256, SigningAlgorithms.AES_CMAC, SigningAlgorithms.AES_GMAC],
    ids=["hmac", "cmac", "gmac"],
)
def test_each_signing_algorithm(share: Share, algorithm: int) -> None:
    with connected(share.login, share.name, signing=[algorithm]) as client:
        assert client.connection.signing_algorithm_id == algorithm
        _check_contents(client, share)


def _check_contents(client: Any, share: Share) -> None:
    data = os.urandom(200_001)
    opened = client.create("file", access=READ_WRITE, disposition=OVERWRITE_IF, options=NON_DIRECTORY)
    assert client.write(opened, data) == len(data)
    assert client.read(opened, 1, len(data)) == data[1:]
    assert client.close(opened)["end_of_file"].get_value() == len(data)
    assert share.content("file") == data
