"""A power cut in the middle of puts, deletes and sweeping: records and bytes fit together afterwards.

The engine's files and the extents' are recorded on one tape, so that the order between them counts: bytes have to be on
the disk before the record that refers to them is.
"""

import asyncio
import hashlib
import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
import uvloop

from kyanite.engine.api import Engine, EngineError
from kyanite.engine.sqlite.engine import SqliteEngine
from kyanite.extents.local.file_system import Buffer, FileSystem
from kyanite.extents.local.store import LocalExtents
from kyanite.membership.local import LocalMembership
from kyanite.services.blob.service import blob_service
from kyanite.values import instant_from_unix_seconds
from tests.faults.power_cut import FileId, RecordedSQLite, Tape, put_on_disk, recorded_sqlite
from tests.model.maintenance.garbage_collection import GarbageCollector
from tests.services.harness import Harness

SIZES = (100, 16_000, 40_000, 300_000, 1_500_000)
"""Inline, inline, packed, packed, streamed."""
CLIENTS = 5
STEPS = 5
CUTS = 30
BLOCK = {"x-ms-blob-type": "BlockBlob"}


class RecordedDisk(FileSystem):
    """The extents' own calls, with a tape beside them."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._open: dict[int, FileId] = {}

    def create(self, path: Path) -> int:
        fd = super().create(path)
        self._open[fd] = self._tape.open(path)
        return fd

    def write(self, fd: int, pieces: Sequence[Buffer], offset: int) -> None:
        super().write(fd, pieces, offset)
        self._tape.write(self._open[fd], offset, b"".join(pieces))

    def sync(self, fd: int) -> None:
        with self._tape.syncing(self._open[fd]):
            super().sync(fd)

    def sync_folder(self, path: Path) -> None:
        with self._tape.syncing_folder(path):
            super().sync_folder(path)

    def truncate(self, path: Path, length: int) -> None:
        super().truncate(path, length)
        self._tape.truncate(self._tape.open(path), length)

    def unlink(self, path: Path) -> None:
        super().unlink(path)
        self._tape.unlink(path)


def content(name: str) -> bytes:
    size = SIZES[int(name.split("-")[1])]
    seed = hashlib.sha256(name.encode()).digest()
    return (seed * (size // 32 + 1))[:size]


class Store:
    """The blob service over the real engine and real extents in one folder."""

    def __init__(self, folder: Path, vfs: str | None = None, file_system: FileSystem | None = None) -> None:
        self.engine: Engine = SqliteEngine.open(folder / "engine", vfs=vfs)
        self.membership = LocalMembership(folder / "extents" / "owners")
        self.extents = LocalExtents(folder / "extents", self.membership, file_system=file_system)
        self.request = Harness(folder / "unused")
        self.request.clock.now = instant_from_unix_seconds(1_800_000_000)
        self.request.use_store(blob_service, engine=self.engine, extents=self.extents)

    async def close(self) -> None:
        await self.extents.close()
        self.membership.close()
        await self.engine.close()


async def client(store: Store, tape: Tape, label: int) -> None:
    for step in range(STEPS):
        name = f"{label}-{(label + step) % len(SIZES)}-{step}"
        tape.note(("putting", name))
        assert (await store.request("PUT", f"/box/{name}", BLOCK, content(name))).status == 201
        tape.note(("put", name))
        if step % 2:
            tape.note(("deleting", name))
            assert (await store.request("DELETE", f"/box/{name}")).status == 202
            tape.note(("deleted", name))


async def record(folder: Path, files: RecordedSQLite) -> None:
    store = Store(folder, files.name, RecordedDisk(files.tape))
    assert (await store.request("PUT", "/box?restype=container")).status == 201
    files.tape.note(("container", ""))
    collector = GarbageCollector(store.engine, store.extents, store.membership)
    for _ in range(2):
        await asyncio.gather(*(client(store, files.tape, label) for label in range(CLIENTS)))
        for _ in range(20):
            await collector.step()
    await store.close()


async def check(folder: Path, noted: list[tuple[str, str]]) -> None:
    """What was said last of a name decides: ``put`` is there, ``deleted`` is not, and in between it may be either."""
    last = {name: what for what, name in noted}
    store = Store(folder)
    try:
        for label in range(CLIENTS):
            for step in range(STEPS):
                name = f"{label}-{(label + step) % len(SIZES)}-{step}"
                answer = await store.request("GET", f"/box/{name}")
                expected = {"put": {200}, "deleted": {404}, None: {404}}.get(last.get(name), {200, 404})
                assert answer.status in expected, (name, last.get(name))
                # Compared outside of the ``assert``: pytest needs minutes to explain how long bodies differ.
                is_whole = answer.status == 404 or answer.body == content(name)
                assert is_whole, name
    finally:
        await store.close()


def survive(tape: Tape, cut: int, random: Random, recorded: Path, copy: Path, *, lying: bool = False) -> None:
    """Cut the power there, start again, and check what is left."""
    put_on_disk(tape.image(cut, random, lying=lying), of=recorded, into=copy)
    noted = tape.noted(cut)
    if ("container", "") in noted:
        uvloop.run(check(copy, noted))


@pytest.mark.parametrize("seed", [1, secrets.randbelow(10**9)], ids=["first", "random"])
def test_every_acknowledged_blob_is_whole_after_a_power_cut(tmp_path: Path, seed: int) -> None:
    print(f"seed {seed}")
    random, tape = Random(seed), Tape()
    recorded, copy = tmp_path / "store", tmp_path / "copy"
    with recorded_sqlite(tape) as files:
        uvloop.run(record(recorded, files))
    for cut in tape.cuts(random, CUTS):
        print(f"cut after {cut} of {len(tape.events)} events")
        survive(tape, cut, random, recorded, copy)
        shutil.rmtree(copy, ignore_errors=True)


def test_a_disk_that_lies_about_syncs_is_found_out(tmp_path: Path) -> None:
    tape, random, lost = Tape(), Random(5), 0
    with recorded_sqlite(tape) as files:
        uvloop.run(record(tmp_path / "store", files))
    for cut in tape.cuts(random, 12):
        try:
            survive(tape, cut, random, tmp_path / "store", tmp_path / "copy", lying=True)
        except (AssertionError, EngineError):
            lost += 1
        shutil.rmtree(tmp_path / "copy", ignore_errors=True)
    assert lost
