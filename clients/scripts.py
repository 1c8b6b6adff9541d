"""Suites that run in a process of their own and tell each check in a line of JSON.

A client in another language needs that, and so does a library whose failure may end the process: the checks that were
told before it count all the same.
"""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence

from clients.installs import ROOT
from clients.report import Report
from clients.workspace import Workspace

_TIMEOUT_SECONDS = 600


def run_script(
    command: Sequence[str], workspace: Workspace, report: Report, environment: Mapping[str, str] | None = None
) -> None:
    """Run the script with the address and the key of the account, and count what it tells."""
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **_account(workspace), **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_SECONDS,
        check=False,
    )
    for line in done.stdout.splitlines():
        outcome = json.loads(line)
        if outcome["error"]:
            report.failed(outcome["name"], outcome["error"])
        else:
            report.passed(outcome["name"])
    if done.returncode:
        report.failed("the script comes to its end", f"exit code {done.returncode}\n{done.stderr}")


def _account(workspace: Workspace) -> Mapping[str, str]:
    return {
        "AZURE_STORAGE_CONNECTION_STRING": workspace.connection_string,
        "AZURE_STORAGE_ACCOUNT": workspace.server.account,
        "AZURE_STORAGE_KEY": workspace.server.account_key,
        "AZURE_STORAGE_BLOB_ENDPOINT": workspace.server.endpoints.get("blob", ""),
    }
