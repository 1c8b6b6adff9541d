"""Clients that break the protocol, against a server with several workers: it logs no error and keeps nothing open."""

import asyncio
import base64
import random

from tests import profiles
from tests.server_process import ServerProcess
from tests.services.smb.fuzzing.client import FuzzClient
from tests.services.smb.fuzzing.requests import SHARE
from tests.services.smb.fuzzing.servers import ServerSocket
from tests.smb.shares import KyaniteShare

CONVERSATIONS = 40
INPUTS = 40
SEED = 17


def test_conversations_with_mistakes_do_no_harm(server: ServerProcess) -> None:
    """That the server runs and has logged no error is checked when it stops."""
    share = KyaniteShare(server, SHARE)
    share.put("a", bytes(1000))
    share.make_directory("dir")
    share.put("dir/f", bytes(1000))
    asyncio.run(converse(server, share))
    root = share.rest.get_directory_client()
    while list(root.list_handles(recursive=True)):  # The server has to notice that the clients are gone.
        root.close_all_handles(recursive=True)
    share.rest.delete_share()


async def converse(server: ServerProcess, share: KyaniteShare) -> None:
    for first in range(0, profiles.examples(CONVERSATIONS), 4):
        await asyncio.gather(*(_one(server, share, first + number) for number in range(4)))


async def _one(server: ServerProcess, share: KyaniteShare, number: int) -> None:
    def connect(client: FuzzClient) -> ServerSocket:
        return ServerSocket(share.login.port, client)

    key = base64.b64decode(server.account_key)
    client = FuzzClient(server.account, [key], connect, random.Random(f"{SEED}/{number}"), 0.5)
    assert isinstance(client.server, ServerSocket)
    await client.server.open()
    await client.converse(INPUTS)
    await client.lose()
