"""Durable handles: a client that has lost its connection takes them up again, from whichever worker."""

import struct
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from azure.storage.fileshare import ShareClient
from smbprotocol.exceptions import SMBException, SMBResponseException
from smbprotocol.open import Open

from tests.server_process import ServerProcess
from tests.smb.messages import GENERIC_READ, OPEN, OPEN_IF, READ_WRITE, Client, connected, context, refused
from tests.smb.shares import KyaniteShare
from tests.smb.torture.targets import login_of

BATCH = 9
OBJECT_NAME_NOT_FOUND = 0xC0000034
GUID = uuid.UUID(int=7).bytes_le


def opened(client: Client, guid: bytes = GUID) -> Open:
    """A new file that its client may take up again."""
    request = context(b"DH2Q", struct.pack("<IIQ16s", 60_000, 0, 0, guid))
    made = client.create("f", access=READ_WRITE, disposition=OPEN_IF, oplock=BATCH, contexts=[request])
    client.write(made, b"before")
    return made


def reconnected(client: Client, file_id: bytes) -> Open:
    """The worker may still be about to notice that the old connection is lost."""
    for _ in range(100):
        try:
            return reconnect(client, file_id)
        except SMBResponseException as refusal:
            if refusal.status != OBJECT_NAME_NOT_FOUND:
                raise
            time.sleep(0.05)
    raise AssertionError("the handle is not there")


def reconnect(client: Client, file_id: bytes, guid: bytes = GUID) -> Open:
    request = context(b"DH2C", file_id + guid + bytes(4))
    return client.create("f", access=READ_WRITE, disposition=OPEN, oplock=BATCH, contexts=[request])


@contextmanager
def losing_connection(share: KyaniteShare) -> Iterator[Client]:
    """A client that is cut off at the end of the block."""
    connecting = connected(share.login, share.name)
    client = connecting.__enter__()
    try:
        yield client
    finally:
        client.connection.disconnect(close=False)
        with suppress(SMBException, OSError):
            connecting.__exit__(None, None, None)


def kept(share: KyaniteShare) -> bytes:
    """The id of a handle whose client is gone."""
    with losing_connection(share) as client:
        file_id: bytes = opened(client).file_id
    return file_id


def handles_of(rest: ShareClient) -> list[object]:
    return list(rest.get_file_client("f").list_handles())


def test_a_client_goes_on_where_it_was(share: KyaniteShare) -> None:
    file_id = kept(share)
    for number in range(4):  # New connections are spread over the workers.
        with losing_connection(share) as client:
            again = reconnected(client, file_id)
            client.write(again, b"%d after" % number, 6)
            assert client.read(again, 0, 20) == b"before%d after" % number
    with connected(share.login, share.name) as client:
        client.close(reconnected(client, file_id))
    assert share.content("f") == b"before3 after"
    assert handles_of(share.rest) == []


def test_only_its_guid_names_it(share: KyaniteShare) -> None:
    file_id = kept(share)
    with connected(share.login, share.name) as client:
        with refused(OBJECT_NAME_NOT_FOUND):
            reconnect(client, file_id, bytes(16))
        again = reconnected(client, file_id)
        with refused(OBJECT_NAME_NOT_FOUND):
            reconnect(client, file_id)
        client.close(again)


def test_rest_lists_and_closes_it(share: KyaniteShare) -> None:
    file_id = kept(share)
    (listed,) = handles_of(share.rest)
    assert listed.last_reconnect_time is None  # type: ignore[attr-defined]
    with losing_connection(share) as client:
        reconnected(client, file_id)
        (listed,) = handles_of(share.rest)
        assert listed.last_reconnect_time is not None  # type: ignore[attr-defined]
    share.rest.get_file_client("f").close_all_handles()
    with connected(share.login, share.name) as client, refused(OBJECT_NAME_NOT_FOUND):
        reconnect(client, file_id)


def test_what_needs_the_file_does_not_wait(share: KyaniteShare) -> None:
    file_id = kept(share)
    share.rest.get_file_client("f").upload_range(b"BEFORE", 0, 6)
    with connected(share.login, share.name) as client:
        with refused(OBJECT_NAME_NOT_FOUND):
            reconnect(client, file_id)
        found = client.create("f", access=GENERIC_READ, disposition=OPEN)
        assert client.read(found, 0, 6) == b"BEFORE"


@pytest.mark.parametrize("kills", [False, True])
def test_a_restart_of_the_server(tmp_path: Path, kills: bool) -> None:
    """Stopping it is a lost connection. What a killed server served is closed, and nothing is locked."""
    with ServerProcess("--workers", "2", location=tmp_path) as server:
        share = KyaniteShare(server, "share")
        with losing_connection(share) as client:
            file_id = opened(client).file_id
            if kills:
                server.kill9()
            else:
                server.stop()
        server.start()
        with connected(login_of(server), "share") as client:
            if kills:
                with refused(OBJECT_NAME_NOT_FOUND):
                    reconnect(client, file_id)
                again = client.create("f", access=READ_WRITE, disposition=OPEN, sharing=0)
            else:
                again = reconnected(client, file_id)
            assert client.read(again, 0, 6) == b"before"
