"""Results of runs as files: one for each server, in a folder that ``make clean`` removes."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from tests.smb.torture.runs import Outcome, Run

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / ".torture"
BASELINE = Path(__file__).with_name("smbd.json")
"""What smbd passes, and in how many seconds: the sub-tests that this server is held to."""


def load(target: str) -> dict[str, Run]:
    """The results of a server, by sub-test; empty if it has none yet."""
    path = FOLDER / f"{target}.json"
    if not path.exists():
        return {}
    stored = json.loads(path.read_text())
    return {
        name: Run(name, Outcome(run["outcome"]), run["seconds"], run["output"])
        for name, run in stored.items()
    }


def save(target: str, runs: Mapping[str, Run]) -> None:
    FOLDER.mkdir(exist_ok=True)
    text = json.dumps({name: asdict(runs[name]) for name in sorted(runs)}, indent=1)
    (FOLDER / f"{target}.json").write_text(text + "\n")


def baseline() -> dict[str, float]:
    """The sub-tests that smbd passes, with the seconds that each took."""
    stored: dict[str, float] = json.loads(BASELINE.read_text())
    return stored


def save_baseline(runs: Mapping[str, Run]) -> None:
    passed = {name: runs[name].seconds for name in sorted(runs) if runs[name].has_passed}
    BASELINE.write_text(json.dumps(passed, indent=1) + "\n")
