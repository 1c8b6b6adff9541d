"""Where a client works: a server, unique names, and a folder of its own."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

from azure.storage.blob import AccountSasPermissions, ResourceTypes, Services, generate_account_sas
from tests.server_process import ServerProcess

_TIMEOUT_SECONDS = 300

Tree = dict[str, bytes]
"""Names, with slashes, and the content of each."""


@dataclass(frozen=True, slots=True)
class Workspace:
    server: ServerProcess
    folder: Path

    def offers(self, service: str) -> bool:
        return service in self.server.endpoints

    @property
    def connection_string(self) -> str:
        return self.server.connection_string

    def url(self, service: str, path: str = "") -> str:
        """A URL with a token that allows everything."""
        token = generate_account_sas(
            self.server.account,
            self.server.account_key,
            ResourceTypes(service=True, container=True, object=True),
            AccountSasPermissions(
                read=True,
                write=True,
                delete=True,
                list=True,
                add=True,
                create=True,
                update=True,
                process=True,
            ),
            datetime.now(UTC) + timedelta(hours=6),
            services=Services(blob=True, queue=True, fileshare=True),
        )
        return f"{self.server.endpoints[service]}/{path}?{token}"

    def new_name(self) -> str:
        return f"c{uuid4().hex[:20]}"

    def new_folder(self, tree: Tree) -> Path:
        folder = self.folder / self.new_name()
        folder.mkdir()
        for name, data in tree.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
        return folder


def tree_in(folder: Path) -> Tree:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def expect_same(found: Tree, expected: Tree) -> None:
    expect(sorted(found), sorted(expected), "names")
    for name, data in expected.items():
        if found[name] != data:
            raise AssertionError(f"{name!r} differs: {len(found[name])} bytes, {len(data)} expected")


class CommandFailed(Exception):
    """A command ended with an error; the text is its output."""


def run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """The output of a command that has to succeed."""
    done = subprocess.run(
        command,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_SECONDS,
        check=False,
    )
    if done.returncode:
        raise CommandFailed(f"exit code {done.returncode}\n{done.stdout[-1500:]}\n{done.stderr[-1500:]}")
    return done.stdout


def expect(found: object, expected: object, what: str = "") -> None:
    """Fail with the value found if it is not the expected one."""
    if found != expected:
        raise AssertionError(f"{what or 'found'}: {found!r} instead of {expected!r}"[:1500])
