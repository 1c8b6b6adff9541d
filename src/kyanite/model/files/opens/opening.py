"""Opening over SMB: finding, making or overwriting what a path names, and a handle of it, in one transaction."""

from collections.abc import Callable
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from kyanite.engine.api import Transaction
from kyanite.model.content.content import NO_CONTENT
from kyanite.model.files import directory, file, security_descriptors, tree, usage
from kyanite.model.files.actors import RestActor
from kyanite.model.files.entry import NO_HEADERS, Entry
from kyanite.model.files.file import NewFile
from kyanite.model.files.guesses import NO_ROWS, Rows
from kyanite.model.files.opens import caching, handles, open_files
from kyanite.model.files.opens.caching import NO_CACHING, NOTHING_GRANTED, CachingRequest, Granted
from kyanite.model.files.opens.handles import HandleRequest
from kyanite.model.files.opens.records import Handle, OpenHandles
from kyanite.model.files.opens.waits import Wait
from kyanite.model.files.properties import SmbProperties
from kyanite.model.files.security_descriptors import PermissionRequest
from kyanite.model.files.tree import ROOT_ID, Found, Location, Tree
from kyanite.rules import access_masks, create_options
from kyanite.rules.create_options import Action, CreateTerms
from kyanite.rules.file_attributes import is_read_only
from kyanite.rules.oplocks import Caching, Event
from kyanite.rules.refusals import Reason, Refused
from kyanite.rules.share_modes import Open, Rights


class OpenRequest(msgspec.Struct, frozen=True, gc=False):
    """What a client opens, and how. Its terms were checked."""

    names: tuple[str, ...]
    terms: CreateTerms
    owner: bytes
    """The process that serves the client."""
    session_id: int
    client_ip: str
    client_guid: bytes = b""
    client_name: str = ""
    descriptor: Callable[[str], str] | None = None
    """The security descriptor of what is made, from the one that it would inherit."""
    allocation_bytes: int = 0
    """How large the client expects the file to become."""
    caching: CachingRequest = NO_CACHING
    durable_seconds: int = 0
    """How long the handle should stay without a connection."""
    create_guid: bytes = b""
    reuses_guid: bool = False
    """Whether the create guid may be that of another handle of the client, which then has none."""
    has_waited: bool = False
    """Whether it has waited for other clients before."""


class Opened(NamedTuple):
    entry: Entry
    handle: Handle
    action: Action
    caching: Granted = NOTHING_GRANTED


class MustChange(NamedTuple):
    """The body would have made or overwritten a file, which needs a durable transaction."""


def open_at(
    tx: Transaction, share_tree: Tree, request: OpenRequest, rows: Rows = NO_ROWS, *, may_change: bool
) -> Opened | Wait | MustChange:
    """Open what the path names. Without ``may_change`` nothing is written but the handle. ``rows`` are those of the
    path, as far as they were read."""
    location, entry = tree.look_up(tx, tree.location_of(tx, share_tree, request.names, rows), rows)
    caching.check_lease_key(tx, request.caching, share_tree.id, ROOT_ID if entry is None else entry.id)
    if request.create_guid and not request.reuses_guid:
        handles.check_guid(tx, request.client_guid, request.create_guid)
    if entry is None:
        create_options.check_missing(request.terms.disposition)
        return _make(tx, location, request) if may_change else MustChange()
    present = open_files.load(tx, share_tree.id, entry.id)
    if present is not None and present[0].is_delete_pending:
        raise Refused(Reason.DELETE_PENDING)
    if present is not None and present[0].unwritten:
        handles.want_flush(tx, share_tree.id, present[0])
        return Wait(open_files.changed_topic(share_tree.id, entry.id))
    action = create_options.on_existing(request.terms, is_directory=entry.is_directory)
    if action is not Action.OPENED and not may_change:
        return MustChange()
    create_options.check_attributes(request.terms, entry.attributes, action, is_directory=entry.is_directory)
    return _open(tx, Found(location, entry), present, request, action)


def _open(
    tx: Transaction, found: Found, present: OpenHandles | None, request: OpenRequest, action: Action
) -> Opened | Wait:
    entry = found.entry
    if request.terms.deletes_on_close and entry.id == ROOT_ID:
        raise Refused(Reason.ACCESS_DENIED)
    overwrites = action is not Action.OPENED
    keeps_writers_out = not entry.is_directory and is_read_only(entry.attributes)
    handle_request = _handle_request(request, is_read_only=keeps_writers_out)
    access = handle_request.access | Rights.WRITE if overwrites else handle_request.access
    handles.check_leased(entry, access, tx.now)
    left = _break_caches(
        tx,
        found.location.tree.id,
        present,
        Open(access, handle_request.share),
        request,
        mask=handle_request.granted | (access_masks.WRITE_DATA if overwrites else 0),
        overwrites=overwrites,
    )
    if isinstance(left, Wait):
        return left
    handle, granted = _add(tx, found, left, request, handle_request, action)
    if overwrites:
        _check_allocation(tx, found.location, request)
        attributes = create_options.new_attributes(request.terms.file_attributes, of_directory=False)
        entry = file.empty(tx, found, attributes)
    return Opened(entry, handle, action, granted)


def _break_caches(
    tx: Transaction,
    share_id: int,
    present: OpenHandles | None,
    new: Open,
    request: OpenRequest,
    *,
    mask: int,
    overwrites: bool,
) -> OpenHandles | Wait | None:
    """What is open when clients have given up what they cache: first the handles that forbid the new open."""
    if present is None or not present[0].grants:
        handles.check_sharing(present, new)
        return present
    events = [Event.OVERWRITE if overwrites else Event.OPEN]
    if handles.is_forbidden(present, new):
        events.insert(0, Event.SHARING_VIOLATION)
    if request.terms.deletes_on_close:
        events.append(Event.RENAME_OR_DELETE)
    left: OpenHandles | None = present
    for event in events:
        if left is None:
            return None
        broken = caching.break_grants(
            tx,
            share_id,
            left,
            event,
            request.caching.lease,
            opens_with=mask,
            has_waited=request.has_waited,
        )
        if broken.waits:
            return Wait(open_files.changed_topic(share_id, present[0].file_id))
        left = broken.present
        handles.check_sharing(left, new)
    return left


def _add(
    tx: Transaction,
    found: Found,
    present: OpenHandles | None,
    request: OpenRequest,
    handle_request: HandleRequest,
    action: Action,
) -> tuple[Handle, Granted]:
    """A new handle, and what its client may cache. Of directories that is nothing."""
    share_id = found.location.tree.id
    opened, handle = handles.new_handle(tx, found, present, handle_request)
    granted = NOTHING_GRANTED
    if not found.entry.is_directory:
        others = present[1] if present is not None else []
        opened, granted = caching.grant(
            tx, share_id, (opened, others), handle, request.caching, is_emptied=action is not Action.OPENED
        )
    is_durable = granted.state & Caching.HANDLE and request.durable_seconds
    if is_durable or request.create_guid:
        seconds = request.durable_seconds if is_durable else 0
        handle = replace(
            handle, durable_seconds=seconds, create_guid=request.create_guid, action=action.value
        )
    handles.save(tx, share_id, opened, handle)
    return handle, granted


def _make(tx: Transaction, location: Location, request: OpenRequest) -> Opened:
    terms = request.terms
    create_options.check_new(terms)
    if location.directory_id != ROOT_ID:
        handles.check_not_pending(tx, location.tree.id, location.directory_id)
    of_directory = terms.wants_directory
    attributes = create_options.new_attributes(terms.file_attributes, of_directory=of_directory)
    permission = (
        None if request.descriptor is None else _permission(tx, location, request.descriptor, of_directory)
    )
    properties = SmbProperties(attributes, permission=permission)
    _check_allocation(tx, location, request)
    if of_directory:
        entry = directory.put(tx, location, properties, {})
    else:
        new_file = NewFile(0, NO_HEADERS, {}, properties)
        entry = file.put(tx, location, None, RestActor(), new_file, NO_CONTENT)
    found = Found(location, entry)
    handle_request = _handle_request(request, is_read_only=False)
    handle, granted = _add(tx, found, None, request, handle_request, Action.CREATED)
    return Opened(entry, handle, Action.CREATED, granted)


def _permission(
    tx: Transaction, location: Location, descriptor: Callable[[str], str], of_directory: bool
) -> PermissionRequest:
    parent = tree.parent_of(tx, location)
    inherited = parent.for_directories if of_directory else parent.for_files
    return PermissionRequest(descriptor(security_descriptors.load(tx, location.tree.id, inherited)))


def _check_allocation(tx: Transaction, location: Location, request: OpenRequest) -> None:
    """Nothing is reserved, but a file that cannot become so large is refused from the start."""
    if request.allocation_bytes:
        usage.check_room(tx, location.tree.share, request.allocation_bytes)


def _handle_request(request: OpenRequest, *, is_read_only: bool) -> HandleRequest:
    terms = request.terms
    granted = access_masks.granted(terms.desired_access, is_read_only=is_read_only)
    return HandleRequest(
        request.owner,
        access_masks.rights_of(granted),
        access_masks.sharing_of(terms.share_access),
        request.session_id,
        request.client_ip,
        terms.deletes_on_close,
        granted,
        terms.options,
        request.client_guid,
        request.client_name,
        request.caching.lease_key,
    )
