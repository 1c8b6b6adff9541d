"""A power cut under SMB load: what was promised is there, and nothing refers to bytes that were lost.

By default a WRITE is promised when it is answered. With ``--smb-durability flush`` it is promised when a later FLUSH or
CLOSE is answered. Every WRITE fills a stretch of its own, so whatever the client knows of it can be checked byte by
byte: a promised stretch is whole, any other one is whole or zeros. The extents check themselves, so a record that
refers to lost bytes is found as well.
"""

import asyncio
import hashlib
import secrets
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest
import uvloop

from kyanite.engine.api import EngineError, Snapshot
from kyanite.engine.sqlite.engine import SqliteEngine
from kyanite.model.content.content import ExtentPart, Zeros, read_plan
from kyanite.model.files import tree
from kyanite.model.files.entry import FILE
from kyanite.model.files.share import ShareKey
from kyanite.model.files.tree import FilePath
from kyanite.rules.refusals import Refused
from kyanite.wire.smb2.header import Command
from kyanite.wire.smb2.status import Status
from tests.faults.power_cut import RecordedSQLite, Tape, put_on_disk, recorded_sqlite
from tests.faults.test_power_cut_blobs import RecordedDisk
from tests.services.harness import ACCOUNT
from tests.services.smb.raw_client import RawClient, create_body
from tests.services.smb.service import SHARE, SmbService

FILES = 3
STRETCH = 1_200_000
SIZES = (100, 16_384, 16_385, 70_000, 1_100_000)
"""Inline, inline, packed, packed, in two pieces."""
ROUNDS = 6
OUTSTANDING = 3
CUTS = 30


class Stretch(NamedTuple):
    file: int
    number: int

    @property
    def data(self) -> bytes:
        size = SIZES[(self.number + self.file) % len(SIZES)]
        seed = hashlib.sha256(b"%d/%d" % self).digest()
        return (seed * (size // 32 + 1))[:size]


def stretches(file: int) -> Iterator[Stretch]:
    return (Stretch(file, number) for number in range(ROUNDS * OUTSTANDING))


def write_body(handle: bytes, offset: int, data: bytes) -> bytes:
    return struct.pack("<HHIQ", 49, 112, len(data), offset) + handle + bytes(16) + data


async def write_file(client: RawClient, tape: Tape, file: int, *, promises_at_flush: bool) -> None:
    """Several WRITEs are on their way at a time. A FLUSH follows every other round, and a CLOSE the last one."""
    opened = await client.request(Command.CREATE, create_body(f"f{file}", access=0x1F01FF, disposition=2))
    handle, numbers = opened.body[64:80], stretches(file)
    unpromised: list[Stretch] = []
    for number in range(ROUNDS):
        sent: dict[int, Stretch] = {}
        for _ in range(OUTSTANDING):
            stretch = next(numbers)
            charge = -(-len(stretch.data) // 65536)
            tape.note(("writing", stretch))
            sent[client.next_id] = stretch
            body = write_body(handle, stretch.number * STRETCH, stretch.data)
            client.give(client.message(Command.WRITE, body, charge=charge, credits=charge))
        while sent:
            (reply,) = await client.next()
            assert reply.status is Status.SUCCESS
            unpromised.append(sent.pop(reply.message_id))
            if not promises_at_flush:
                tape.note(("promised", unpromised.pop()))
        if number % 2:
            await flush(client, handle, Command.FLUSH, tape, unpromised)
    await flush(client, handle, Command.CLOSE, tape, unpromised)


async def flush(
    client: RawClient, handle: bytes, command: Command, tape: Tape, written: list[Stretch]
) -> None:
    reply = await client.request(command, struct.pack("<HHI", 24, 0, 0) + handle)
    assert reply.status is Status.SUCCESS
    while written:
        tape.note(("promised", written.pop()))


async def record(folder: Path, files: RecordedSQLite, *, promises_at_flush: bool) -> None:
    engine = SqliteEngine.open(folder / "engine", vfs=files.name)
    service = SmbService(folder / "extents", engine=engine, file_system=RecordedDisk(files.tape))
    if promises_at_flush:
        service.answer_writes_early()
    clients = [await service.connected() for _ in range(FILES)]
    files.tape.note(("share", None))
    for client in clients:
        await client.echo(credits=512)
    writing = [
        write_file(client, files.tape, number, promises_at_flush=promises_at_flush)
        for number, client in enumerate(clients)
    ]
    await asyncio.gather(*writing)
    await service.aclose()
    await engine.close()


async def content_of(service: SmbService, file: int) -> bytes | None:
    """All bytes of a file, with every extent that it refers to checked."""
    path = FilePath(ShareKey(ACCOUNT.name, SHARE), (f"f{file}",))

    def body(snap: Snapshot) -> list[object]:
        entry = tree.load(snap, path, FILE).entry
        return list(read_plan(snap, entry.content, 0, entry.length).parts)

    try:
        parts = await service.engine.read(body)
    except Refused:
        return None
    content = b""
    for part in parts:
        if isinstance(part, ExtentPart):
            extent = part.extent
            whole = await service.extents.read(extent, 0, extent.length)
            content += whole[part.offset : part.offset + part.length]
        else:
            content += bytes(part.length) if isinstance(part, Zeros) else part  # type: ignore[operator]
    return content


async def check(folder: Path, noted: list[tuple[str, Stretch]]) -> None:
    known = {stretch: what for what, stretch in noted if stretch is not None}
    engine = SqliteEngine.open(folder / "engine")
    service = SmbService(folder / "extents", engine=engine)
    try:
        for file in range(FILES):
            content = await content_of(service, file)
            for stretch in stretches(file):
                what, data = known.get(stretch), stretch.data
                start = stretch.number * STRETCH
                found = (content or b"")[start : start + len(data)].ljust(len(data), b"\0")
                if what == "promised" or any(found):
                    assert what is not None, (stretch, "was never sent")
                    # Compared outside of the ``assert``: pytest needs minutes to explain how a MiB differs.
                    is_whole = found == data
                    assert is_whole, (stretch, what)
    finally:
        await service.aclose()
        await engine.close()


def survive(tape: Tape, cut: int, random: Random, recorded: Path, copy: Path, *, lying: bool = False) -> None:
    """Cut the power there, start again, and check what is left."""
    put_on_disk(tape.image(cut, random, lying=lying), of=recorded, into=copy)
    noted = tape.noted(cut)
    if ("share", None) in noted:
        uvloop.run(check(copy, noted))
    shutil.rmtree(copy, ignore_errors=True)


@pytest.mark.parametrize("promises_at_flush", [False, True], ids=["strict", "flush"])
@pytest.mark.parametrize("seed", [1, secrets.randbelow(10**9)], ids=["first", "random"])
def test_what_was_promised_is_there_after_a_power_cut(
    tmp_path: Path, seed: int, promises_at_flush: bool
) -> None:
    print(f"seed {seed}")
    random, tape = Random(seed), Tape()
    with recorded_sqlite(tape) as files:
        uvloop.run(record(tmp_path / "store", files, promises_at_flush=promises_at_flush))
    assert len(tape.noted(len(tape.events))) == 1 + 2 * FILES * ROUNDS * OUTSTANDING
    for cut in tape.cuts(random, CUTS):
        print(f"cut after {cut} of {len(tape.events)} events")
        survive(tape, cut, random, tmp_path / "store", tmp_path / "copy")


@pytest.mark.parametrize("promises_at_flush", [False, True], ids=["strict", "flush"])
def test_a_disk_that_lies_about_syncs_is_found_out(tmp_path: Path, promises_at_flush: bool) -> None:
    tape, random, lost = Tape(), Random(5), 0
    with recorded_sqlite(tape) as files:
        uvloop.run(record(tmp_path / "store", files, promises_at_flush=promises_at_flush))
    for cut in tape.cuts(random, 12):
        try:
            survive(tape, cut, random, tmp_path / "store", tmp_path / "copy", lying=True)
        except (AssertionError, EngineError):
            lost += 1
        shutil.rmtree(tmp_path / "copy", ignore_errors=True)
    assert lost
