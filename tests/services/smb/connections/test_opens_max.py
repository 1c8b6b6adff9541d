"""How much a client may have open."""

import pytest

from kyanite.services.smb import create
from kyanite.wire.smb2.header import Command
from kyanite.wire.smb2.status import Status
from tests.services.smb.raw_client import create_body
from tests.services.smb.service import SmbService


async def test_a_session_has_so_many_opens_at_most(smb: SmbService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(create, "OPENS_MAX", 3)
    client = await smb.connected()
    statuses = [(await client.request(Command.CREATE, create_body(""))).status for _ in range(4)]
    assert statuses == [Status.SUCCESS] * 3 + [Status.INSUFFICIENT_RESOURCES]
    assert await smb.handle_count() == 3
