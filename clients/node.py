"""The JavaScript libraries: each has a script in ``node/`` that makes the checks and tells them line by line."""

from collections.abc import Callable
from pathlib import Path

from clients import installs
from clients.place import Place
from clients.report import Report
from clients.scripts import run_script

_SCRIPTS = Path(__file__).parent / "node"


def suite(service: str) -> Callable[[Place, Report], None]:
    """The suite of the library for a service."""

    def run(place: Place, report: Report) -> None:
        if not place.offers(service):
            report.not_there(service)
            return
        node_path = {"NODE_PATH": str(installs.node_modules())}
        run_script([str(installs.node()), str(_SCRIPTS / f"{service}.cjs")], place, report, node_path)

    return run
