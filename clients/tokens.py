"""Clients with tokens in place of keys: the JavaScript libraries and AzCopy, at a server with the built-in issuer."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from azure.storage.blob import BlobServiceClient, ContainerClient
from tests.sdk.issuer.environment import environment_of
from tests.server_process import ServerProcess

from clients import installs
from clients.azcopy import AzCopy, some_tree, tree_in_container
from clients.report import Report
from clients.scripts import run_script
from clients.workspace import Workspace, expect, expect_same, tree_in

_SCRIPT = Path(__file__).parent / "node" / "tokens.cjs"


def node_suite(workspace: Workspace, report: Report) -> None:
    with _issuing(workspace) as (own, variables):
        node_path = {"NODE_PATH": str(installs.node_modules())}
        run_script([str(installs.node()), str(_SCRIPT)], own, report, {**variables, **node_path})


def azcopy_suite(workspace: Workspace, report: Report) -> None:
    """With a managed identity. For other logins AzCopy asks Microsoft's cloud about the authority first."""
    with _issuing(workspace) as (own, variables):
        azcopy = AzCopy(own, {**variables, "AZCOPY_AUTO_LOGIN_TYPE": "MSI"})
        url = own.server.endpoints["blob"]
        # AzCopy sends tokens to names of Microsoft only, unless told otherwise.
        trusted = f"--trusted-microsoft-suffixes={urlsplit(url).netloc}"
        tree, first, second = some_tree(), _new_container(own), _new_container(own)
        with report.check("a tree goes up with a token"):
            azcopy.copy(str(own.new_folder(tree)), f"{url}/{first.container_name}", "LocalBlob", trusted)
            expect_same(tree_in_container(first), tree)
        with report.check("a tree goes from container to container with a token for each"):
            source, target = (f"{url}/{each.container_name}" for each in (first, second))
            azcopy.copy(source, target, "BlobBlob", trusted)
            expect_same(tree_in_container(second), tree)
        with report.check("a tree comes down with a token"):
            below = own.new_folder({})
            azcopy.copy(f"{url}/{second.container_name}", str(below), "BlobLocal", trusted)
            expect_same(tree_in(below), tree)


@contextmanager
def _issuing(workspace: Workspace) -> Iterator[tuple[Workspace, dict[str, str]]]:
    """A workspace at a server of its own, and the environment of programs that trust its issuer."""
    with ServerProcess("--dev-identity", "builtin") as server:
        variables = environment_of(server, workspace.folder / "federated-token")
        changed = {name: value for name, value in variables.items() if os.environ.get(name) != value}
        changed["NODE_EXTRA_CA_CERTS"] = server.endpoints["identity_ca"]
        yield Workspace(server, workspace.folder), changed
        errors = [line for line in server.log if line.get("level") in {"error", "critical"}]
        expect(errors, [], "errors in the log")


def _new_container(workspace: Workspace) -> ContainerClient:
    """Seen with the key and over plain HTTP, so that nothing but the client in question needs a token."""
    url = workspace.server.endpoints["blob"].replace("https:", "http:")
    return BlobServiceClient(url, workspace.server.account_key).create_container(workspace.new_name())
