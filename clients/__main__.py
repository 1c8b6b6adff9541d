"""``python -m clients``: fetch the clients, start a server, run the suites. Exit code 1 when a check failed."""

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.server_process import ServerProcess

from clients import (
    az_history,
    command_line,
    installs,
    node,
    pages,
    python,
    samba,
    test_kit,
    tokens,
    transfers,
)
from clients.installs import UnavailableError
from clients.report import Report
from clients.workspace import CommandFailed, Workspace

Suite = Callable[[Workspace, Report], None]

SUITES: Mapping[str, Suite] = {
    "azcopy": transfers.suite,
    "node-blob": node.suite("blob"),
    "node-queue": node.suite("queue"),
    "node-table": node.suite("table"),
    "node-file": node.suite("file"),
    "pages": pages.suite,
    "pyarrow": python.suite("arrow_files"),
    "obstore": python.suite("rust_objects"),
    "az": command_line.suite,
    "az-history": az_history.suite,
    "smbclient": samba.suite,
    "node-tokens": tokens.node_suite,
    "azcopy-tokens": tokens.azcopy_suite,
    "node-testing": test_kit.suite,
}


def main() -> int:
    options = _options()
    report = Report()
    made = tempfile.TemporaryDirectory(prefix="run-", dir=installs.home(), ignore_cleanup_errors=True)
    with made as folder, ServerProcess() as server:
        for name in options.clients or SUITES:
            workspace = Workspace(server, Path(folder) / name)
            workspace.folder.mkdir()
            try:
                SUITES[name](workspace, report.of(name))
            except UnavailableError as problem:
                report.of(name).failed("is installed", str(problem))
            except CommandFailed as problem:
                report.of(name).failed("runs to the end", str(problem))
        with report.of("server").check("it logged no errors"):
            _check_log(server)
    print(report.summary())
    return 1 if report.failures else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m clients", description=__doc__)
    parser.add_argument("clients", nargs="*", metavar="CLIENT", help=f"any of: {', '.join(SUITES)}")
    options = parser.parse_args()
    if unknown := set(options.clients) - set(SUITES):
        parser.error(f"there is no client {unknown.pop()}")
    return options


def _check_log(server: ServerProcess) -> None:
    errors = [line for line in server.log if line.get("level") in {"error", "critical"}]
    if errors:
        raise AssertionError("\n".join(str(line) for line in errors))


if __name__ == "__main__":
    sys.exit(main())
