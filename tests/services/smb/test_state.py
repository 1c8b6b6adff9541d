"""What a CREATE reads of the path that it names."""

from typing import Any, cast

import pytest
from bench.rounds import CountedEngine, Rounds

from kyanite.engine.api import Transaction
from kyanite.engine.memory.engine import MemoryEngine
from kyanite.model.files import guesses, share_snapshots, tree
from kyanite.model.files.guesses import Guesses
from kyanite.model.files.share_snapshots import Snapshots
from kyanite.rules.refusals import Reason, Refused
from kyanite.services.smb.state import TreeConnect
from tests.model.content.world import outcome
from tests.model.files.builders import SHARE, FileShare

NAMES = ("a", "b", "c", "d", "file")


def find(tx: Transaction, connected: TreeConnect) -> int | None:
    """As opening does."""
    share_tree, rows = connected.load_path(tx, NAMES)
    location = tree.location_of(tx, share_tree, NAMES, rows)
    entry = tree.look_up(tx, location, rows)[1]
    return None if entry is None else entry.id


def test_a_path_is_one_round_and_another_share_of_the_name_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(guesses, "known", Guesses())
    rounds = Rounds()
    files = FileShare(CountedEngine(MemoryEngine(), rounds))
    for depth in range(1, len(NAMES)):
        files.make_directory("/".join(NAMES[:depth]))
    file_id = files.make_file("/".join(NAMES))
    connected = TreeConnect(1, cast(Any, None), SHARE, files.id)
    rounds.clear()
    assert outcome(files.engine.run(lambda tx: find(tx, connected))) == file_id
    assert rounds.reads == 1
    outcome(share_snapshots.delete(files.engine, SHARE, None, Snapshots.INCLUDE))
    FileShare(files.engine)
    with pytest.raises(Refused) as refusal:
        outcome(files.engine.run(lambda tx: find(tx, connected)))
    assert refusal.value.reason is Reason.SHARE_NOT_FOUND
