"""Handles of dead processes refuse nothing, and nothing waits for them."""

import asyncio

import pytest

from kyanite.engine.api import Transaction
from kyanite.engine.memory.engine import MemoryEngine
from kyanite.model.files import file
from kyanite.model.files.opens import owners, waits
from kyanite.model.files.opens.waits import Wait
from kyanite.rules.refusals import Reason, Refused
from kyanite.rules.share_modes import Rights
from tests.model.content.world import outcome
from tests.model.files.builders import FileShare
from tests.services.smb.client import Membership

DEAD, ALIVE = b"dead--------", b"alive-------"


@pytest.fixture
def files() -> FileShare:
    share = FileShare(MemoryEngine())
    share.make_file("f", 10)
    return share


def test_their_handles_are_closed_and_no_others(files: FileShare) -> None:
    file_id = files.find_id("f")
    for _ in range(250):
        files.open("f", owner=DEAD)
    kept = files.open("f", owner=ALIVE)
    membership = Membership(dead=[DEAD])
    assert outcome(owners.close_handles_of_dead(files.engine, membership))
    opened = files.open_file(file_id)
    assert opened is not None
    assert opened.handle_count == 1
    assert files.handle(file_id, kept.id) == kept
    assert not outcome(owners.close_handles_of_dead(files.engine, membership))


@pytest.mark.parametrize("owner", [DEAD, ALIVE])
def test_a_refusal_is_outdated_when_its_handle_was_of_a_dead_process(files: FileShare, owner: bytes) -> None:
    files.open("f", Rights.READ, Rights.NONE, owner=owner)
    delete = file.delete(files.engine, files.path("f"), None)
    with pytest.raises(Refused) as refusal:
        outcome(delete)
    membership = Membership(dead=[DEAD])
    is_outdated = outcome(owners.is_outdated(refusal.value, files.engine, membership))
    assert is_outdated is (owner == DEAD)
    missing = Refused(Reason.PATH_NOT_FOUND)
    files.open("f", Rights.NONE, owner=DEAD)
    assert not outcome(owners.is_outdated(missing, files.engine, membership))


def test_a_mark_for_deletion_goes_with_the_process(files: FileShare) -> None:
    files.open("f", Rights.DELETE, owner=DEAD, deletes_on_close=True)
    files.mark("f")
    outcome(owners.close_handles_of_dead(files.engine, Membership(dead=[DEAD])))
    assert files.open("f").id


def test_a_body_that_waits_for_a_dead_process_runs_again(files: FileShare) -> None:
    files.open("f", owner=DEAD)
    pauses = 0

    def body(tx: Transaction) -> Wait | bool:
        is_open = files.find(tx, "f").entry.id in [
            int.from_bytes(key[9:17], "big") for key, _ in tx.scan(b"H", b"I")
        ]
        return Wait(b"topic") if is_open else True

    async def waiting(_: object) -> None:
        nonlocal pauses
        pauses += 1

    running = waits.run_until_done(
        files.engine, body, membership=Membership(dead=[DEAD]), durable=False, waiting=waiting
    )
    assert asyncio.run(asyncio.wait_for(running, 10))
    assert pauses == 0
