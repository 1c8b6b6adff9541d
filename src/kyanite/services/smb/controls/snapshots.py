"""FSCTL_SRV_ENUMERATE_SNAPSHOTS: the snapshots of a share, which clients show as previous versions of its files."""

from kyanite.engine.api import Snapshot
from kyanite.model.files import share_snapshots
from kyanite.services.smb.controls.output import Output
from kyanite.services.smb.request import Failed, Request
from kyanite.values import Instant
from kyanite.wire.smb2 import fsctl
from kyanite.wire.smb2.ioctl import IoctlRequest
from kyanite.wire.smb2.status import Status

_LEAST_BYTES = 16


async def list_snapshots(request: Request, call: IoctlRequest) -> Output:
    """The newest first. A token has whole seconds, so two snapshots of one second are one: the newer."""
    if call.max_output_bytes < _LEAST_BYTES:
        raise Failed(Status.INVALID_PARAMETER)
    tree = request.open.tree

    def body(snap: Snapshot) -> list[Instant]:
        return share_snapshots.instants(snap, tree.load(snap).id)

    instants = await tree.account.store.engine.read(body)
    tokens = dict.fromkeys(fsctl.snapshot_token(instant) for instant in reversed(instants))
    return Output(fsctl.encode_snapshots(list(tokens), call.max_output_bytes))
