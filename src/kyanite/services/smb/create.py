"""CREATE (MS-SMB2 §3.3.5.9): opening what a path names, or making it."""

from collections.abc import Sequence
from functools import partial
from itertools import count

from msgspec.structs import replace

from kyanite.engine.api import Snapshot, Transaction
from kyanite.model.files.entry import Entry
from kyanite.model.files.file import scope_of
from kyanite.model.files.opens import opening, snapshot_opening, waits
from kyanite.model.files.opens.caching import NOTHING_GRANTED, Granted
from kyanite.model.files.opens.opening import MustChange, Opened, OpenRequest
from kyanite.model.files.opens.snapshot_opening import SnapshotOpen
from kyanite.model.files.opens.waits import Wait
from kyanite.model.files.tree import FilePath
from kyanite.rules import create_options, file_names
from kyanite.rules.create_options import NON_DIRECTORY_FILE, Action, CreateTerms
from kyanite.rules.file_names import SmbPath
from kyanite.rules.refusals import Reason, Refused
from kyanite.services.smb import caching, contexts, durable
from kyanite.services.smb.breaks import BreakTarget
from kyanite.services.smb.close import closed_file
from kyanite.services.smb.info.entry import allocation_size
from kyanite.services.smb.request import Answer, Failed, Request
from kyanite.services.smb.state import Open, TreeConnect
from kyanite.values import Instant
from kyanite.wire.smb2 import create as codec
from kyanite.wire.smb2.body import FileId
from kyanite.wire.smb2.create import CreateAction, CreateRequest, CreateResponse, OplockLevel
from kyanite.wire.smb2.create_contexts import ResponseContext
from kyanite.wire.smb2.header import DFS
from kyanite.wire.smb2.status import Status

OPENS_MAX = 16_384
"""Of one session."""

_volatile_ids = count(1)
"""The second half of a file id is valid in this process only."""


async def create(request: Request) -> Answer:
    wanted = codec.decode(request.message)
    if request.tree.share is None:
        raise Failed(Status.OBJECT_NAME_NOT_FOUND)
    if request.session.open_count >= OPENS_MAX:
        raise Failed(Status.INSUFFICIENT_RESOURCES)
    is_read_only = request.tree.account.settings.read_only
    if durable.is_reconnection(wanted.contexts):
        if is_read_only:  # The handle may be one for writing. The client opens the file anew.
            raise Failed(Status.OBJECT_NAME_NOT_FOUND)
        return _new_open(request, wanted, await durable.reconnect(request, wanted))
    path, terms = _checked(request, wanted)
    if is_read_only:
        terms = create_options.for_reading(terms)
    names, second = contexts.snapshot_of(path, wanted.contexts)
    if second is not None:
        return await _open_in_snapshot(request, wanted, names, terms, second)
    open_request = _open_request(request, wanted, names, terms)
    if not open_request.create_guid:
        return _new_open(request, wanted, await _opened(request, open_request))
    with durable.begun(request, open_request.create_guid):
        repeated = await durable.find_repeated(request, wanted, open_request.create_guid)
        if repeated is not None:
            answer = await _repeat(request, wanted, repeated)
            if answer is not None:
                return answer
            open_request = replace(open_request, reuses_guid=True)
        opened = await _opened(request, open_request)
    return _new_open(request, wanted, opened)


async def _repeat(request: Request, wanted: CreateRequest, first: Opened) -> Answer | None:
    """Answer a repeated CREATE as the first time, but for the oplock: the client is told that it has what it asks for
    now, as by Windows. None if it has got the first answer already: then it wants another handle."""
    handle = first.handle
    if not handle.is_connected:
        opened = await durable.reconnect_to(request, wanted, handle.id, handle.create_guid)
        return _new_open(request, wanted, opened._replace(action=first.action))
    opens = request.tree.opens.values()
    present = next((each for each in opens if each.handle_id == handle.id), None)
    if present is None:  # Over a connection that may be lost, or not.
        raise Failed(Status.FILE_NOT_AVAILABLE)
    if present.is_used:
        return None
    level = caching.level_of(first.caching)
    if level is not OplockLevel.LEASE:
        level = caching.level_of(Granted(caching.requested(wanted, request.client.client_guid).wanted))
    is_durable = level in (OplockLevel.LEASE, OplockLevel.BATCH)
    more = durable.response(first, wanted.contexts) if is_durable else []
    return _answer(present, first.entry, first.action, level, first.caching, wanted, more)


def _checked(request: Request, wanted: CreateRequest) -> tuple[SmbPath, CreateTerms]:
    """What the request names, and how, if that is allowed whatever it names."""
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
    return path, terms


def _open_request(
    request: Request, wanted: CreateRequest, names: tuple[str, ...], terms: CreateTerms
) -> OpenRequest:
    client, session, account = request.client, request.session, request.tree.account
    return OpenRequest(
        names,
        terms,
        account.store.membership.id,
        session.id,
        client.client_endpoint,
        client.client_guid,
        session.workstation,
        contexts.descriptor(wanted.contexts),
        wanted.contexts.allocation_size or 0,
        caching.requested(wanted, client.client_guid),
        durable.seconds_of(wanted.contexts),
        durable.create_guid_of(wanted.contexts),
    )


async def _open_in_snapshot(
    request: Request, wanted: CreateRequest, names: tuple[str, ...], terms: CreateTerms, second: Instant
) -> Answer:
    tree_connect = request.tree

    def body(snap: Snapshot) -> SnapshotOpen:
        share = tree_connect.share
        assert share is not None
        share_id = tree_connect.load(snap).id
        return snapshot_opening.open_in_snapshot(snap, share, share_id, second, names, terms)

    path, entry, granted = await tree_connect.account.store.engine.read(body)
    number = next(_volatile_ids)
    new = Open(
        tree_connect, FileId(number, number), entry.id, granted, terms.options, entry.is_directory, path
    )
    request.opened(new)
    return _answer(new, entry, Action.OPENED, OplockLevel.NONE, NOTHING_GRANTED, wanted)


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
    store, share = tree_connect.account.store, tree_connect.share
    assert share is not None
    body = partial(_body, tree_connect=tree_connect, may_change=may_change)
    return await waits.run_until_done(
        store.engine,
        partial(body, wanted=wanted),
        scope_of(FilePath(share, wanted.names)),
        membership=store.membership,
        durable=may_change,
        waiting=request.wait,
        again=partial(body, wanted=replace(wanted, has_waited=True)),
    )


def _body(
    tx: Transaction, tree_connect: TreeConnect, wanted: OpenRequest, *, may_change: bool
) -> Opened | Wait | MustChange:
    share_tree, rows = tree_connect.load_path(tx, wanted.names)
    return opening.open_at(tx, share_tree, wanted, rows, may_change=may_change)


def _new_open(request: Request, wanted: CreateRequest, opened: Opened) -> Answer:
    new = _register(request, opened)
    level = caching.level_of(opened.caching)
    more = durable.response(opened, wanted.contexts)
    return _answer(new, opened.entry, opened.action, level, opened.caching, wanted, more)


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
    new.is_durable = handle.durable_seconds > 0
    if opened.caching is not NOTHING_GRANTED:
        send = partial(request.client.notify, request.session)
        new.break_target = BreakTarget(new.id, send)
        request.environment.breaks.add(request.tree.account.store, new.break_target)
    request.opened(new)
    return new


def _answer(
    new: Open,
    entry: Entry,
    action: Action,
    level: OplockLevel,
    granted: Granted,
    wanted: CreateRequest,
    more: Sequence[ResponseContext] = (),
) -> Answer:
    described = closed_file(entry)
    expected = wanted.contexts.allocation_size
    if expected and not new.is_directory:
        allocation = max(described.allocation_size, allocation_size(expected))
        described = described._replace(allocation_size=allocation)
    response = CreateResponse(level, CreateAction(action), *described, file_id=new.id)
    found = contexts.response(new, entry, level, granted, wanted.contexts)
    return Answer(codec.encode(response, [*found, *more]))
