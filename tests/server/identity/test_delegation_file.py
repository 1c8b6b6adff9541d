"""The file that user delegation keys depend on: made once, private, and replaced by the operator's."""

import stat
from pathlib import Path

import pytest

from kyanite.server.failures import Failure
from kyanite.server.identity.delegation_file import NAME, load_or_make, secret_of_account


def test_it_is_made_once_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    secret = load_or_make(tmp_path, None)
    assert len(secret) == 32
    assert load_or_make(tmp_path, None) == secret
    path = tmp_path / "identity" / NAME
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert secret not in path.read_bytes()
    path.unlink()
    assert load_or_make(tmp_path, None) != secret


def test_the_file_of_the_operator(tmp_path: Path) -> None:
    given = tmp_path / "given"
    with pytest.raises(Failure, match="Cannot read the key file"):
        load_or_make(tmp_path, given)
    given.write_bytes(b"k" * 44 + b"\n")
    secret = load_or_make(tmp_path, given)
    given.write_bytes(b"k" * 44)
    assert load_or_make(tmp_path, given) == secret
    assert not (tmp_path / "identity").exists()


def test_each_account_and_each_part_counts() -> None:
    found = {
        secret_of_account(secret, account, stored)
        for secret in (b"a", b"b")
        for account in ("one", "two")
        for stored in (b"x", b"y")
    }
    assert len(found) == 8
