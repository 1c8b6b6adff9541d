"""Clients of one share at two nodes: share modes, locks, oplocks and durable handles hold across them."""

import struct
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import TypeVar

import pytest
from smbprotocol import session
from smbprotocol.exceptions import SMBException, SMBResponseException
from smbprotocol.open import SMB2LockElement
from smbprotocol.session import SMB2SessionSetupRequest

from tests.nodes.shares import share_of
from tests.server_process import ServerProcess, eventually
from tests.smb.messages import (
    CREATE,
    GENERIC_ALL,
    GENERIC_READ,
    OPEN,
    OPEN_IF,
    READ_WRITE,
    Client,
    connected,
    context,
    refused,
)

CLIENTS = 8
"""At each node."""
SHARING_VIOLATION = 0xC0000043
NAME_COLLISION = 0xC0000035
LOCK_NOT_GRANTED = 0xC0000055
FILE_LOCK_CONFLICT = 0xC0000054
OBJECT_NAME_NOT_FOUND = 0xC0000034
FILE_CLOSED = 0xC0000128
USER_SESSION_DELETED = 0xC0000203
EXCLUSIVE_AT_ONCE = 0x12
BATCH = 9
GUID = uuid.UUID(int=11).bytes_le

T = TypeVar("T")
Nodes = list[ServerProcess]


def outcomes_of(acts: list[Callable[[], object]]) -> list[int]:
    """Let all act at once; the status of each, 0 for success."""
    together = threading.Barrier(len(acts))

    def outcome(act: Callable[[], object]) -> int:
        together.wait()
        try:
            act()
        except SMBResponseException as refusal:
            return int(refusal.status)
        return 0

    with ThreadPoolExecutor(len(acts)) as threads:
        return list(threads.map(outcome, acts))


def lock(opened: object) -> None:
    element = SMB2LockElement()
    element["offset"], element["length"], element["flags"] = 0, 4, EXCLUSIVE_AT_ONCE
    opened.lock([element])  # type: ignore[attr-defined]


def test_one_open_one_creation_and_one_lock_win(nodes: Nodes) -> None:
    shares = share_of(nodes)
    with ExitStack() as stack:
        clients: list[Client] = [
            stack.enter_context(connected(share.login, share.name))
            for share in shares
            for _ in range(CLIENTS)
        ]

        def create(client: Client) -> Callable[[], object]:
            return lambda: client.create("new", disposition=CREATE, sharing=7)

        outcomes = outcomes_of([create(client) for client in clients])
        assert sorted(outcomes) == [0] + [NAME_COLLISION] * (len(clients) - 1)

        def open_alone(client: Client) -> Callable[[], object]:
            return lambda: client.create("alone", disposition=OPEN_IF, sharing=0, access=GENERIC_ALL)

        outcomes = outcomes_of([open_alone(client) for client in clients])
        assert sorted(outcomes) == [0] + [SHARING_VIOLATION] * (len(clients) - 1)

        handles = [client.create("locked", disposition=OPEN_IF) for client in clients]
        outcomes = outcomes_of([lambda each=each: lock(each) for each in handles])  # type: ignore[misc]
        assert sorted(outcomes) == [0] + [LOCK_NOT_GRANTED] * (len(clients) - 1)
        winner = outcomes.index(0)
        with refused(FILE_LOCK_CONFLICT):
            clients[winner - 1].write(handles[winner - 1], b"1234")
        clients[winner].write(handles[winner], b"1234")
        # REST obeys them too, at either node, and lists the handles of both.
        for share in shares:
            assert len(list(share.rest.get_file_client("locked").list_handles())) == len(clients)


def test_a_handle_of_one_node_is_closed_at_another(nodes: Nodes) -> None:
    first, second = share_of(nodes)
    with connected(first.login, first.name) as client:
        opened = client.create("f", disposition=CREATE, sharing=0)
        with connected(second.login, second.name) as other, refused(SHARING_VIOLATION):
            other.create("f", disposition=OPEN, access=GENERIC_READ)
        second.rest.get_file_client("f").close_all_handles()
        with refused(FILE_CLOSED):
            client.write(opened, b"1234")


def test_an_oplock_is_broken_for_a_client_of_another_node(nodes: Nodes) -> None:
    first, second = share_of(nodes)
    with connected(first.login, first.name) as client, connected(second.login, second.name) as other:
        opened = client.create("f", disposition=CREATE, sharing=7, oplock=BATCH)
        with ThreadPoolExecutor(1) as thread:
            waiting = thread.submit(other.create, "f", disposition=OPEN)
            client.breaks.next()
            client.write(opened, b"flushed")
            client.close(opened)
            again = waiting.result(30)
        assert other.read(again, 0, 7) == b"flushed"


def test_a_session_is_ended_by_a_client_that_connects_to_another_node(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = share_of(nodes)
    connecting = connected(first.login, first.name)
    lost = connecting.__enter__()
    opened = lost.create("f", disposition=CREATE, sharing=0)
    previous = lost.session.session_id

    class Setup(SMB2SessionSetupRequest):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self["previous_session_id"] = previous

    monkeypatch.setattr(session, "SMB2SessionSetupRequest", Setup)
    with connected(second.login, second.name) as client:
        client.create("f", disposition=OPEN, sharing=0, access=GENERIC_ALL)
        with refused(USER_SESSION_DELETED):
            lost.write(opened, b"1234")
    with suppress(SMBException, OSError):  # It has no session that it could end.
        connecting.__exit__(None, None, None)


def test_a_durable_handle_continues_at_another_node(nodes: Nodes) -> None:
    first, second = share_of(nodes)
    connecting = connected(first.login, first.name)
    client = connecting.__enter__()
    request = context(b"DH2Q", struct.pack("<IIQ16s", 60_000, 0, 0, GUID))
    made = client.create("f", access=READ_WRITE, disposition=OPEN_IF, oplock=BATCH, contexts=[request])
    client.write(made, b"before")
    client.connection.disconnect(close=False)
    with suppress(SMBException, OSError):
        connecting.__exit__(None, None, None)
    with connected(second.login, second.name) as other:
        again = context(b"DH2C", made.file_id + GUID + bytes(4))
        found = []

        def is_reconnected() -> bool:
            try:
                found.append(
                    other.create("f", access=READ_WRITE, disposition=OPEN, oplock=BATCH, contexts=[again])
                )
            except SMBResponseException as refusal:
                if refusal.status != OBJECT_NAME_NOT_FOUND:
                    raise
                return False
            return True

        eventually(is_reconnected, 30)
        other.write(found[0], b" after", 6)
        assert other.read(found[0], 0, 20) == b"before after"
        other.close(found[0])
