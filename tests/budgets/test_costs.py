"""What a hot operation may cost: no more calls of Python functions and no more SQL statements than commit 394e107.

An operation that becomes cheaper may keep its budget. One that becomes dearer needs a reason as good as the feature it
pays for; ``python -m bench.costs --functions "Put Blob, 1 KiB"`` shows where its calls go.
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
    statements: int


BUDGETS = {
    "Put Blob, 1 KiB": Budget(calls=178, statements=8),
    "Get Blob, 1 KiB": Budget(calls=104, statements=5),
    "Put Blob, If-Match": Budget(calls=195, statements=9),
    "Lease Blob, acquire": Budget(calls=138, statements=6),
    "Lease Blob, renew": Budget(calls=136, statements=6),
    "Lease Blob, release": Budget(calls=132, statements=6),
    "Get Blob, 1 MiB": Budget(calls=176, statements=6),
    "Put Block": Budget(calls=181, statements=10),
    "Put Block List": Budget(calls=220, statements=11),
    "Put Message": Budget(calls=147, statements=7),
    "Get Messages": Budget(calls=155, statements=7),
    "Delete Message": Budget(calls=135, statements=8),
    "Insert Entity": Budget(calls=158, statements=6),
    "Query Entities, by keys": Budget(calls=79, statements=4),
    "batch of 100 inserts": Budget(calls=5_172, statements=12),
    "Create File": Budget(calls=289, statements=10),
    "Put Range, 1 KiB": Budget(calls=235, statements=8),
    "Get File, 1 KiB": Budget(calls=151, statements=6),
    "List Blobs, 5,000": Budget(calls=20_087, statements=4),
    "Query Entities, 1,000": Budget(calls=84, statements=4),
}


@pytest.mark.interpreted("calls of compiled functions are not seen")
def test_operations_keep_to_their_budgets() -> None:
    costs = measured()
    assert costs.keys() == BUDGETS.keys()
    dearer = {
        name: (cost, BUDGETS[name])
        for name, cost in costs.items()
        if cost.calls > BUDGETS[name].calls or cost.statements > BUDGETS[name].statements
    }
    assert not dearer


def measured() -> dict[str, Budget]:
    """Measured in a process of its own, where nothing but the operations runs."""
    command = [sys.executable, "-m", "bench.costs", "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=240, check=False)
    assert ended.returncode == 0, ended.stderr
    return {
        name: Budget(cost["calls"], cost["statements"]) for name, cost in json.loads(ended.stdout).items()
    }
