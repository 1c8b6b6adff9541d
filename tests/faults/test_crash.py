"""``kill -9`` of every process under load: what was acknowledged is there, whole, and nothing is there by half.

Writers of small, middling and large blobs overwrite and delete names of their own, so that of every name it is known
what it may hold: the last version that was acknowledged, or the one that was on its way when the processes died.
"""

import asyncio
import hashlib
import os
import random
import signal
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from tests.faults.client import BROKEN, PUT, Connection, files_of, token_of
from tests.profiles import examples
from tests.server_process import ServerProcess, eventually

ROUNDS = examples(10)
KIB = 1024
DELETED = 0
"""The version of a name at which there is nothing."""


@dataclass(frozen=True, slots=True)
class Load:
    """A kind of writer: how many there are, how many names each has, and how large its blobs are."""

    word: str
    writers: int
    names: int
    size: int


LOADS = (Load("small", 6, 60, KIB), Load("middling", 3, 12, 64 * KIB), Load("large", 2, 2, 8 * KIB * KIB))


@dataclass(slots=True)
class Ledger:
    """What each name may hold, by version. More than one version: the outcome of a request is unknown."""

    possible_versions: dict[str, set[int]] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    acknowledged: int = 0
    last_version: int = 0
    when_enough: tuple[int, Callable[[], None]] | None = None
    """At this number of acknowledgements this is done, at once."""

    def next_version(self) -> int:
        self.last_version += 1
        return self.last_version

    def begin(self, name: str, version: int) -> None:
        self.possible_versions.setdefault(name, {DELETED}).add(version)

    def end(self, name: str, version: int) -> None:
        self.possible_versions[name] = {version}
        self.acknowledged += 1
        if self.when_enough is not None and self.acknowledged == self.when_enough[0]:
            self.when_enough[1]()


def content_of(name: str, version: int, size: int) -> bytes:
    return random.Random(f"{name} {version}").randbytes(size)


async def _write(
    server: ServerProcess, token: str, ledger: Ledger, load: Load, number: int, chance: random.Random
) -> None:
    """Overwrite and delete names of this writer's own until the server is gone."""
    names = [f"{load.word}/{number}/{index:03}" for index in range(load.names)]
    try:
        async with Connection(server, token) as connection:
            while True:
                name = chance.choice(names)
                ledger.sizes[name] = load.size
                if ledger.possible_versions.get(name, {DELETED}) != {DELETED} and chance.random() < 0.2:
                    ledger.begin(name, DELETED)
                    answer = await connection.request("DELETE", f"crash/{name}")
                    assert answer.status == 202, answer
                    ledger.end(name, DELETED)
                    continue
                version = ledger.next_version()
                data = content_of(name, version, load.size)
                ledger.begin(name, version)
                answer = await connection.request("PUT", f"crash/{name}", data, PUT)
                assert answer.status == 201, answer
                ledger.end(name, version)
    except BROKEN:
        return


async def _load_until_killed(
    server: ServerProcess, token: str, ledger: Ledger, chance: random.Random
) -> None:
    """Kill all at the very moment of an acknowledgement, so that whatever was promised too early is not done yet; or
    after a while, on a machine that is slow today.
    """
    victims = [*server.child_pids(), server.pid]
    dead = asyncio.Event()

    def kill() -> None:
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        dead.set()

    ledger.when_enough = ledger.acknowledged + int(10 ** chance.uniform(0.0, 2.7)), kill
    writers = [
        asyncio.create_task(_write(server, token, ledger, load, number, random.Random(chance.random())))
        for load in LOADS
        for number in range(load.writers)
    ]
    with suppress(TimeoutError):
        await asyncio.wait_for(dead.wait(), chance.uniform(0.7, 1.0))
    ledger.when_enough = None
    server.kill9()
    await asyncio.wait_for(asyncio.gather(*writers), 60)


async def _listed(connection: Connection) -> dict[str, str]:
    """The names that a listing shows, with the hash it shows for each."""
    found: dict[str, str] = {}
    marker = ""
    while True:
        query = f"restype=container&comp=list&marker={marker}"
        answer = await connection.request("GET", "crash", query=query)
        assert answer.status == 200
        root = ElementTree.fromstring(answer.body.decode("utf-8-sig"))
        for blob in root.iter("Blob"):
            found[blob.findtext("Name") or ""] = blob.findtext("Properties/Content-MD5") or ""
        marker = root.findtext("NextMarker") or ""
        if not marker:
            return found


async def _check(server: ServerProcess, token: str, ledger: Ledger) -> None:
    """Every name holds one of the versions it may hold, whole. From now on it is known which."""
    async with AsyncExitStack() as at_end:
        connections = [await at_end.enter_async_context(Connection(server, token)) for _ in range(4)]
        listed = await _listed(connections[0])
        assert not set(listed) - set(ledger.possible_versions)
        names = iter(sorted(ledger.possible_versions))

        async def check_some(connection: Connection) -> None:
            for name in names:
                answer = await connection.request("GET", f"crash/{name}")
                assert answer.status in {200, 404}, (name, answer.status)
                assert (answer.status == 200) == (name in listed), name
                version = _version_of(ledger, name, answer.body if answer.status == 200 else None)
                assert version is not None, f"{name} holds none of {ledger.possible_versions[name]}"
                ledger.possible_versions[name] = {version}
                if version != DELETED:
                    assert listed[name] == b64encode(hashlib.md5(answer.body).digest()).decode(), name

        await asyncio.gather(*(check_some(connection) for connection in connections))


def _version_of(ledger: Ledger, name: str, found: bytes | None) -> int | None:
    for version in ledger.possible_versions[name]:
        expected = None if version == DELETED else content_of(name, version, ledger.sizes[name])
        if found == expected:
            return version
    return None


async def test_nothing_acknowledged_is_lost_and_nothing_is_there_by_half(tmp_path: Path) -> None:
    seed = int(os.environ.get("KYANITE_TEST_SEED") or random.randrange(2**32))
    print(f"seed {seed}")
    chance = random.Random(seed)
    ledger = Ledger()
    server = ServerProcess("--workers", "2", location=tmp_path / "store")
    try:
        server.start()
        token = token_of(server)
        async with Connection(server, token) as connection:
            assert (await connection.request("PUT", "crash", query="restype=container")).status == 201
        for number in range(ROUNDS):
            await _load_until_killed(server, token, ledger, chance)
            if number % 4 == 3:
                server.launch()
                await asyncio.sleep(chance.uniform(0.0, 0.6))
                server.kill9()
            server.start()
            await _check(server, token, ledger)
        print(f"{ledger.acknowledged} requests acknowledged in {ROUNDS} rounds")
        assert ledger.acknowledged > 10 * ROUNDS
        assert server.stop() == 0
        _verify(server)
        await _check_reclaimed(server, token, ledger)
    finally:
        server.close()


def _verify(server: ServerProcess) -> None:
    command = [sys.executable, "-m", "kyanite.server.cli", "verify", "--location", str(server.location)]
    verified = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    print(verified.stdout)
    assert verified.returncode == 0, verified.stdout + verified.stderr


async def _check_reclaimed(server: ServerProcess, token: str, ledger: Ledger) -> None:
    """What the dead left behind goes, what is stored stays, and when all is deleted no space is taken."""
    server.start()
    owners = server.location / "extents" / "owners"
    eventually(lambda: len(list(owners.iterdir())) == len(server.worker_pids()), 60)
    await _check(server, token, ledger)
    stored = sum(
        ledger.sizes[name] for name, versions in ledger.possible_versions.items() if versions != {DELETED}
    )
    assert sum(files_of(server.location).values()) < 2 * stored + 64 * KIB * KIB
    async with Connection(server, token) as connection:
        for name, versions in ledger.possible_versions.items():
            if versions != {DELETED}:
                assert (await connection.request("DELETE", f"crash/{name}")).status == 202
    eventually(lambda: not any(files_of(server.location).values()), 60)
    assert server.stop() == 0
    assert not files_of(server.location)
