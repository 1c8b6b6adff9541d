"""The Azure CLI as a function: ``az storage …`` with a connection string, as people type it."""

import json
import random
from typing import Any

from clients import installs
from clients.workspace import CommandFailed, Tree, Workspace, run


class Az:
    """The command. ``az("container", "create", name="c")`` is ``az storage container create --name c``."""

    def __init__(self, workspace: Workspace) -> None:
        self._command = str(installs.azure_cli())
        self.workspace = workspace
        self._environment = {
            "AZURE_CONFIG_DIR": str(workspace.folder / "config"),
            "AZURE_CORE_COLLECT_TELEMETRY": "no",
            "AZURE_CORE_ONLY_SHOW_ERRORS": "true",
            "AZURE_CORE_SURVEY_MESSAGE": "no",
            "AZURE_STORAGE_CONNECTION_STRING": workspace.connection_string,
        }

    def __call__(self, group: str, verb: str, /, *more: str, **options: str) -> Any:
        arguments = [
            part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", value)
        ]
        words = ["storage", *group.split(), verb, *more, *arguments, "--output", "json"]
        output = run([self._command, *words], self._environment)
        return json.loads(output) if output.strip() else None

    def refuses(self, code: str, group: str, verb: str, /, *more: str, **options: str) -> None:
        try:
            self(group, verb, *more, **options)
        except CommandFailed as failure:
            if code not in str(failure):
                raise
        else:
            raise AssertionError(f"it was not refused with {code}")


TREE: Tree = {
    "a.txt": b"hello",
    "empty": b"",
    "sub/ä ö.txt": b"umlauts",
    "sub/large.bin": random.Random(3).randbytes(9_000_000),
}
