"""``--smb-durability flush``: what was answered is seen at once, through REST and other workers all the same."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server_process import ServerProcess
from tests.smb.messages import GENERIC_READ, OPEN, OVERWRITE_IF, READ_WRITE, Client, connected
from tests.smb.shares import KyaniteShare

ROUNDS = 25


@pytest.fixture
def share(tmp_path: Path) -> Iterator[KyaniteShare]:
    options = ("--workers", "2", "--smb-durability", "flush")
    with ServerProcess(*options, location=tmp_path / "store") as server:
        yield KyaniteShare(server, "flush")
        assert not [line for line in server.log if line.get("level") in {"error", "critical"}]


class Writer:
    """A client that appends one piece after the other, until it is told to stop."""

    def __init__(self, share: KyaniteShare, size: int) -> None:
        self.size = size
        self.answered = 0
        self._share = share
        self._is_stopped = False
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Writer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_stopped = True
        self._thread.join()

    def piece(self, offset: int) -> bytes:
        return bytes([offset // self.size % 251]) * self.size

    def _run(self) -> None:
        with connected(self._share.login, self._share.name) as client:
            opened = client.create("f", access=READ_WRITE, disposition=OVERWRITE_IF)
            while not self._is_stopped:
                client.write(opened, self.piece(self.answered), self.answered)
                self.answered += self.size
            client.close(opened)


def check_rest(share: KyaniteShare, writer: Writer) -> None:
    answered = writer.answered
    file = share.rest.get_file_client("f")
    assert file.get_file_properties().size >= answered
    if answered:
        last = answered - writer.size
        assert file.download_file(offset=last, length=writer.size).readall() == writer.piece(last)


def check_smb(client: Client, writer: Writer) -> None:
    answered = writer.answered
    if answered:
        opened = client.create("f", access=GENERIC_READ, disposition=OPEN)
        assert opened.end_of_file >= answered
        last = answered - writer.size
        assert client.read(opened, last, writer.size) == writer.piece(last)
        client.close(opened)


@pytest.mark.parametrize("size", [5_000, 400_000], ids=["short", "long"])
def test_others_see_what_was_answered(share: KyaniteShare, size: int) -> None:
    share.put("f", b"")
    with Writer(share, size) as writer, connected(share.login, share.name) as client:
        for _ in range(ROUNDS):
            check_rest(share, writer)
            check_smb(client, writer)
    assert len(share.content("f")) == writer.answered
