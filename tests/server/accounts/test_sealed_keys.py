"""Account keys at rest, and the file that they are encrypted with."""

import stat
from pathlib import Path

import pytest

from kyanite.server.accounts.sealed_keys import KeyFile, Sealer
from kyanite.server.failures import Failure

SECRET, OTHER = b"s" * 32, b"t" * 32


def test_a_key_opens_with_the_same_secret_and_for_the_same_account_only() -> None:
    sealed = Sealer(SECRET).seal("alpha", b"a key")
    assert b"a key" not in sealed
    assert sealed != Sealer(SECRET).seal("alpha", b"a key")
    assert Sealer(SECRET).open("alpha", sealed) == b"a key"
    assert Sealer(SECRET).open("beta2", sealed) is None
    assert Sealer(OTHER).open("alpha", sealed) is None
    for damaged in (b"", sealed[:5], sealed[:-1], sealed[:-1] + bytes((sealed[-1] ^ 1,))):
        assert Sealer(SECRET).open("alpha", damaged) is None


def test_the_first_key_makes_the_file(tmp_path: Path) -> None:
    path = tmp_path / "file.key"
    sealer = KeyFile(path, may_make=True).sealer_for_new_key([])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    sealed = sealer.seal("alpha", b"a key")
    assert KeyFile(path, may_make=True).sealer().open("alpha", sealed) == b"a key"
    again = KeyFile(path, may_make=True).sealer_for_new_key([("alpha", sealed)])
    assert again.open("alpha", sealed) == b"a key"
    assert [each.name for each in tmp_path.iterdir()] == ["file.key"]


def test_a_file_that_is_there_is_used(tmp_path: Path) -> None:
    path = tmp_path / "file.key"
    path.write_bytes(SECRET + b"\n")
    sealed = KeyFile(path, may_make=True).sealer_for_new_key([]).seal("alpha", b"a key")
    assert Sealer(SECRET).open("alpha", sealed) == b"a key"
    assert path.read_bytes() == SECRET + b"\n"


def test_a_lost_file_is_never_made_again(tmp_path: Path) -> None:
    sealed = Sealer(SECRET).seal("alpha", b"a key")
    path = tmp_path / "file.key"
    for key_file, present in (
        (KeyFile(path, may_make=True), [("alpha", sealed)]),
        (KeyFile(path, may_make=False), []),
    ):
        with pytest.raises(Failure) as failed:
            key_file.sealer_for_new_key(present)
        assert failed.value.sentence == (
            f"The key file {path} is missing, and without it the keys of accounts in the store cannot be read."
        )
        assert not path.exists()


def test_another_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file.key"
    path.write_bytes(OTHER)
    with pytest.raises(Failure, match=r"is not the one that the key of account alpha was stored with\."):
        KeyFile(path, may_make=True).sealer_for_new_key([("alpha", Sealer(SECRET).seal("alpha", b"a key"))])


@pytest.mark.parametrize("content", [b"", b"short", b" " * 100, b"x" * 31 + b"\n"])
def test_a_short_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file.key"
    path.write_bytes(content)
    with pytest.raises(Failure, match="too short"):
        KeyFile(path, may_make=True).sealer()


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="Cannot read the key file"):
        KeyFile(tmp_path, may_make=True).sealer()
