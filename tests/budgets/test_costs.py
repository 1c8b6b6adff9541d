"""What a hot operation may cost, in counts that are the same on every machine.

The ceilings are what was reached, and two calls more. Who makes an operation cheaper lowers its ceiling. One that
becomes dearer needs a reason as good as the feature it pays for;
``python -m bench.costs --functions "Put Blob, 1 KiB"`` shows where its calls go, and its statements.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]


class Budget(NamedTuple):
    calls: int
    """Of Python functions, in all threads."""
    statements: int
    rows_read: int
    rows_written: int
    hand_overs: int
    """Jobs for another thread: a commit is one."""


# fmt: off
BUDGETS = {
    "Put Blob, 1 KiB": Budget(152, 6, 1, 2, 1),
    "Get Blob, 1 KiB": Budget(99, 5, 3, 0, 0),
    "Put Blob, If-Match": Budget(169, 7, 2, 3, 1),
    "Lease Blob, acquire": Budget(121, 5, 2, 1, 1),
    "Lease Blob, renew": Budget(119, 5, 2, 1, 1),
    "Lease Blob, release": Budget(116, 5, 2, 1, 1),
    "Put Blob, 64 KiB": Budget(242, 5, 1, 2, 2),
    "Put Blob, 1 MiB": Budget(265, 5, 1, 2, 2),
    "Get Blob, 1 MiB": Budget(173, 5, 3, 0, 0),
    "Put Block": Budget(157, 6, 1, 3, 1),
    "Put Block, 4 MiB": Budget(472, 6, 1, 3, 5),
    "Put Block List": Budget(200, 8, 3, 4, 1),
    "Put Message": Budget(119, 5, 2, 2, 1),
    "Get Messages": Budget(125, 7, 2, 2, 1),
    "Update Message": Budget(121, 7, 2, 2, 1),
    "Delete Message": Budget(116, 7, 3, 2, 1),
    "Insert Entity": Budget(142, 5, 1, 1, 1),
    "Query Entities, by keys": Budget(75, 4, 2, 0, 0),
    "Merge Entity": Budget(142, 5, 2, 1, 1),
    "batch of 100 inserts": Budget(2_790, 11, 1, 100, 1),
    "Create File": Budget(246, 5, 18, 2, 1),
    "Put Range, 1 KiB": Budget(221, 6, 2, 2, 1),
    "Get File, 1 KiB": Budget(151, 5, 3, 0, 0),
    "List Blobs, 5,000": Budget(443, 8, 5_502, 0, 0),
    "List Blobs, 100 by prefix": Budget(117, 4, 101, 0, 0),
    "List Blobs, 20 folders": Budget(230, 24, 21, 0, 0),
    "Query Entities, 1,000": Budget(84, 4, 1_001, 0, 0),
}
# fmt: on


@pytest.mark.interpreted("calls of compiled functions are not seen")
def test_operations_keep_to_their_budgets() -> None:
    costs = measured()
    assert costs.keys() == BUDGETS.keys()
    dearer = {
        name: (cost, BUDGETS[name])
        for name, cost in costs.items()
        if any(spent > ceiling for spent, ceiling in zip(cost, BUDGETS[name], strict=True))
    }
    assert not dearer


def measured() -> dict[str, Budget]:
    """Measured in a process of its own, where nothing but the operations runs."""
    command = [sys.executable, "-m", "bench.costs", "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=240, check=False)
    assert ended.returncode == 0, ended.stderr
    return {
        name: Budget(*(cost[field] for field in Budget._fields))
        for name, cost in json.loads(ended.stdout).items()
    }
