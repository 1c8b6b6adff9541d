"""The JavaScript libraries: each has a script in ``node/`` that makes the checks and prints a line for each."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from clients import installs
from clients.report import Report
from clients.workspace import Workspace

_SCRIPTS = Path(__file__).parent / "node"
_TIMEOUT_SECONDS = 600


def suite(service: str) -> Callable[[Workspace, Report], None]:
    """The suite of the library for a service."""

    def run(workspace: Workspace, report: Report) -> None:
        if not workspace.offers(service):
            report.not_there(service)
            return
        environment = {
            **os.environ,
            "NODE_PATH": str(installs.node_modules()),
            "AZURE_STORAGE_CONNECTION_STRING": workspace.connection_string,
            "AZURE_STORAGE_ACCOUNT": workspace.server.account,
            "AZURE_STORAGE_KEY": workspace.server.account_key,
        }
        done = subprocess.run(
            [str(installs.node()), str(_SCRIPTS / f"{service}.cjs")],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
        _count(done.stdout, report)
        if done.returncode:
            report.failed("the script runs to the end", done.stderr)

    return run


def _count(output: str, report: Report) -> None:
    for line in output.splitlines():
        outcome = json.loads(line)
        if outcome["error"]:
            report.failed(outcome["name"], outcome["error"])
        else:
            report.passed(outcome["name"])
