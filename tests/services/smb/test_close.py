"""CLOSE, and closing what a client leaves open."""

import struct

import pytest

from kyanite.engine.api import EngineBusy, EngineFull, Transaction
from kyanite.engine.faulty import Call, Fail, FaultyEngine
from kyanite.engine.memory.engine import MemoryEngine
from kyanite.model.files import share_snapshots
from kyanite.model.files.opens import handle_lists, open_files
from kyanite.model.files.opens.locks import LockedFile, take
from kyanite.model.files.tree import FilePath
from kyanite.rules.byte_locks import Lock
from kyanite.services.smb import close
from kyanite.services.smb.close import close_opens
from kyanite.services.smb.rename import set_disposition
from kyanite.wire.smb2.status import Status
from tests.services.smb.client import SHARE, Client

DELETE_ON_CLOSE = 0x1000


@pytest.fixture
def client() -> Client:
    client = Client()
    client.make_file("f", b"12345")
    client.make_directory("d")
    return client


@pytest.mark.parametrize(("name", "length", "attributes"), [("f", 5, 0x20), ("d", 0, 0x10)])
def test_attributes_are_filled_in_when_wanted(
    client: Client, name: str, length: int, attributes: int
) -> None:
    opened = client.create(name)
    status, body = client.close(opened.opened, wants_attributes=True)
    fields = struct.unpack("<HHIQQQQQQI", body)
    assert (status, fields[0], fields[1]) == (Status.SUCCESS, 60, 1)
    assert fields[3] == opened.created_at
    assert fields[7:] == (4096 if length else 0, length, attributes)
    _, body = client.close(client.create(name).opened)
    assert body == struct.pack("<H58x", 60)


def test_attributes_of_a_file_that_this_deletes(client: Client) -> None:
    opened = client.create("f", options=DELETE_ON_CLOSE).opened
    _, body = client.close(opened, wants_attributes=True)
    assert struct.unpack("<HHIQQQQQQI", body)[8] == 5
    assert client.create("f").status is Status.OBJECT_NAME_NOT_FOUND


def test_what_is_closed_is_closed(client: Client) -> None:
    opened = client.create("f").opened
    assert client.close(opened)[0] is Status.SUCCESS
    assert client.close(opened)[0] is Status.FILE_CLOSED
    other, left = client.create("f").opened, client.create("f").opened
    assert client.close(other)[0] is Status.SUCCESS
    assert client.close(other)[0] is Status.FILE_CLOSED
    assert client.close(left)[0] is Status.SUCCESS


def test_closing_by_force_deletes_nothing(client: Client) -> None:
    opened = client.create("f", options=DELETE_ON_CLOSE).opened
    client.apply(set_disposition, opened, b"\1")
    closing = handle_lists.close_handles(
        client.engine, FilePath(SHARE, ("f",)), recursive=False, handle_id=opened.handle_id
    )
    assert client.run(closing).closed == 1
    assert client.close(opened)[0] is Status.FILE_CLOSED
    assert client.create("f").status is Status.SUCCESS


def test_locks_end_with_their_handle_and_waiters_are_notified(client: Client) -> None:
    opened = client.create("f").opened
    file_id, share_id = opened.file_id, client.tree.share_id

    def lock(tx: Transaction) -> None:
        take(tx, LockedFile(share_id, file_id, opened.handle_id), [Lock(0, 1, True, opened.handle_id)])

    async def close() -> None:
        await client.engine.run(lock, durable=False)
        notifications = client.engine.subscribe(open_files.changed_topic(share_id, file_id))
        await close_opens([opened])
        await notifications.__anext__()

    client.run(close())


def test_a_client_that_goes_closes_everything(client: Client) -> None:
    names = [f"n{number}" for number in range(250)]
    for name in names:
        client.create(name, 2, options=DELETE_ON_CLOSE if name.endswith("7") else 0)
    twice = client.create("n7", access=0x10080).opened
    client.create("n8")
    client.run(close_opens(list(client.tree.opens.values())))
    assert twice.handle_id
    assert client.tree.opens == {}
    assert not any(client.rows(prefix) for prefix in (b"H", b"O", b"Q", b"M"))
    left = [name for name in names if client.create(name).status is Status.SUCCESS]
    assert left == [name for name in names if not name.endswith("7")]


def test_a_client_goes_after_its_handles_or_its_share_have_gone(client: Client) -> None:
    opened = [client.create("f").opened, client.create("d").opened]
    closing = handle_lists.close_handles(
        client.engine, FilePath(SHARE, ("f",)), recursive=False, handle_id=None
    )
    client.run(closing)
    client.run(close_opens(opened[:1]))
    client.run(share_snapshots.delete(client.engine, SHARE, None))
    client.run(close_opens(opened[1:]))
    assert client.tree.opens == {}


# --- A busy engine


def test_a_close_that_fails_can_be_repeated() -> None:
    memory = MemoryEngine()
    Client(memory).make_file("f", b"12345")
    engine = FaultyEngine(memory, {(Call.RUN, 2): Fail(EngineBusy("busy"))})
    client = Client(engine)
    opened = client.create("f").opened
    with pytest.raises(EngineBusy):
        client.close(opened)
    assert client.tree.opens == {opened.id.volatile: opened}
    assert client.close(opened)[0] is Status.SUCCESS
    assert client.tree.opens == {}
    assert not client.rows(b"Q")
    engine.check_all_hit()


def test_what_a_client_leaves_is_closed_when_the_engine_can(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(close, "_AGAIN_SECONDS", 0.001)
    memory = MemoryEngine()
    Client(memory).make_file("f", b"12345")
    faults = {(Call.RUN, 2): Fail(EngineBusy("busy")), (Call.RUN, 4): Fail(EngineFull("full"))}
    engine = FaultyEngine(memory, faults)
    client = Client(engine)
    opened = client.create("f", options=DELETE_ON_CLOSE).opened
    client.run(close.close_opens([opened]))
    engine.check_all_hit()
    assert not client.rows(b"Q")
    assert client.create("f").status is Status.OBJECT_NAME_NOT_FOUND
