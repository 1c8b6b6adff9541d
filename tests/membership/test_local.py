"""Membership by lock files: the suite, and processes that die at any moment."""

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from kyanite.membership.api import Membership
from kyanite.membership.local import LocalMembership
from tests.membership.suite import Join, MembershipSuite

PROGRAM = """
import sys
from pathlib import Path
from kyanite.membership.local import LocalMembership
print(LocalMembership(Path(sys.argv[1])).id.hex(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "store" / "owners"


@pytest.fixture
def join(folder: Path) -> Iterator[Join]:
    members: list[LocalMembership] = []

    def join_folder() -> Membership:
        members.append(LocalMembership(folder))
        return members[-1]

    yield join_folder
    for member in members:
        with suppress(OSError):  # The test has closed it.
            member.close()


class TestLocalMembership(MembershipSuite):
    pass


class Process:
    """Another process that has joined."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.id = bytes.fromhex(self._process.stdout.readline().strip())

    def end(self, number: signal.Signals) -> None:
        self._process.send_signal(number)
        self._process.communicate(timeout=30)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_process_that_was_ended_is_dead(folder: Path, join: Join, number: signal.Signals) -> None:
    member, process = join(), Process(folder)
    assert member.is_alive(process.id)
    assert member.dead_owners() == []
    process.end(number)
    assert not member.is_alive(process.id)
    assert member.dead_owners() == [process.id]


class Crash(Exception):
    pass


@pytest.mark.parametrize("step", ["flock", "rename"])
def test_a_process_that_dies_while_it_joins_leaves_no_owner(
    folder: Path, join: Join, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """It has written nothing under its id yet, so there is nothing to clean up."""

    def crash(*_: object) -> None:
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(fcntl if step == "flock" else Path, step, crash)
        with pytest.raises(Crash):
            LocalMembership(folder)
    (left,) = folder.iterdir()
    member = join()
    assert not member.is_alive(bytes.fromhex(left.stem))
    assert member.dead_owners() == []


def test_a_member_is_never_seen_dead_while_it_joins(
    folder: Path, join: Join, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, lock = join(), fcntl.flock
    dead: list[list[bytes]] = []

    def list_and_lock(fd: int, operation: int) -> None:
        if operation == fcntl.LOCK_EX:
            dead.append(other.dead_owners())
        lock(fd, operation)

    monkeypatch.setattr(fcntl, "flock", list_and_lock)
    LocalMembership(folder).close()
    assert dead == [[]]


def test_an_owner_is_on_the_disk_before_it_can_own_anything(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[str, list[str]]] = []

    def fsync(fd: int) -> None:
        path = os.readlink(f"/proc/self/fd/{fd}")
        synced.append((path, sorted(os.listdir(path))))

    monkeypatch.setattr(os, "fsync", fsync)
    member = LocalMembership(folder)
    assert synced == [
        (str(folder.parents[1]), ["store"]),
        (str(folder.parent), ["owners"]),
        (str(folder), [member.id.hex()]),
    ]
    member.close()
