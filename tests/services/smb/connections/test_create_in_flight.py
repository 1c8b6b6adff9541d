"""A CREATE that is under way when its client logs off, disconnects or goes leaves nothing open."""

import asyncio
from typing import Any

import pytest

from kyanite.services.smb import create
from kyanite.wire.smb2.header import Command
from kyanite.wire.smb2.status import Status
from tests.services.smb.raw_client import EMPTY, create_body
from tests.services.smb.service import SmbService


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Keeps a CREATE under way, with its handle written, until it is set."""
    gate, run = asyncio.Event(), create._run

    async def run_and_wait(*arguments: Any, **options: Any) -> Any:
        outcome = await run(*arguments, **options)
        await gate.wait()
        return outcome

    monkeypatch.setattr(create, "_run", run_and_wait)
    return gate


@pytest.mark.parametrize("command", [Command.LOGOFF, Command.TREE_DISCONNECT])
async def test_the_client_logs_off_or_disconnects(
    smb: SmbService, gate: asyncio.Event, command: Command
) -> None:
    client = await smb.connected()
    await client.echo(credits=8)
    client.give(client.message(Command.CREATE, create_body("f", disposition=2)))
    client.give(client.message(command, EMPTY))
    assert await smb.handle_count() == 1
    assert client.transport.sent.empty()
    gate.set()
    found = {reply.command: reply.status for _ in range(2) for reply in await client.next()}
    assert found == {Command.CREATE: Status.SUCCESS, command: Status.SUCCESS}
    assert await smb.handle_count() == 0


async def test_the_client_goes(smb: SmbService, gate: asyncio.Event) -> None:
    client = await smb.connected()
    client.give(client.message(Command.CREATE, create_body("f", disposition=2)))
    leaving = asyncio.create_task(client.leave())
    await asyncio.sleep(0)
    assert await smb.handle_count() == 1
    gate.set()
    await leaving
    assert await smb.handle_count() == 0
