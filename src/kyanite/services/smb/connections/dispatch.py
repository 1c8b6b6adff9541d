"""What is checked of a request before its handler gets it, in the order in which Windows and Samba check it.

MS-SMB2 §3.3.5.2. The frame, the ids of the messages and their credits were checked before (``connection.py``): what is
wrong with those closes the connection. What is wrong here is answered.
"""

from kyanite.services.smb.commands import COMMANDS, CommandRow, Needs
from kyanite.services.smb.connections.part_request import PartRequest
from kyanite.services.smb.request import Failed
from kyanite.services.smb.state import Open, Session
from kyanite.wire.malformed import Malformed
from kyanite.wire.smb2 import header as headers
from kyanite.wire.smb2.body import CHAIN_FILE_ID, HEADER_BYTES
from kyanite.wire.smb2.fsctl import Fsctl
from kyanite.wire.smb2.header import ASYNC, RELATED, REQUEST_FLAGS, SIGNED, Command, Header
from kyanite.wire.smb2.negotiate import Dialect
from kyanite.wire.smb2.status import Status

_WITHOUT_ENCRYPTION = (Command.NEGOTIATE, Command.SESSION_SETUP)
_HANDLE_COMMANDS = (Command.CREATE, Command.TREE_CONNECT, Command.QUERY_INFO, Command.SET_INFO)
"""Those that get another status while their session is being set up."""
_WITHOUT_FILE = (
    Fsctl.DFS_GET_REFERRALS,
    Fsctl.DFS_GET_REFERRALS_EX,
    Fsctl.PIPE_WAIT,
    Fsctl.QUERY_NETWORK_INTERFACE_INFO,
    Fsctl.VALIDATE_NEGOTIATE_INFO,
)
_CODE_AT = HEADER_BYTES + 4
_SEQUENCED = (Command.WRITE, Command.SET_INFO, Command.IOCTL)


class ChainState:
    """What a related request takes over from the one before it in the chain."""

    __slots__ = ("create_status", "is_first", "open", "session_id", "tree_id")

    def __init__(self) -> None:
        self.is_first = True
        self.session_id = 0
        self.tree_id = 0
        self.open: Open | None = None
        """The last file that a request of the chain was about, closed or not."""
        self.create_status: Status | None = None
        """Why a CREATE made no file for the requests behind it."""

    def advance(self, request: PartRequest, status: Status) -> None:
        """The request was answered, and the next one may be related to it."""
        self.is_first = False
        self.session_id = 0 if request.found_session is None else request.session_id
        self.tree_id = request.tree_id
        if request.found_open is not None:
            self.open = request.found_open
        if request.header.command == Command.CREATE:
            self.create_status = status if request.found_open is None else None


def check(request: PartRequest, chain: ChainState) -> CommandRow:
    """Find the session, the tree and the open of the request. Raises ``Failed``."""
    header = request.header
    is_related = bool(header.flags & RELATED)
    if is_related and not chain.is_first:
        request.session_id, request.tree_id = chain.session_id, chain.tree_id
    elif not is_related:
        chain.open, chain.create_status = None, None
    session = request.client.state.sessions.get(request.session_id)
    request.found_session = session if not is_related or not chain.is_first else None
    _check_encryption(request, session)
    row = COMMANDS.get(header.command)
    if row is None or not _are_flags_right(header):
        raise Failed(Status.INVALID_PARAMETER)
    if is_related and request.found_session is None:
        raise Failed(Status.INVALID_PARAMETER)
    _check_signature(request, session)
    if chain.create_status is not None and row.needs is Needs.OPEN:
        raise Failed(chain.create_status)
    if row.needs is Needs.NOTHING:
        return row
    if session is None:
        raise Failed(_without_session(request))
    if row.needs is Needs.SESSION:
        return row
    request.found_tree = session.trees.get(request.tree_id)
    if request.tree.requires_encryption and not request.is_encrypted:
        raise Failed(Status.ACCESS_DENIED)
    if row.needs is Needs.OPEN:
        _find_open(request, chain, is_related=is_related)
    return row


def _check_encryption(request: PartRequest, session: Session | None) -> None:
    if request.encrypted_by is not None:
        if request.encrypted_by.id != request.session_id:
            raise Failed(Status.ACCESS_DENIED)
        return
    if session is None or session.security is None:
        return
    if session.security.requires_encryption and request.header.command not in _WITHOUT_ENCRYPTION:
        raise Failed(Status.ACCESS_DENIED)


def _are_flags_right(header: Header) -> bool:
    flags = header.flags
    return not flags & ~REQUEST_FLAGS and (not flags & ASYNC or header.command == Command.CANCEL)


def _check_signature(request: PartRequest, session: Session | None) -> None:
    header = request.header
    security = None if session is None else session.security
    if request.is_encrypted:
        return
    if header.flags & SIGNED:
        if security is None:
            if header.command == Command.SESSION_SETUP:  # It looks further.
                return
            raise Failed(Status.USER_SESSION_DELETED)
        request.signed_by = security
        if not security.is_signed(header, request.message):
            raise Failed(Status.ACCESS_DENIED)
    elif security is not None and security.requires_signing and header.command != Command.CANCEL:
        request.signed_by = security
        raise Failed(Status.ACCESS_DENIED)


def _without_session(request: PartRequest) -> Status:
    is_pending = request.session_id in request.client.state.logons
    if is_pending and request.header.command in _HANDLE_COMMANDS:
        return Status.INVALID_HANDLE
    return Status.USER_SESSION_DELETED


def _find_open(request: PartRequest, chain: ChainState, *, is_related: bool) -> None:
    """The file of the chain, or the one that the request names. IOCTL may be about none."""
    command = request.header.command
    try:
        file_id = headers.decode_file_id(command, request.message)
    except Malformed:
        raise Failed(Status.INVALID_PARAMETER) from None
    assert file_id is not None
    if is_related and chain.open is not None:
        found = chain.open if chain.open.tree.opens.get(chain.open.id.volatile) is chain.open else None
    elif file_id == CHAIN_FILE_ID and command == Command.IOCTL and _is_about_no_file(request.message):
        return
    else:
        found = request.tree.opens.get(file_id.volatile)
        if found is not None and found.id != file_id:
            found = None
    if found is None:
        raise Failed(Status.FILE_CLOSED)
    request.found_open = found
    if request.client.dialect >= Dialect.SMB_3_0:
        _check_sequence(request.header, found)


def _is_about_no_file(message: memoryview) -> bool:
    return int.from_bytes(message[_CODE_AT : _CODE_AT + 4], "little") in _WITHOUT_FILE


def _check_sequence(header: Header, found: Open) -> None:
    """A request that was sent before the client failed over to another channel must not change anything."""
    ahead = (header.channel_sequence - found.channel_sequence) & 0xFFFF
    if ahead < 0x8000:
        found.channel_sequence = header.channel_sequence
    elif header.command in _SEQUENCED:
        raise Failed(Status.FILE_NOT_AVAILABLE)
