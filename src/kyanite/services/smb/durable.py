"""Durable handles: the contexts of CREATE that ask for one, and those that take it up again (MS-SMB2 §3.3.5.9.6)."""

from functools import partial

from kyanite.engine.api import Transaction
from kyanite.model.files.opens import durable
from kyanite.model.files.opens.caching import NO_CACHING
from kyanite.model.files.opens.durable import Reconnection
from kyanite.model.files.opens.opening import Opened
from kyanite.rules import file_names
from kyanite.services.smb import caching
from kyanite.services.smb.request import Request
from kyanite.services.smb.state import TreeConnect
from kyanite.wire.smb2 import create_contexts
from kyanite.wire.smb2.create import CreateRequest
from kyanite.wire.smb2.create_contexts import CreateContexts, ResponseContext

_V1_SECONDS = 16 * 60
_V2_SECONDS = 60
_V2_SECONDS_MAX = 300


def seconds_of(wanted: CreateContexts) -> int:
    """How long a handle is to stay when its client has lost its connection; 0 if it is not to be durable."""
    if wanted.durable_v2 is not None:
        seconds = -(-wanted.durable_v2.timeout_milliseconds // 1000)
        return min(seconds, _V2_SECONDS_MAX) or _V2_SECONDS
    return _V1_SECONDS if wanted.wants_durable else 0


def create_guid_of(wanted: CreateContexts) -> bytes:
    return b"" if wanted.durable_v2 is None else wanted.durable_v2.create_guid


def response(opened: Opened, wanted: CreateContexts) -> list[ResponseContext]:
    seconds = opened.handle.durable_seconds
    if not seconds:
        return []
    if wanted.durable_v2 is not None:
        return [create_contexts.durable_v2(seconds * 1000)]
    return [create_contexts.durable()] if wanted.wants_durable else []


def is_reconnection(wanted: CreateContexts) -> bool:
    return wanted.durable_reconnect is not None or wanted.durable_reconnect_v2 is not None


async def reconnect(request: Request, wanted: CreateRequest) -> Opened:
    """Access, sharing, level and all else of such a request do not matter: they are those of the handle."""
    client, session, store = request.client, request.session, request.tree.account.store
    first, second = wanted.contexts.durable_reconnect, wanted.contexts.durable_reconnect_v2
    file_id = first if second is None else second.file_id
    assert file_id is not None
    lease = wanted.contexts.lease
    reconnection = Reconnection(
        file_id.persistent,
        None if second is None else second.create_guid,
        () if lease is None else file_names.split_smb(wanted.name).names,
        NO_CACHING if lease is None else caching.requested_lease(lease, client.client_guid),
        store.membership.id,
        session.id,
        client.client_address,
        client.client_guid,
        session.workstation,
    )
    return await store.engine.run(
        partial(_body, tree_connect=request.tree, reconnection=reconnection), durable=False
    )


def _body(tx: Transaction, tree_connect: TreeConnect, reconnection: Reconnection) -> Opened:
    return durable.reconnect(tx, tree_connect.load(tx), reconnection)
