"""One run of one sub-test: a process, its output, and what that says."""

import enum
import os
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.smb.programs import HOST, Login, program

LIMIT_SECONDS = 180.0


class Outcome(enum.StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    """The sub-test found that it does not apply."""
    TIMED_OUT = "timed out"
    CRASHED = "crashed"
    """smbtorture ended without a word on the sub-test."""


@dataclass(frozen=True, slots=True)
class Run:
    name: str
    outcome: Outcome
    seconds: float
    output: str

    @property
    def has_passed(self) -> bool:
        return self.outcome is Outcome.PASSED


def run(name: str, login: Login, share: str, *, limit_seconds: float = LIMIT_SECONDS) -> Run:
    """Run a sub-test against a share and wait for its end."""
    with tempfile.TemporaryDirectory(prefix="torture-") as folder:
        command = [program("smbtorture"), *login.write(Path(folder)), f"//{HOST}/{share}", name]
        began_at = time.monotonic()
        output, code = _output_of(command, folder, limit_seconds)
        return Run(name, _outcome(output, code), round(time.monotonic() - began_at, 2), _cleaned(output))


def _output_of(command: list[str], folder: str, limit_seconds: float) -> tuple[str, int | None]:
    """The output of a command and its exit code, or no code if it had to be ended with all its children."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        cwd=folder,
        start_new_session=True,
    )
    try:
        return process.communicate(timeout=limit_seconds)[0], process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.communicate()[0], None


def _outcome(output: str, code: int | None) -> Outcome:
    if code is None:
        return Outcome.TIMED_OUT
    first_words = [line.split(" ")[0] for line in output.splitlines()]
    if {"failure:", "error:"} & set(first_words):
        return Outcome.FAILED
    if "success:" in first_words:
        return Outcome.PASSED if code == 0 else Outcome.FAILED
    return Outcome.SKIPPED if "skip:" in first_words else Outcome.CRASHED


def _cleaned(output: str) -> str:
    """Without the lines that differ from run to run and say nothing."""
    dull = ("smbtorture ", "Using seed", "time: ")
    return "\n".join(line for line in output.splitlines() if not line.startswith(dull))
