"""The file system that a share is to its clients: its size is the quota (MS-SMB2 §3.3.5.20.2)."""

from kyanite.engine.api import Snapshot
from kyanite.model.files import usage
from kyanite.services.smb.request import Request
from kyanite.services.smb.state import TreeConnect
from kyanite.wire.smb2 import filetime
from kyanite.wire.smb2.info import file_system
from kyanite.wire.smb2.info.file_system import FileSystemInformation

_GIB = 1 << 30


async def query(request: Request, information_class: int) -> bytes:
    tree = request.open.tree
    information = await tree.account.store.engine.read(lambda snap: _information(snap, tree))
    return file_system.encode(information_class, information)


def _information(snap: Snapshot, tree: TreeConnect) -> FileSystemInformation:
    share = tree.load(snap).share
    assert tree.share is not None, "IPC$ is no volume."
    total = share.settings.quota_gib * _GIB
    used = usage.used_bytes(snap, share.id)
    return FileSystemInformation(
        created_at=filetime.encode(share.created_at),
        serial_number=share.id,
        label=tree.share.name,
        total_bytes=total,
        free_bytes=max(total - used, 0),
    )
