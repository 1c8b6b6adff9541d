"""The JavaScript libraries: each has a script in ``node/`` that makes the checks and prints a line for each."""

from collections.abc import Callable
from pathlib import Path

from clients import installs
from clients.report import Report
from clients.scripts import run_script
from clients.workspace import Workspace

_SCRIPTS = Path(__file__).parent / "node"


def suite(service: str) -> Callable[[Workspace, Report], None]:
    """The suite of the library for a service."""

    def run(workspace: Workspace, report: Report) -> None:
        if not workspace.offers(service):
            report.not_there(service)
            return
        node_path = {"NODE_PATH": str(installs.node_modules())}
        run_script([str(installs.node()), str(_SCRIPTS / f"{service}.cjs")], workspace, report, node_path)

    return run
