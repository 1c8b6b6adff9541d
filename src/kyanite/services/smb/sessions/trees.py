"""TREE_CONNECT and TREE_DISCONNECT (MS-SMB2 §3.3.5.7, §3.3.5.8): a share of the account, or IPC$."""

from kyanite.engine.api import Snapshot
from kyanite.model import settings
from kyanite.model.files import share
from kyanite.model.files.share import ShareKey
from kyanite.rules import names
from kyanite.rules.refusals import Refused
from kyanite.services.smb.connections.part_request import PartRequest
from kyanite.services.smb.request import Answer, Failed
from kyanite.services.smb.state import TreeConnect
from kyanite.wire.smb2 import session, tree
from kyanite.wire.smb2.header import SIGNED
from kyanite.wire.smb2.negotiate import Dialect
from kyanite.wire.smb2.status import Status
from kyanite.wire.smb2.tree import ShareType, TreeConnectResponse

TREES_MAX = 1024
"""Of one session."""

_IPC = "IPC$"
_EVERYTHING = 0x001F01FF
_PIPE_ACCESS = 0x001F00A9


async def connect_tree(request: PartRequest) -> Answer:
    if not _is_protected(request):
        request.client.close()
        raise Failed(Status.ACCESS_DENIED)
    name = tree.decode_connect(request.message).share
    trees = request.session.trees
    if len(trees) >= TREES_MAX:
        raise Failed(Status.INSUFFICIENT_RESOURCES)
    state = request.client.state
    if name.upper() == _IPC:
        state.last_tree_id += 1
        made = TreeConnect(state.last_tree_id, request.session.account, None)
        response = TreeConnectResponse(ShareType.PIPE, _PIPE_ACCESS, tree.SHARE_CACHING_NONE)
    else:
        share_id, requires_encryption = await _find(request, name.lower())
        state.last_tree_id += 1
        made = TreeConnect(
            state.last_tree_id,
            request.session.account,
            ShareKey(request.session.account.name, name.lower()),
            share_id,
            requires_encryption=requires_encryption,
        )
        flags = tree.SHARE_ENCRYPT_DATA if requires_encryption else tree.SHARE_CACHING_MANUAL
        response = TreeConnectResponse(ShareType.DISK, _EVERYTHING, flags)
    trees[made.id] = made
    request.found_tree = made
    request.tree_id = made.id
    return Answer(tree.encode_connect(response))


def _is_protected(request: PartRequest) -> bool:
    """In 3.1.1 the first request that must not be forged is signed or encrypted (§3.3.5.7)."""
    if request.client.dialect is not Dialect.SMB_3_1_1:
        return True
    return request.is_encrypted or bool(request.header.flags & SIGNED)


async def _find(request: PartRequest, name: str) -> tuple[int, bool]:
    """The id of the share, and whether its account demands encryption now."""
    account = request.session.account

    def body(snap: Snapshot) -> tuple[int, bool]:
        names.check_share(name)
        record = share.load(snap, ShareKey(account.name, name))
        if record.speaks_nfs:
            raise Failed(Status.BAD_NETWORK_NAME)
        protocols = settings.load(snap, account.name, "file").protocols
        return record.id, protocols is not None and bool(protocols.smb_encryption)

    try:
        share_id, demanded = await account.store.engine.read(body)
    except Refused:
        raise Failed(Status.BAD_NETWORK_NAME) from None
    if demanded and not request.is_encrypted:
        raise Failed(Status.ACCESS_DENIED)
    return share_id, demanded


async def disconnect_tree(request: PartRequest) -> Answer:
    session.decode_empty(request.message)
    await request.client.end_tree(request.session, request.tree)
    return Answer(session.EMPTY)
