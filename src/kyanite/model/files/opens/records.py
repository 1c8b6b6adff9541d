"""What is stored of open files: files, their handles, and what clients may cache of them."""

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from kyanite.membership.api import OWNER_BYTES
from kyanite.model import keys
from kyanite.model.files.guesses import ROOT_ID
from kyanite.model.records import Record
from kyanite.rules.byte_locks import Lock
from kyanite.rules.share_modes import Open, Rights
from kyanite.values import Instant

CLIENT_BYTES = 16
KEY_BYTES = 32
"""Of a lease: the guid of the client, and the lease key that it has chosen."""

DISCONNECTED = bytes(OWNER_BYTES - 8)
"""What the owner of a durable handle begins with whose client has lost its connection; its own id follows. No process
has such an id, since those begin with the time."""


class Grant(Record, frozen=True):
    key: bytes
    """Of a lease KEY_BYTES; of an oplock the id of its handle."""
    state: int
    version: int = 0
    """1 or 2 of a lease; 0 of an oplock."""
    handle_count: int = 1
    epoch: int = 0
    requested: int | None = None
    """What the last break asks for, until it is acknowledged."""
    required: int = 0
    ends_at: Instant | None = None


class LeasedFile(Record, frozen=True):
    """What a lease key is for."""

    share_id: int
    file_id: int


class BreakMessage(Record, frozen=True):
    """A break, for the process that serves the handle."""

    handle_id: int
    key: bytes
    version: int
    current: int
    to: int
    epoch: int
    is_acknowledged: bool
    """Whether the client must answer."""

    @property
    def lease_key(self) -> bytes:
        return self.key[CLIENT_BYTES:]


def key_of_lease(client_guid: bytes, lease_key: bytes) -> bytes:
    return client_guid + lease_key


def key_of_oplock(handle_id: int) -> bytes:
    return keys.number(handle_id)


class Handle(Record, frozen=True):
    id: int
    owner: bytes
    """The process that serves the client, by its id in the membership."""
    access: int
    share: int
    session_id: int
    client_ip: str
    opened_at: Instant
    deletes_on_close: bool = False
    """Closing this handle marks the file for deletion."""
    locks: tuple[Lock, ...] = ()
    granted: int = 0
    """The access mask that its client was granted."""
    options: int = 0
    """The options that its client opened it with."""
    client_guid: bytes = b""
    client_name: str = ""
    lease_key: bytes = b""
    """The lease key that its client opened it with, if it did."""
    is_watching: bool = False
    """Whether it watches the directory that it has open."""
    lock_sequences: bytes = b""
    """Which LOCK requests were carried out: see ``rules/lock_sequences.py``."""
    durable_seconds: int = 0
    """How long it stays when its client has lost its connection; 0 if it is not durable."""
    create_guid: bytes = b""
    """By which its client tells a repeated CREATE from a new one."""
    action: int = 1
    """What the CREATE did."""
    disconnected_at: Instant | None = None
    reconnected_at: Instant | None = None

    @property
    def open(self) -> Open:
        return Open(Rights(self.access), Rights(self.share))

    @property
    def is_connected(self) -> bool:
        return not self.owner.startswith(DISCONNECTED)

    @property
    def caching_key(self) -> bytes:
        """The key of what it may cache."""
        if self.lease_key:
            return key_of_lease(self.client_guid, self.lease_key)
        return key_of_oplock(self.id)


class OpenFile(Record, frozen=True):
    """A file or directory with open handles."""

    file_id: int
    first_handle_id: int
    """The handle that opened it first, closed or not: open files are listed in this order."""
    above: tuple[int, ...]
    """The ids of the directories above it, from the root to the one that contains it; none for the root itself."""
    folded_name: str
    path: str
    """As List Handles returns it."""
    handle_count: int
    is_delete_pending: bool = False
    grants: tuple[Grant, ...] = ()
    """What clients may cache of it."""
    unwritten: int = 0
    """The handle with WRITEs that were answered and are not committed yet, if there is one: see
    ``write_behind.py``."""
    is_flush_wanted: bool = False
    """Whether others wait for these WRITEs."""
    flushed_at: Instant = Instant(0)
    """When others that had waited for such WRITEs could go on."""

    @property
    def directory_id(self) -> int:
        return self.above[-1] if self.above else ROOT_ID


OpenHandles = tuple[OpenFile, list[Handle]]
"""A file with all of its handles."""


class NamedHandle(NamedTuple):
    """Where the handle is that a client has given a create guid."""

    share_id: int
    file_id: int
    handle_id: int


decode_named_handle: Callable[[bytes], NamedHandle] = msgspec.msgpack.Decoder(NamedHandle).decode
decode_handle: Callable[[bytes], Handle] = msgspec.msgpack.Decoder(Handle).decode
decode_open_file: Callable[[bytes], OpenFile] = msgspec.msgpack.Decoder(OpenFile).decode
decode_leased_file: Callable[[bytes], LeasedFile] = msgspec.msgpack.Decoder(LeasedFile).decode
decode_break: Callable[[bytes], BreakMessage] = msgspec.msgpack.Decoder(BreakMessage).decode
