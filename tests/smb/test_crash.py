"""``kill -9`` under SMB load: every WRITE that was answered is there, whole, and no dead client keeps anything open.

Each writer fills a file of its own, stretch by stretch, with a few WRITEs on their way at a time, and shares it with
nobody. A stretch that was answered must be there after the restart; one that was on its way is there whole, or not at
all. The next open, which does not share the file either, shows that no handle outlived its process.
"""

import hashlib
import random
import threading
from collections import deque
from pathlib import Path

import pytest
from smbprotocol.exceptions import SMBException

from tests.server_process import ServerProcess
from tests.smb.messages import OPEN_IF, READ_WRITE, Client, connected
from tests.smb.shares import KyaniteShare
from tests.smb.torture.targets import login_of

ROUNDS = 3
WRITERS = 3
OUTSTANDING = 3
STRETCH = 1_200_000
SIZES = (200, 16_384, 40_000, 1_100_000)
GONE = (SMBException, OSError, EOFError)
"""What the client raises when the server has died."""


class Writer:
    """A file, and what is known of its stretches."""

    def __init__(self, number: int) -> None:
        self.name = f"file{number}"
        self.number = number
        self.sent = 0
        self.answered: set[int] = set()

    def data(self, stretch: int) -> bytes:
        size = SIZES[(self.number + stretch) % len(SIZES)]
        seed = hashlib.sha256(f"{self.number} {stretch}".encode()).digest()
        return (seed * (size // 32 + 1))[:size]

    def run(self, client: Client, enough: threading.Event) -> None:
        """Write until the server is gone. Every answered WRITE brings that nearer."""
        try:
            opened = client.create(self.name, access=READ_WRITE, disposition=OPEN_IF, sharing=0)
            waiting: deque[tuple[int, object]] = deque()
            while True:
                while len(waiting) < OUTSTANDING:
                    message, _ = opened.write(self.data(self.sent), self.sent * STRETCH, send=False)
                    self.sent += 1
                    waiting.append((self.sent - 1, client.send(message)))
                stretch, request = waiting.popleft()
                client.received(request)
                self.answered.add(stretch)
                if sum(self.answered) % 7 == 0:
                    enough.set()
        except GONE:
            return

    def check(self, content: bytes) -> None:
        for stretch in range(self.sent):
            data = self.data(stretch)
            found = content[stretch * STRETCH : stretch * STRETCH + len(data)]
            if stretch in self.answered or any(found):
                assert found == data, (self.name, stretch, stretch in self.answered)


def write_until_killed(server: ServerProcess, writers: list[Writer], chance: random.Random) -> None:
    enough = threading.Event()
    threads = [threading.Thread(target=serve, args=(server, writer, enough)) for writer in writers]
    for thread in threads:
        thread.start()
    enough.wait(20)
    threading.Event().wait(chance.uniform(0.0, 0.3))
    server.kill9()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


def serve(server: ServerProcess, writer: Writer, enough: threading.Event) -> None:
    try:
        with connected(login_of(server), "crash") as client:
            writer.run(client, enough)
    except GONE:
        return


@pytest.mark.timeout(240)
def test_every_write_that_was_answered_is_there(tmp_path: Path) -> None:
    chance = random.Random()
    server = ServerProcess("--workers", "2", location=tmp_path / "store")
    writers = [Writer(number) for number in range(WRITERS)]
    try:
        server.start()
        KyaniteShare(server, "crash")
        for _ in range(ROUNDS):
            write_until_killed(server, writers, chance)
            server.start()
            with connected(login_of(server), "crash") as client:
                for writer in writers:
                    opened = client.create(writer.name, access=READ_WRITE, disposition=OPEN_IF, sharing=0)
                    starts = range(0, opened.end_of_file, STRETCH)
                    content = b"".join(client.read(opened, start, STRETCH) for start in starts)
                    writer.check(content)
                    client.close(opened)
        assert sum(len(writer.answered) for writer in writers) > 5 * ROUNDS
    finally:
        server.close()
