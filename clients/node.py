"""The JavaScript libraries: each has a script in ``node/`` that makes the checks and tells them line by line."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from clients import installs
from clients.place import Place
from clients.report import Report

_SCRIPTS = Path(__file__).parent / "node"
_TIMEOUT_SECONDS = 600


def suite(service: str) -> Callable[[Place, Report], None]:
    """The suite of the library for a service."""

    def run(place: Place, report: Report) -> None:
        if not place.offers(service):
            report.not_there(service)
            return
        environment = {
            **os.environ,
            "NODE_PATH": str(installs.node_modules()),
            "AZURE_STORAGE_CONNECTION_STRING": place.connection_string,
            "AZURE_STORAGE_ACCOUNT": place.server.account,
            "AZURE_STORAGE_KEY": place.server.account_key,
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
        _tell(done.stdout, report)
        if done.returncode:
            report.failed("the script comes to its end", done.stderr)

    return run


def _tell(output: str, report: Report) -> None:
    for line in output.splitlines():
        outcome = json.loads(line)
        if outcome["error"]:
            report.failed(outcome["name"], outcome["error"])
        else:
            report.passed(outcome["name"])
