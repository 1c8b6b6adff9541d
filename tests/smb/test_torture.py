"""smbtorture: the sub-tests that smbd passes quickly, but for those that this server is known to fail.

``make smb-torture`` runs all of them, against smbd as well.
"""

import fnmatch
from collections.abc import Iterator

import pytest

from tests.server_process import ServerProcess
from tests.smb.smbd import Smbd
from tests.smb.torture import results, runs, subtests
from tests.smb.torture.exceptions import EXCEPTIONS, reason_for
from tests.smb.torture.runs import Run
from tests.smb.torture.targets import KyaniteTarget, SmbdTarget, Target

QUICK_SECONDS = 4.5
FURTHER_SECONDS = 0.9
"""What takes smbd longer, in required suites and in others, is left to the whole run."""
LIMIT_SECONDS = 60.0


def quick() -> list[str]:
    return [
        name
        for name, seconds in results.baseline().items()
        if seconds < (QUICK_SECONDS if subtests.suite_of(name) in subtests.REQUIRED else FURTHER_SECONDS)
        and reason_for(name) is None
    ]


@pytest.fixture(scope="session")
def target(server: ServerProcess) -> Target:
    return KyaniteTarget(server)


@pytest.fixture(scope="session")
def smbd() -> Iterator[Smbd]:
    with Smbd(["share"]) as started:
        yield started


def run_on(target: Target, name: str) -> Run:
    return runs.run(name, target.login, target.empty_share(0, name), limit_seconds=LIMIT_SECONDS)


@pytest.mark.parametrize("name", quick())
def test_this_server_passes(target: Target, name: str) -> None:
    run = run_on(target, name)
    assert run.has_passed, run.output


def test_the_oracle_passes_what_it_passed_before(smbd: Smbd) -> None:
    run = run_on(SmbdTarget(smbd), "smb2.connect")
    assert run.has_passed, run.output


def test_a_failing_sub_test_is_a_failure(smbd: Smbd) -> None:
    assert "smb2.create.gentest" not in results.baseline()
    run = run_on(SmbdTarget(smbd), "smb2.create.gentest")
    assert run.outcome is runs.Outcome.FAILED
    assert "NT_STATUS_INVALID_PARAMETER" in run.output


def test_a_skipped_sub_test_has_not_passed(smbd: Smbd) -> None:
    run = run_on(SmbdTarget(smbd), "smb2.session.expire1n")
    assert run.outcome is runs.Outcome.SKIPPED
    assert not run.has_passed


def test_a_sub_test_has_a_limit_of_time(smbd: Smbd) -> None:
    target = SmbdTarget(smbd)
    run = runs.run("smb2.connect", target.login, "share", limit_seconds=0.0)
    assert run.outcome is runs.Outcome.TIMED_OUT


def test_every_suite_is_chosen_or_left_out() -> None:
    chosen = [*subtests.REQUIRED, *subtests.FURTHER]
    assert {subtests.suite_of(name) for name in subtests.known()} == {*chosen, *subtests.LEFT_OUT}
    assert len(chosen) == len(set(chosen))


def test_exceptions_are_sub_tests_that_smbd_passes() -> None:
    assert all(fnmatch.filter(results.baseline(), pattern) for pattern in EXCEPTIONS)
