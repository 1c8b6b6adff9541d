"""Durable handles: the contexts of CREATE that ask for one, and those that take it up again (MS-SMB2 §3.3.5.9.6).

A client that does not know whether a CREATE was carried out repeats it with the same create guid and the flag REPLAY
(§3.3.5.9.10). It gets what the first one has made.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from kyanite.engine.api import Snapshot, Transaction
from kyanite.model.files.opens import durable
from kyanite.model.files.opens.caching import NO_CACHING
from kyanite.model.files.opens.durable import Reconnection
from kyanite.model.files.opens.opening import Opened
from kyanite.rules import file_names
from kyanite.services.smb import caching
from kyanite.services.smb.request import Failed, Request
from kyanite.services.smb.state import TreeConnect
from kyanite.wire.smb2 import create_contexts
from kyanite.wire.smb2.create import CreateRequest
from kyanite.wire.smb2.create_contexts import CreateContexts, ResponseContext
from kyanite.wire.smb2.header import REPLAY
from kyanite.wire.smb2.status import Status

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
    """Empty if the request has none."""
    guid = b"" if wanted.durable_v2 is None else wanted.durable_v2.create_guid
    return guid if any(guid) else b""


def response(opened: Opened, wanted: CreateContexts) -> list[ResponseContext]:
    seconds = opened.handle.durable_seconds
    if not seconds:
        return []
    if wanted.durable_v2 is not None:
        return [create_contexts.durable_v2(seconds * 1000)]
    return [create_contexts.durable()] if wanted.wants_durable else []


@contextmanager
def begun(request: Request, create_guid: bytes) -> Iterator[None]:
    """While a CREATE is being carried out, the same one cannot be repeated."""
    pending, key = request.environment.pending_creates, request.client.client_guid + create_guid
    if key in pending:
        is_repeated = request.header.flags & REPLAY
        raise Failed(Status.FILE_NOT_AVAILABLE if is_repeated else Status.DUPLICATE_OBJECTID)
    pending.add(key)
    try:
        yield
    finally:
        pending.discard(key)


async def find_repeated(request: Request, wanted: CreateRequest, create_guid: bytes) -> Opened | None:
    """What a repeated CREATE has made the first time, if it has."""
    if not request.header.flags & REPLAY:
        return None
    tree_connect, client_guid = request.tree, request.client.client_guid

    def body(snap: Snapshot) -> Opened | None:
        return durable.repeat(snap, tree_connect.load(snap), client_guid, create_guid)

    found = await tree_connect.account.store.engine.read(body)
    if found is not None and found.handle.lease_key != caching.requested(wanted, client_guid).lease_key:
        raise Failed(Status.ACCESS_DENIED)
    return found


def is_reconnection(wanted: CreateContexts) -> bool:
    return wanted.durable_reconnect is not None or wanted.durable_reconnect_v2 is not None


async def reconnect(request: Request, wanted: CreateRequest) -> Opened:
    """Access, sharing, level and all else of such a request do not matter: they are those of the handle."""
    first, second = wanted.contexts.durable_reconnect, wanted.contexts.durable_reconnect_v2
    if second is not None:
        return await reconnect_to(request, wanted, second.file_id.persistent, second.create_guid)
    assert first is not None
    return await reconnect_to(request, wanted, first.persistent, None)


async def reconnect_to(
    request: Request, wanted: CreateRequest, handle_id: int, create_guid: bytes | None
) -> Opened:
    client, session, store = request.client, request.session, request.tree.account.store
    lease = wanted.contexts.lease
    reconnection = Reconnection(
        handle_id,
        create_guid,
        () if lease is None else file_names.split_smb(wanted.name).names,
        NO_CACHING if lease is None else caching.requested_lease(lease, client.client_guid),
        store.membership.id,
        session.id,
        client.client_address,
        session.workstation,
    )
    return await store.engine.run(
        partial(_body, tree_connect=request.tree, reconnection=reconnection), durable=False
    )


def _body(tx: Transaction, tree_connect: TreeConnect, reconnection: Reconnection) -> Opened:
    return durable.reconnect(tx, tree_connect.load(tx), reconnection)
