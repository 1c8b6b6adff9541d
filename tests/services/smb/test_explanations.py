"""Refusals of SMB are kept under ids of their own, which the request log tells."""

from kyanite.model.requests.explanations import explain
from kyanite.model.requests.rules_in_words import RULES
from kyanite.rules.refusals import Reason
from kyanite.services.smb.environment import CompletedRequest
from kyanite.wire.smb2.header import Command
from kyanite.wire.smb2.status import Status
from tests.services.smb.connections.test_dead_processes import EVERYTHING, lock_body, opened
from tests.services.smb.raw_client import create_body
from tests.services.smb.service import SmbService


async def test_a_share_mode_and_a_lock_are_explained(smb: SmbService) -> None:
    completed: list[CompletedRequest] = []
    smb.environment.on_completed = completed.append
    first, second = await smb.connected(), await smb.connected()
    await opened(first, "alone", share=0)
    own = await opened(first, "shared")
    other = await opened(second, "shared")
    assert (await first.request(Command.LOCK, lock_body(own))).status == Status.SUCCESS
    await second.request(Command.CREATE, create_body("alone", access=EVERYTHING))
    await second.request(Command.LOCK, lock_body(other))
    await second.request(Command.CREATE, create_body("missing", access=EVERYTHING))
    refused = [each for each in completed if each.refusal_id]
    found = [
        explain(refusal) for each in refused if (refusal := smb.environment.refusals.find(each.refusal_id))
    ]
    assert [(each.operation, each.code, each.account, each.url) for each in found] == [
        ("CREATE", "SHARING_VIOLATION", "acme", "/share"),
        ("LOCK", "LOCK_NOT_GRANTED", "acme", "/share"),
    ]
    assert "lets others open it for nothing of that." in found[0].sentences[1]
    assert found[1].sentences == (RULES[Reason.LOCK_NOT_GRANTED],)
