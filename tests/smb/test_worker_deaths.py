"""A worker is killed while its SMB clients have files open: the others are refused nothing because of that."""

import os
import signal
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from smbprotocol.exceptions import SMBException
from smbprotocol.open import SMB2LockElement

from tests.server_process import ServerProcess, eventually, is_alive
from tests.smb.messages import CREATE, FILE, GENERIC_ALL, Client, connected
from tests.smb.shares import KyaniteShare

CLIENTS = 8
"""So many that each of two workers surely serves some of them."""
DISPOSITION = 13
EXCLUSIVE_AT_ONCE = 0x12


@pytest.mark.parametrize("is_marked", [False, True])
def test_handles_of_a_killed_worker_refuse_nothing(tmp_path: Path, is_marked: bool) -> None:
    with ServerProcess("--workers", "2", location=tmp_path) as server, ExitStack() as stack:
        share = KyaniteShare(server, "share")
        clients = []
        for number in range(CLIENTS):
            stack.enter_context(
                suppress(SMBException, OSError)
            )  # A lost connection cannot be closed properly.
            clients.append(stack.enter_context(connected(share.login, share.name)))
            _open(clients[-1], f"f{number}", is_marked=is_marked)
        victim = server.worker_pids()[0]
        os.kill(victim, signal.SIGKILL)
        eventually(lambda: not is_alive(victim))
        lost = [number for number, client in enumerate(clients) if not _answers(client)]
        assert 0 < len(lost) < CLIENTS
        other = stack.enter_context(connected(share.login, share.name))
        for number in lost[::2]:
            again = other.create(f"f{number}", access=GENERIC_ALL, sharing=0)
            assert other.read(again, 0, 4) == b"1234"
        for number in lost[1::2]:
            assert share.content(f"f{number}") == b"1234"
            share.rest.get_file_client(f"f{number}").delete_file()


def _open(client: Client, name: str, *, is_marked: bool) -> None:
    """Open a file that no other client may open, lock its bytes, and perhaps mark it for deletion."""
    opened = client.create(name, disposition=CREATE, sharing=0)
    client.write(opened, b"1234")
    element = SMB2LockElement()
    element["offset"], element["length"], element["flags"] = 0, 4, EXCLUSIVE_AT_ONCE
    opened.lock([element])
    if is_marked:
        client.change(opened, FILE, DISPOSITION, b"\1")


def _answers(client: Client) -> bool:
    try:
        client.connection.echo(client.session.session_id)
    except (SMBException, OSError):
        return False
    return True
