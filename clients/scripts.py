"""Suites that run in a process of their own and tell each check in a line of JSON.

A client in another language needs that, and so does a library whose failure may end the process: the checks that were
told before it count all the same.
"""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence

from clients.installs import ROOT
from clients.place import Place
from clients.report import Report

_TIMEOUT_SECONDS = 600


def run_script(
    command: Sequence[str], place: Place, report: Report, environment: Mapping[str, str] | None = None
) -> None:
    """Run the script with the address and the key of the account, and count what it tells."""
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **_account(place), **(environment or {})},
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


def _account(place: Place) -> Mapping[str, str]:
    return {
        "AZURE_STORAGE_CONNECTION_STRING": place.connection_string,
        "AZURE_STORAGE_ACCOUNT": place.server.account,
        "AZURE_STORAGE_KEY": place.server.account_key,
        "AZURE_STORAGE_BLOB_ENDPOINT": place.server.endpoints.get("blob", ""),
    }
