"""CREATE (MS-SMB2 §3.3.5.9): opening what a path names, or making it."""

from functools import partial
from itertools import count

from msgspec.structs import replace

from kyanite.engine.api import Transaction
from kyanite.model.files.file import scope_of
from kyanite.model.files.opens import opening, waits
from kyanite.model.files.opens.caching import NOTHING_GRANTED
from kyanite.model.files.opens.opening import MustChange, Opened, OpenRequest
from kyanite.model.files.opens.waits import Wait
from kyanite.model.files.tree import FilePath
from kyanite.rules import create_options, file_names
from kyanite.rules.create_options import NON_DIRECTORY_FILE, CreateTerms
from kyanite.rules.refusals import Reason, Refused
from kyanite.services.smb import caching, contexts
from kyanite.services.smb.breaks import BreakTarget
from kyanite.services.smb.close import allocation_of, closed_file
from kyanite.services.smb.request import Answer, Failed, Request
from kyanite.services.smb.state import Open, TreeConnect
from kyanite.wire.smb2 import create as codec
from kyanite.wire.smb2.body import FileId
from kyanite.wire.smb2.create import CreateAction, CreateRequest, CreateResponse, OplockLevel
from kyanite.wire.smb2.create_contexts import CreateContexts
from kyanite.wire.smb2.header import DFS
from kyanite.wire.smb2.status import Status

_volatile_ids = count(1)
"""The second half of a file id is valid in this process only."""


async def create(request: Request) -> Answer:
    wanted = codec.decode(request.message)
    if request.tree.share is None:
        raise Failed(Status.OBJECT_NAME_NOT_FOUND)
    open_request = _open_request(request, wanted)
    opened = await _opened(request, open_request)
    new = _register(request, opened)
    level = caching.level_of(wanted, opened)
    response = _response(new, opened, level, wanted.contexts)
    return Answer(codec.encode(response, contexts.response(new, opened, level, wanted.contexts)))


def _open_request(request: Request, wanted: CreateRequest) -> OpenRequest:
    """What the model opens, once the request itself is found to be allowed."""
    if wanted.contexts.extended_attributes:
        raise Failed(Status.EAS_NOT_SUPPORTED)
    terms = CreateTerms(
        wanted.desired_access,
        wanted.file_attributes,
        wanted.share_access,
        wanted.disposition,
        wanted.options,
        wanted.impersonation_level,
    )
    path = file_names.split_smb(_name_in_share(request, wanted.name))
    if path.is_marked_directory and terms.wants_file:
        raise Refused(Reason.INVALID_PATH_NAME)
    create_options.check(terms)
    if path.names_data:
        if terms.wants_directory:
            raise Refused(Reason.NOT_A_DIRECTORY)
        terms = terms._replace(options=terms.options | NON_DIRECTORY_FILE)
    client, session, account = request.client, request.session, request.tree.account
    return OpenRequest(
        path.names,
        terms,
        account.store.membership.id,
        session.id,
        client.client_address,
        client.client_guid,
        session.workstation,
        contexts.descriptor(wanted.contexts),
        wanted.contexts.allocation_size or 0,
        caching.requested(wanted, client.client_guid),
    )


def _name_in_share(request: Request, name: str) -> str:
    """A client that sees a namespace of DFS names the server and the share first."""
    if not request.header.flags & DFS:
        return name
    parts = name.lstrip("\\").split("\\", 2)
    return parts[2] if len(parts) > 2 else ""


async def _opened(request: Request, wanted: OpenRequest) -> Opened:
    """Opening writes rows that end with this process, so only making and overwriting waits for the disk."""
    if not create_options.may_change(wanted.terms.disposition):
        opened = await _run(request, wanted, may_change=False)
        if not isinstance(opened, MustChange):
            return opened
    opened = await _run(request, wanted, may_change=True)
    assert isinstance(opened, Opened)
    return opened


async def _run(request: Request, wanted: OpenRequest, *, may_change: bool) -> Opened | MustChange:
    tree_connect = request.tree
    engine, share = tree_connect.account.store.engine, tree_connect.share
    assert share is not None
    body = partial(_body, tree_connect=tree_connect, may_change=may_change)
    return await waits.run_until_done(
        engine,
        partial(body, wanted=wanted),
        scope_of(FilePath(share, wanted.names)),
        durable=may_change,
        waiting=request.wait,
        again=partial(body, wanted=replace(wanted, has_waited=True)),
    )


def _body(
    tx: Transaction, tree_connect: TreeConnect, wanted: OpenRequest, *, may_change: bool
) -> Opened | Wait | MustChange:
    return opening.open_at(tx, tree_connect.load(tx), wanted, may_change=may_change)


def _register(request: Request, opened: Opened) -> Open:
    entry, handle = opened.entry, opened.handle
    new = Open(
        request.tree,
        FileId(handle.id, next(_volatile_ids)),
        entry.id,
        handle.granted,
        handle.options,
        entry.is_directory,
    )
    if opened.caching is not NOTHING_GRANTED:
        send = partial(request.client.notify, request.session)
        new.break_target = BreakTarget(new.id, send)
        request.environment.breaks.add(request.tree.account.store, new.break_target)
    request.opened(new)
    return new


def _response(new: Open, opened: Opened, level: OplockLevel, wanted: CreateContexts) -> CreateResponse:
    described = closed_file(opened.entry)
    if wanted.allocation_size and not new.is_directory:
        allocation = max(described.allocation_size, allocation_of(wanted.allocation_size))
        described = described._replace(allocation_size=allocation)
    return CreateResponse(level, CreateAction(opened.action), *described, file_id=new.id)
