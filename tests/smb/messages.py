"""smbprotocol by single messages, with the numbers of the protocol, so that a test reads like a captured sequence.

    with connected(login, "share") as client:
        opened = client.create("a.txt", access=0x12019F, disposition=OVERWRITE_IF)
        client.write(opened, b"text", 0)

A refusal is ``smbprotocol.exceptions.SMBResponseException``; ``refused`` checks its status.
"""

import queue
import struct
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest
from smbprotocol.connection import Connection, Dialects
from smbprotocol.create_contexts import SMB2CreateContextRequest
from smbprotocol.exceptions import SMBResponseException
from smbprotocol.ioctl import SMB2IOCTLRequest, SMB2IOCTLResponse
from smbprotocol.open import (
    Open,
    SMB2QueryDirectoryRequest,
    SMB2QueryDirectoryResponse,
    SMB2QueryInfoRequest,
    SMB2QueryInfoResponse,
    SMB2SetInfoRequest,
)
from smbprotocol.session import Session
from smbprotocol.tree import TreeConnect

from tests.smb.programs import HOST, Login

SUPERSEDE, OPEN, CREATE, OPEN_IF, OVERWRITE, OVERWRITE_IF = range(6)
DIRECTORY, NON_DIRECTORY, DELETE_ON_CLOSE = 0x1, 0x40, 0x1000
SHARE_READ, SHARE_WRITE, SHARE_DELETE, SHARE_ALL = 1, 2, 4, 7
READ_ATTRIBUTES, DELETE, READ_WRITE, GENERIC_READ, GENERIC_ALL = 0x80, 0x10000, 0x12019F, 0x120089, 0x1F01FF
FILE, FILE_SYSTEM, SECURITY = 1, 2, 3
NO_MORE_FILES = 0x80000006
WHOLE_CHAIN = b"\xff" * 16
"""The file id that stands for that of the chain."""

DIALECTS = {
    "2.1": Dialects.SMB_2_1_0,
    "3.0": Dialects.SMB_3_0_0,
    "3.0.2": Dialects.SMB_3_0_2,
    "3.1.1": Dialects.SMB_3_1_1,
}
_UNSOLICITED = 0xFFFFFFFFFFFFFFFF
_CREDITS = 512
"""smbprotocol requests no more than it spends, which leaves no room for several requests at a time."""
_WAIT_SECONDS = 20.0


class Reply(NamedTuple):
    """A response in a compound: its status and the bytes behind the header."""

    status: int
    body: bytes


class Client:
    """One connection with one session and one share."""

    def __init__(self, tree: TreeConnect) -> None:
        self.tree = tree
        self.session: Session = tree.session
        self.connection: Connection = tree.session.connection
        self.breaks = Breaks(self.connection)

    # Single messages

    def create(self, name: str, **options: Any) -> Open:
        opened = Open(self.tree, name)
        opened.contexts = opened.create(**_create_options(**options))
        return opened

    def close(self, opened: Open) -> Any:
        """Close with attributes."""
        return opened.close(get_attributes=True)

    def write(self, opened: Open, data: bytes, offset: int = 0) -> int:
        written: int = opened.write(data, offset)
        return written

    def read(self, opened: Open, offset: int, length: int) -> bytes:
        data: bytes = opened.read(offset, length)
        return data

    def query(
        self, opened: Open, kind: int, info_class: int, *, length: int = 65536, parts: int = 0
    ) -> bytes:
        body = self.call(query_info(opened.file_id, kind, info_class, length=length, parts=parts))
        return data_of_query(body)

    def change(self, opened: Open, kind: int, info_class: int, data: bytes, *, parts: int = 0) -> None:
        self.call(set_info(opened.file_id, kind, info_class, data, parts=parts))

    def listing(self, opened: Open, info_class: int, pattern: str = "*", **options: Any) -> bytes:
        """One QUERY_DIRECTORY."""
        body = self.call(query_directory(opened.file_id, info_class, pattern, **options))
        return data_of_listing(body)

    def names(self, file_id: bytes, info_class: int, *, length: int = 65536) -> list[str]:
        """The names from the position of the handle to the end."""
        names: list[str] = []
        while True:
            reply = self._reply(self.send(query_directory(file_id, info_class, length=length)))
            if reply.status:
                assert reply.status == NO_MORE_FILES
                return names
            names += names_in(data_of_listing(reply.body), info_class)

    def ioctl(self, file_id: bytes, code: int, data: bytes = b"", *, max_output: int = 65536) -> bytes:
        response = SMB2IOCTLResponse()
        response.unpack(self.call(ioctl(file_id, code, data, max_output=max_output)))
        output: bytes = response["buffer"].get_value()
        return output

    def call(self, message: Any) -> bytes:
        """Send a message, wait for the final response, and return its body. Raises SMBResponseException."""
        return self.received(self.send(message))

    def send(self, message: Any) -> Any:
        """Send without waiting."""
        return self.connection.send(message, self.session.session_id, self.tree.tree_connect_id)

    def received(self, request: Any) -> bytes:
        response = self.connection.receive(request, timeout=_WAIT_SECONDS)
        body: bytes = response["data"].get_value()
        return body

    # Compounds

    def compound(self, *messages: Any, related: bool = True) -> list[Reply]:
        """Send messages in one frame and wait for all responses."""
        requests = self.connection.send_compound(
            list(messages), self.session.session_id, self.tree.tree_connect_id, related=related
        )
        return [self._reply(request) for request in requests]

    def _reply(self, request: Any) -> Reply:
        try:
            return Reply(0, self.received(request))
        except SMBResponseException as refusal:
            return Reply(refusal.status, refusal.header["data"].get_value())

    def new_create(self, name: str, **options: Any) -> Any:
        """The message of a CREATE, for a compound."""
        return Open(self.tree, name).create(**_create_options(**options), send=False)[0]


class Breaks:
    """What the server sends unasked. smbprotocol expects none of it; this is the request that it never made."""

    def __init__(self, connection: Connection) -> None:
        self._received: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self.message = {"reserved": _Number(0)}
        self.session_id = 0
        self.async_id = b""
        self.response_event = threading.Event()
        self.response_event_lock = threading.Lock()
        connection.outstanding_requests[_UNSOLICITED] = self

    @property
    def response(self) -> None:
        return None

    @response.setter
    def response(self, header: Any) -> None:
        self._received.put(header["data"].get_value())

    def next(self, seconds: float = _WAIT_SECONDS) -> bytes:
        """The body of the next break. Raises ``queue.Empty``."""
        return self._received.get(timeout=seconds)

    def is_empty(self) -> bool:
        return self._received.empty()


class _Number(NamedTuple):
    value: int

    def get_value(self) -> int:
        return self.value


@contextmanager
def connected(
    login: Login,
    share: str,
    *,
    dialect: str = "3.1.1",
    encrypted: bool = False,
    signed: bool = True,
    ciphers: Sequence[int] | None = None,
    signing: Sequence[int] | None = None,
    guid: uuid.UUID | None = None,
) -> Iterator[Client]:
    """A client of its own connection. Everything of it ends with the block."""
    connection = Connection(guid or uuid.uuid4(), HOST, login.port, require_signing=signed)
    connection.connect(DIALECTS[dialect], preferred_encryption_algos=ciphers, preferred_signing_algos=signing)
    try:
        session = Session(connection, login.user, login.password, require_encryption=encrypted)
        session.connect()
        tree = TreeConnect(session, rf"\\{HOST}\{share}")
        tree.connect()
        connection.echo(session.session_id, credit_request=_CREDITS)
        yield Client(tree)
    finally:
        connection.outstanding_requests.pop(_UNSOLICITED, None)
        connection.disconnect(close=True)


@contextmanager
def refused(status: int) -> Iterator[None]:
    """The server answers with this status."""
    with pytest.raises(SMBResponseException) as caught:
        yield
    assert hex(caught.value.status) == hex(status)


# Messages


def _create_options(
    access: int = GENERIC_ALL,
    *,
    attributes: int = 0,
    sharing: int = SHARE_ALL,
    disposition: int = OPEN,
    options: int = 0,
    contexts: Sequence[SMB2CreateContextRequest] = (),
    oplock: int = 0,
) -> dict[str, Any]:
    return {
        "impersonation_level": 2,
        "desired_access": access,
        "file_attributes": attributes,
        "share_access": sharing,
        "create_disposition": disposition,
        "create_options": options,
        "create_contexts": list(contexts) or None,
        "oplock_level": oplock,
    }


def context(name: bytes, data: bytes = b"") -> SMB2CreateContextRequest:
    """A create context from bytes."""
    made = SMB2CreateContextRequest()
    made["buffer_name"] = name
    made["buffer_data"] = data
    return made


def query_info(file_id: bytes, kind: int, info_class: int, *, length: int = 65536, parts: int = 0) -> Any:
    message = SMB2QueryInfoRequest()
    message["info_type"] = kind
    message["file_info_class"] = info_class
    message["output_buffer_length"] = length
    message["additional_information"] = parts
    message["file_id"] = file_id
    return message


def data_of_query(body: bytes) -> bytes:
    response = SMB2QueryInfoResponse()
    response.unpack(body)
    data: bytes = response["buffer"].get_value()
    return data


def set_info(file_id: bytes, kind: int, info_class: int, data: bytes, *, parts: int = 0) -> Any:
    message = SMB2SetInfoRequest()
    message["info_type"] = kind
    message["file_info_class"] = info_class
    message["additional_information"] = parts
    message["file_id"] = file_id
    message["buffer"] = data
    return message


def query_directory(
    file_id: bytes, info_class: int, pattern: str = "*", *, flags: int = 0, length: int = 65536
) -> Any:
    message = SMB2QueryDirectoryRequest()
    message["file_information_class"] = info_class
    message["flags"] = flags
    message["file_id"] = file_id
    message["output_buffer_length"] = length
    message["buffer"] = pattern.encode("utf-16-le")
    return message


def data_of_listing(body: bytes) -> bytes:
    response = SMB2QueryDirectoryResponse()
    response.unpack(body)
    data: bytes = response["buffer"].get_value()
    return data


def ioctl(file_id: bytes, code: int, data: bytes = b"", *, max_output: int = 65536) -> Any:
    message = SMB2IOCTLRequest()
    message["ctl_code"] = code
    message["file_id"] = file_id
    message["max_output_response"] = max_output
    message["flags"] = 1
    message["buffer"] = data
    return message


# Information


def rename_to(path: str, *, replace: bool = False) -> bytes:
    """The buffer of a rename, class 10."""
    name = path.encode("utf-16-le")
    return struct.pack("<B7xQI", replace, 0, len(name)) + name


NAME_OFFSETS = {1: 64, 2: 68, 3: 94, 12: 12, 37: 104, 38: 80}
_LENGTH_OFFSETS = {12: 8}


def names_in(listing: bytes, info_class: int) -> list[str]:
    """The names of a listing, in its order."""
    names = []
    position = 0
    while True:
        (following,) = struct.unpack_from("<I", listing, position)
        (length,) = struct.unpack_from("<I", listing, position + _LENGTH_OFFSETS.get(info_class, 60))
        start = position + NAME_OFFSETS[info_class]
        names.append(listing[start : start + length].decode("utf-16-le"))
        if not following:
            return names
        position += following
