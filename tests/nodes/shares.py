"""One file share, seen through each of several nodes."""

import uuid
from dataclasses import dataclass

from azure.storage.fileshare import ShareClient

from tests.server_process import ServerProcess
from tests.smb.programs import Login
from tests.smb.torture.targets import login_of


@dataclass(frozen=True, slots=True)
class NodeShare:
    """The share as one node serves it."""

    name: str
    login: Login
    rest: ShareClient


def share_of(nodes: list[ServerProcess]) -> list[NodeShare]:
    """A new share, by node."""
    name = f"share-{uuid.uuid4().hex[:12]}"
    found = [
        NodeShare(
            name,
            login_of(node),
            ShareClient(node.endpoints["file"], name, credential=node.account_key, retry_total=0),
        )
        for node in nodes
    ]
    found[0].rest.create_share()
    return found
