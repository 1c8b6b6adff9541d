"""What all nodes of a store derive from the secret that they share, each thing for one purpose."""

import msgspec

from kyanite.server.derived_keys import derive_key

_SMB_SERVER = b"kyanite SMB server"
_SMB_SESSIONS = b"kyanite SMB sessions"
_DELEGATION = b"kyanite user delegation keys of nodes"


class Secrets(msgspec.Struct, frozen=True):
    server_guid: bytes
    """What SMB clients know the server by."""
    sessions: bytes
    """What the signing keys of SMB sessions are sealed with."""
    delegation: bytes
    """What user delegation keys depend on besides the store; empty where there are none."""


def of_nodes(shared: bytes, delegation: bytes | None) -> Secrets:
    """The same on every node. ``delegation`` is that of a file which the operator gives to all of them."""
    return Secrets(
        derive_key(shared, _SMB_SERVER, 16),
        derive_key(shared, _SMB_SESSIONS, 32),
        derive_key(shared, _DELEGATION, 32) if delegation is None else delegation,
    )
