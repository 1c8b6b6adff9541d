"""Thousands of messages, half of them not quite right: nothing escapes, and nothing is left when the client is gone."""

from pathlib import Path
from typing import cast

import pytest

from kyanite.services.smb.commands import COMMANDS, CommandRow, Needs
from kyanite.services.smb.connections import connection
from kyanite.services.smb.request import Answer
from kyanite.wire.smb2.header import Command
from kyanite.wire.smb2.status import Status
from tests import profiles
from tests.services.smb.fuzzing.run import run

INPUTS = 4_000
SEED = 11


async def test_valid_conversations_are_understood(tmp_path: Path) -> None:
    report = await run(tmp_path, seed=SEED, inputs=INPUTS // 2, mutation_rate=0.0)
    assert report.statuses[Command.TREE_CONNECT, Status.SUCCESS] >= report.conversations
    assert report.statuses[Command.CREATE, Status.SUCCESS] > INPUTS // 20
    assert report.closed == 0


async def test_conversations_with_mistakes_do_no_harm(tmp_path: Path) -> None:
    report = await run(tmp_path, seed=SEED, inputs=profiles.examples(INPUTS), mutation_rate=0.5)
    assert report.inputs >= INPUTS
    assert report.closed


async def _broken(_request: object) -> Answer:
    raise KeyError("planted")


async def test_a_bug_of_a_handler_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        cast(dict[int, CommandRow], COMMANDS), Command.ECHO, CommandRow(Needs.NOTHING, _broken)
    )
    with pytest.raises(AssertionError, match="planted"):
        await run(tmp_path, seed=SEED, inputs=INPUTS, mutation_rate=0.5)


async def test_a_handle_that_is_left_open_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def close_nothing(*_opens: object, **_options: object) -> None:
        pass

    monkeypatch.setattr(connection, "close_opens", close_nothing)
    with pytest.raises(AssertionError, match="rows that no client has left"):
        await run(tmp_path, seed=SEED, inputs=INPUTS, mutation_rate=0.5)
