"""``python -m tests.smb.torture [SUITE or SUB-TEST...]``: run them against smbd and this server and compare.

Results are kept in .torture/, so that a later run of some suites completes an earlier one. The exit code is 1 if this
server passes fewer than 95 of 100 sub-tests that smbd passes in the required suites.
"""

import argparse
import os
import queue
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

from tests.smb.torture import page, report, results, subtests
from tests.smb.torture.runs import LIMIT_SECONDS, Run, run
from tests.smb.torture.targets import TARGETS, Target

REQUIRED_PART = 0.95


def main() -> int:
    options = _options()
    names = subtests.selected(options.suites or (*subtests.REQUIRED, *subtests.FURTHER))
    for target in options.against.split(",") if options.against != "none" else ():
        _run_against(target, names, options.lanes, options.limit)
    smbd, kyanite = results.load("smbd"), results.load("kyanite")
    if options.write_baseline:
        results.save_baseline(smbd)
    if options.write_page:
        page.write(smbd, kyanite, names)
    print("\n".join(report.differences(smbd, kyanite, names)))
    print(report.table(smbd, kyanite, names))
    return 0 if _is_enough(smbd, kyanite, names) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.smb.torture", description=__doc__)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help="as in smb2.SUITE; or a whole name")
    parser.add_argument(
        "--against",
        default=",".join(TARGETS),
        help="the servers to run, separated by commas; 'none' for the last results",
    )
    parser.add_argument("--lanes", type=int, default=os.cpu_count() or 1, help="sub-tests at a time")
    parser.add_argument("--limit", type=float, default=LIMIT_SECONDS, help="seconds for a sub-test")
    parser.add_argument("--write-baseline", action="store_true", help="what smbd passes is the new baseline")
    parser.add_argument("--write-page", action="store_true", help="write docs/smb-torture.md")
    return parser.parse_args()


def _run_against(name: str, names: Sequence[str], lanes: int, limit_seconds: float) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="torture-", ignore_cleanup_errors=True) as folder,
        TARGETS[name](Path(folder), lanes) as target,
    ):
        runs = run_all(target, names, lanes, limit_seconds)
        for problem in target.problems()[:20]:
            print(f"{name} logged an error: {problem}")
    results.save(name, {**results.load(name), **runs})


def run_all(
    target: Target, names: Sequence[str], lanes: int, limit_seconds: float = LIMIT_SECONDS
) -> dict[str, Run]:
    """Run sub-tests, some at a time."""
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    for name in names:
        waiting.put(name)
    runs: dict[str, Run] = {}

    def work(lane: int) -> None:
        while True:
            try:
                name = waiting.get_nowait()
            except queue.Empty:
                return
            done = run(name, target.login, target.empty_share(lane, name), limit_seconds=limit_seconds)
            runs[name] = done
            print(f"{done.outcome:9}  {done.seconds:6.2f} s  {name}", flush=True)

    threads = [threading.Thread(target=work, args=(lane,)) for lane in range(lanes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return runs


def _is_enough(smbd: report.Runs, kyanite: report.Runs, names: Sequence[str]) -> bool:
    required = [name for name in names if subtests.suite_of(name) in subtests.REQUIRED]
    by_smbd = [name for name in required if name in smbd and smbd[name].has_passed]
    by_both = [name for name in by_smbd if name in kyanite and kyanite[name].has_passed]
    return len(by_both) >= REQUIRED_PART * len(by_smbd)


if __name__ == "__main__":
    sys.exit(main())
