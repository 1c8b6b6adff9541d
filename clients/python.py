"""Python packages around libraries in other languages: pyarrow around that in C++, obstore around that in Rust.

Each has a module of its own that makes the checks. It runs in the virtual environment of the packages, so it imports
nothing that is only in ours.
"""

from collections.abc import Callable

from azure.storage.blob import ContainerClient

from clients import installs
from clients.report import Report
from clients.scripts import run_script
from clients.workspace import Workspace


def suite(module: str) -> Callable[[Workspace, Report], None]:
    """The suite that ``clients/<module>.py`` holds. It finds a container of its own."""

    def run(workspace: Workspace, report: Report) -> None:
        if not workspace.offers("blob"):
            report.not_there("blob")
            return
        interpreter = installs.python_packages()
        name = workspace.new_name()
        ContainerClient.from_connection_string(workspace.connection_string, name).create_container()
        settings = {"CHECKS_CONTAINER": name, "CHECKS_TOKEN": workspace.url("blob").partition("?")[2]}
        run_script([str(interpreter), "-m", f"clients.{module}"], workspace, report, settings)

    return run
