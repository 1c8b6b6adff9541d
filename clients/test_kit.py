"""The test kit from JavaScript: the suite of ``examples/testing-javascript``, which starts a server of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path

from clients import installs
from clients.report import Report
from clients.workspace import CommandFailed, Workspace

_EXAMPLE = installs.ROOT / "examples" / "testing-javascript"
_TIMEOUT_SECONDS = 300
_RESULT = re.compile(r"^(ok|not ok) \d+ - (.*?)(?: # .*)?$", re.MULTILINE)


def suite(_workspace: Workspace, report: Report) -> None:
    done = subprocess.run(
        [str(installs.node()), "--test", "--test-reporter=tap", "--test-reporter-destination=stdout"],
        cwd=_EXAMPLE,
        env={
            **os.environ,
            "NODE_PATH": str(installs.node_modules()),
            "KYANITE": str(Path(sys.executable).with_name("kyanite")),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_SECONDS,
        check=False,
    )
    results = _RESULT.findall(done.stdout)
    for outcome, name in results:
        if outcome == "ok":
            report.passed(name)
        else:
            report.failed(name, done.stdout)
    if done.returncode or not results:
        raise CommandFailed(f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
