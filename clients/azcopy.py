"""AzCopy as a function, and its view of both sides."""

import os
import random
import re
import signal
import subprocess
from collections.abc import Mapping
from typing import Any

from azure.storage.blob import BlobServiceClient, ContainerClient
from azure.storage.fileshare import ShareClient, ShareDirectoryClient, ShareServiceClient

from clients import installs
from clients.workspace import CommandFailed, Tree, Workspace, run

MIB = 1024 * 1024
_BEFORE_INTERRUPTION_SECONDS = 3
_STOP_SECONDS = 60

_COMPLAINT = re.compile(
    r"RESPONSE \d+: |ERROR CODE|ERR: |RESPONSE Status: [45]|UPLOADFAILED|COPYFAILED|FAILED:"
)


class AzCopy:
    """The command, and its view of both sides."""

    def __init__(self, workspace: Workspace, environment: Mapping[str, str] | None = None) -> None:
        """``environment`` is what the command needs of it beside its folders."""
        self._binary = str(installs.azcopy())
        self.workspace = workspace
        self._environment = {
            "AZCOPY_LOG_LOCATION": str(workspace.folder / "log"),
            "AZCOPY_JOB_PLAN_LOCATION": str(workspace.folder / "plan"),
            "AZCOPY_DISABLE_SYSLOG": "true",
            **(environment or {}),
        }

    def __call__(self, verb: str, *arguments: str) -> str:
        try:
            return run([self._binary, verb, *arguments], self._environment)
        except CommandFailed as failure:
            raise CommandFailed(f"{failure}\n{self._complaints()}") from None

    def interrupted(self, verb: str, *arguments: str) -> str:
        """The id of a job that was started and, a few seconds later, interrupted as from a keyboard."""
        command = [self._binary, verb, *arguments]
        with subprocess.Popen(
            command,
            env={**os.environ, **self._environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as job:
            try:
                job.wait(_BEFORE_INTERRUPTION_SECONDS)
            except subprocess.TimeoutExpired:
                job.send_signal(signal.SIGINT)
            output, _ = job.communicate(timeout=_STOP_SECONDS)
        found = re.search(r"Job ([0-9a-f-]{36})", output)
        if found is None or "Cancelled" not in output:
            raise CommandFailed(f"it was not interrupted:\n{output[-1500:]}")
        return found[1]

    def _complaints(self) -> str:
        """AzCopy's newest log, which says more than its output."""
        logs = sorted((self.workspace.folder / "log").glob("*.log"), key=lambda log: log.stat().st_mtime)
        if not logs:
            return ""
        lines = logs[-1].read_text(errors="replace").splitlines()
        return "\n".join([line for line in lines if _COMPLAINT.search(line)][:20])

    def copy(self, source: str, target: str, ways: str, *more: str) -> None:
        self("copy", source, target, f"--from-to={ways}", "--recursive", "--as-subdir=false", *more)

    def new_container(self) -> ContainerClient:
        service = BlobServiceClient.from_connection_string(self.workspace.connection_string)
        return service.create_container(self.workspace.new_name())

    def new_share(self, **options: Any) -> ShareClient:
        """The client keeps dots at the end of names."""
        service = ShareServiceClient.from_connection_string(
            self.workspace.connection_string, allow_trailing_dot=True
        )
        return service.create_share(self.workspace.new_name(), **options)

    def url_of(self, container: ContainerClient, path: str = "") -> str:
        return self.workspace.url("blob", f"{container.container_name}{path}")

    def share_url_of(self, share: ShareClient, path: str = "") -> str:
        return self.workspace.url("file", f"{share.share_name}{path}")


def some_tree() -> Tree:
    """Empty and large files, shallow and deep, and names that must be encoded in URLs."""
    chance = random.Random(7)
    return {
        "a.txt": b"hello",
        "empty": b"",
        "sub/deep/large.bin": chance.randbytes(20 * MIB),
        "sub/middling.bin": chance.randbytes(100_000),
        "sub/ä ö ü.txt": b"umlauts",
        "sub/日本語 😀.txt": b"beyond",
        "odd/a+b %20 #&'c=d.txt": b"odd",
    }


def tree_in_container(container: ContainerClient) -> Tree:
    return {
        name: container.download_blob(name).readall()
        for name in [each.name for each in container.list_blobs()]
    }


def tree_in_share(directory: ShareDirectoryClient, prefix: str = "") -> Tree:
    found: Tree = {}
    for entry in list(directory.list_directories_and_files()):
        name = f"{prefix}{entry.name}"
        if entry.is_directory:
            found |= tree_in_share(directory.get_subdirectory_client(entry.name), f"{name}/")
        else:
            found[name] = directory.get_file_client(entry.name).download_file().readall()
    return found
