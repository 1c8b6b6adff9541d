"""Clients of both protocols on few files: every history is one of files that do one thing at a time."""

from pathlib import Path

import pytest
from azure.storage.fileshare import ShareClient

from tests import profiles
from tests.server_process import ServerProcess
from tests.smb.histories import checker
from tests.smb.histories.checker import is_linearisable, violations
from tests.smb.histories.clients import BYTES, CachingClient, RestClient, SmbClient
from tests.smb.histories.history import Access, History, Kind
from tests.smb.histories.toy import Bug, ToyClient, ToyStore
from tests.smb.histories.workload import FIRST_VALUE, HistoryClient, run
from tests.smb.shares import KyaniteShare

SEED = 5
FILES = ("one", "two", "three")
READ, WRITE = Kind.READ, Kind.WRITE


def test_clients_of_both_protocols(tmp_path: Path) -> None:
    history = History()
    with ServerProcess("--workers", "3", location=tmp_path) as server:
        share = KyaniteShare(server, "share")
        for file in FILES:
            share.put(file, bytes(BYTES))
        run(clients(server, share, history), FILES, seed=SEED, acts=profiles.examples(40))
        assert violations(history, FIRST_VALUE) == []
    assert len(history.accesses) > 100
    assert {each.kind for each in history.accesses if each.is_rest} == {READ, WRITE}
    assert {each.what for each in history.holdings} == checker.FORBIDDEN_TO_REST.keys()
    assert sum(history.refusals.values()) > 10


def clients(server: ServerProcess, share: KyaniteShare, history: History) -> list[HistoryClient]:
    def rest() -> ShareClient:
        endpoint = server.endpoints["file"]
        return ShareClient(endpoint, share.name, credential=server.account_key, retry_total=0)

    return [
        *(RestClient(f"REST {number}", rest(), history) for number in range(3)),
        *(SmbClient(f"SMB {number}", share.login, share.name, history) for number in range(3)),
        *(CachingClient(f"caching {number}", share.login, share.name, history) for number in range(2)),
    ]


# --- The checker finds bugs


@pytest.mark.parametrize("bug", [None, *Bug])
def test_the_checker_finds_planted_bugs(bug: Bug | None) -> None:
    history = History()
    store = ToyStore(bug)
    made = [ToyClient(str(number), store, history) for number in range(6)]
    run(made, FILES, seed=SEED, acts=60)
    assert bool(violations(history, FIRST_VALUE)) == (bug is not None)


Step = tuple[Kind, int, int, int]


@pytest.mark.parametrize(
    ("steps", "is_fine"),
    [
        ([], True),
        ([(READ, FIRST_VALUE, 0, 1)], True),
        ([(READ, 7, 0, 1)], False),
        ([(WRITE, 7, 0, 1), (READ, 7, 2, 3)], True),
        ([(WRITE, 7, 0, 1), (READ, FIRST_VALUE, 2, 3)], False),
        ([(WRITE, 7, 0, 5), (READ, FIRST_VALUE, 1, 2), (READ, 7, 3, 4)], True),
        ([(WRITE, 7, 0, 5), (READ, 7, 1, 2), (READ, FIRST_VALUE, 3, 4)], False),
        ([(WRITE, 7, 0, 5), (WRITE, 8, 0, 5), (READ, 8, 6, 7), (READ, 8, 8, 9)], True),
        ([(WRITE, 7, 0, 5), (WRITE, 8, 0, 5), (READ, 8, 6, 7), (READ, 7, 8, 9)], False),
        ([(WRITE, 7, 0, 1), (WRITE, 8, 2, 3), (READ, 7, 4, 5)], False),
    ],
)
def test_reads_have_the_value_of_the_last_write(steps: list[Step], is_fine: bool) -> None:
    accesses = [
        Access("client", "file", kind, value, began_at, ended_at, False)
        for kind, value, began_at, ended_at in steps
    ]
    assert is_linearisable(accesses, FIRST_VALUE) == is_fine
