"""Clients of both protocols. The value of a file is the number in its first eight bytes."""

import random
import struct
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from queue import Empty

from azure.core.exceptions import HttpResponseError
from azure.storage.fileshare import ShareClient
from smbprotocol.exceptions import SMBResponseException
from smbprotocol.open import Open, SMB2LockElement

from tests.smb.histories import checker
from tests.smb.histories.history import History
from tests.smb.messages import GENERIC_READ, READ_WRITE, SHARE_ALL, SHARE_READ, Client, connected, context
from tests.smb.programs import Login

BYTES = 8
_SHARED, _EXCLUSIVE, _UNLOCK, _AT_ONCE = 0x1, 0x2, 0x4, 0x10
_REFUSALS = {409, 412}
_REFUSED = {0xC0000043, 0xC0000054, 0xC0000055, 0xC0000022}
"""SHARING_VIOLATION, FILE_LOCK_CONFLICT, LOCK_NOT_GRANTED, ACCESS_DENIED."""


def packed(value: int) -> bytes:
    return struct.pack("<Q", value)


def unpacked(data: bytes) -> int:
    value: int = struct.unpack("<Q", data)[0]
    return value


class RestClient:
    """Reads, writes, and takes leases."""

    def __init__(self, name: str, rest: ShareClient, history: History) -> None:
        self.name = name
        self._rest = rest
        self._history = history

    def act(self, chance: random.Random, file: str, values: Callable[[], int]) -> None:
        act = chance.choices((self._read, self._write, self._lease), (4, 3, 3))[0]
        try:
            act(file, values)
        except HttpResponseError as error:
            if error.status_code not in _REFUSALS:
                raise
            self._history.refused(f"REST: {error.error_code}")  # type: ignore[attr-defined]

    def close(self) -> None:
        self._rest.close()

    def _read(self, file: str, _values: Callable[[], int]) -> None:
        client = self._rest.get_file_client(file)
        self._history.read(
            self.name, file, lambda: unpacked(client.download_file(0, BYTES).readall()), is_rest=True
        )

    def _write(self, file: str, values: Callable[[], int]) -> None:
        client = self._rest.get_file_client(file)
        value = values()
        self._history.write(
            self.name, file, value, lambda: client.upload_range(packed(value), 0, BYTES), is_rest=True
        )

    def _lease(self, file: str, values: Callable[[], int]) -> None:
        client = self._rest.get_file_client(file)
        lease = client.acquire_lease()
        began_at = time.monotonic_ns()
        try:
            value = values()
            self._history.write(
                self.name,
                file,
                value,
                lambda: client.upload_range(packed(value), 0, BYTES, lease=lease),
                is_rest=True,
            )
        finally:
            self._history.held(self.name, file, checker.LEASE, began_at, time.monotonic_ns())
            lease.release()


class SmbClient:
    """Reads and writes through handles of every share mode, and takes locks."""

    def __init__(self, name: str, login: Login, share: str, history: History) -> None:
        self.name = name
        self._history = history
        self._connection: AbstractContextManager[Client] = connected(login, share)
        self._client = self._connection.__enter__()

    def act(self, chance: random.Random, file: str, values: Callable[[], int]) -> None:
        what, sharing = chance.choice(
            (
                (None, SHARE_ALL),
                (checker.WRITING_HANDLE, SHARE_ALL),
                (checker.WRITING_HANDLE, SHARE_ALL),
                (checker.EXCLUSIVE_HANDLE, 0),
                (checker.READ_SHARING_HANDLE, SHARE_READ),
            )
        )
        try:
            self._with_handle(chance, file, values, what, sharing)
        except SMBResponseException as error:
            self._refused(error)

    def close(self) -> None:
        self._connection.__exit__(None, None, None)

    def _refused(self, error: SMBResponseException) -> None:
        if error.status not in _REFUSED:
            raise error
        self._history.refused(f"SMB: {error.status:#x}")

    def _with_handle(
        self, chance: random.Random, file: str, values: Callable[[], int], what: str | None, sharing: int
    ) -> None:
        access = READ_WRITE if what else GENERIC_READ
        opened = self._client.create(file, access=access, sharing=sharing)
        began_at = time.monotonic_ns()
        try:
            for _ in range(chance.randint(1, 3)):
                self._use(chance, file, opened, values, may_write=what is not None)
        finally:
            if what is not None:
                self._history.held(self.name, file, what, began_at, time.monotonic_ns())
            self._client.close(opened)

    def _use(
        self, chance: random.Random, file: str, opened: Open, values: Callable[[], int], *, may_write: bool
    ) -> None:
        kind = chance.choice((None, None, checker.SHARED_LOCK, checker.EXCLUSIVE_LOCK))
        if kind is None:
            self._access(chance, file, opened, values, may_write=may_write)
            return
        flags = _SHARED if kind == checker.SHARED_LOCK else _EXCLUSIVE
        _lock(opened, flags | _AT_ONCE)
        began_at = time.monotonic_ns()
        try:
            writes = may_write and kind == checker.EXCLUSIVE_LOCK
            self._access(chance, file, opened, values, may_write=writes)
        finally:
            self._history.held(self.name, file, kind, began_at, time.monotonic_ns())
            _lock(opened, _UNLOCK)

    def _access(
        self, chance: random.Random, file: str, opened: Open, values: Callable[[], int], *, may_write: bool
    ) -> None:
        if may_write and chance.random() < 0.5:
            value = values()
            self._history.write(self.name, file, value, lambda: self._client.write(opened, packed(value), 0))
        else:
            self._history.read(self.name, file, lambda: unpacked(self._client.read(opened, 0, BYTES)))


def _lock(opened: Open, flags: int) -> None:
    element = SMB2LockElement()
    element["offset"], element["length"], element["flags"] = 0, BYTES, flags
    opened.lock([element])


class Acknowledgement:
    """Of a lease break: not among the messages of smbprotocol."""

    COMMAND = 18

    def __init__(self, key: bytes, state: int) -> None:
        self._packed = struct.pack("<HHI16sIQ", 36, 0, 0, key, state, 0)

    def pack(self) -> bytes:
        return self._packed

    def __len__(self) -> int:
        return len(self._packed)


class CachingClient:
    """Keeps what it reads and writes to itself for as long as the server lets it, as real clients of SMB do.

    With the right to cache writes (W) it answers from memory. When the server breaks that, it writes what is new and
    acknowledges, in a thread of its own.
    """

    _R, _W = 1, 4
    _WANTED = 7

    def __init__(self, name: str, login: Login, share: str, history: History) -> None:
        self.name = name
        self._history = history
        self._connection: AbstractContextManager[Client] = connected(login, share)
        self._client = self._connection.__enter__()
        self._lock = threading.Lock()
        self._key = b""
        """Another for each open: a break may still be on its way when the file is closed."""
        self._opens = 0
        self._opened: Open | None = None
        self._opened_at = 0
        self._file = ""
        self._state = 0
        self._value: int | None = None
        self._is_dirty = False
        self._is_closed = False
        self._thread = threading.Thread(target=self._follow_breaks, daemon=True)
        self._thread.start()

    def act(self, chance: random.Random, file: str, values: Callable[[], int]) -> None:
        try:
            if self._opened is None:
                self._open(file)
            for _ in range(chance.randint(1, 4)):
                self._access(chance, values)
            if chance.random() < 0.5:
                self._close()
        except SMBResponseException as error:
            if error.status not in _REFUSED:
                raise
            self._history.refused(f"SMB: {error.status:#x}")

    def close(self) -> None:
        self._close()
        self._is_closed = True
        self._thread.join()
        self._connection.__exit__(None, None, None)

    def _open(self, file: str) -> None:
        self._close()
        self._opens += 1
        self._key = f"{self.name:10.10}{self._opens:06}".encode()
        request = context(b"RqLs", self._key + struct.pack("<IIQ", self._WANTED, 0, 0))
        with self._lock:  # A break of the new lease waits until it is known what was granted.
            opened = self._client.create(
                file, access=READ_WRITE, sharing=SHARE_ALL, contexts=[request], oplock=0xFF
            )
            self._opened, self._file, self._opened_at = opened, file, time.monotonic_ns()
            self._state = _granted(opened)

    def _close(self) -> None:
        with self._lock:
            opened, self._opened = self._opened, None
            if opened is None:
                return
            self._flush(opened)
            self._state = 0
        self._history.held(
            self.name, self._file, checker.WRITING_HANDLE, self._opened_at, time.monotonic_ns()
        )
        self._client.close(opened)

    def _access(self, chance: random.Random, values: Callable[[], int]) -> None:
        opened, file = self._opened, self._file
        if opened is None:
            return
        if chance.random() < 0.5:
            value = values()
            self._history.write(self.name, file, value, lambda: self._write(opened, value))
        else:
            self._history.read(self.name, file, lambda: self._read(opened))

    def _write(self, opened: Open, value: int) -> None:
        with self._lock:
            if self._state & self._W:
                self._value, self._is_dirty = value, True
                return
        self._client.write(opened, packed(value), 0)

    def _read(self, opened: Open) -> int:
        with self._lock:
            if self._state & self._W:
                if self._value is None:
                    self._value = unpacked(self._client.read(opened, 0, BYTES))
                return self._value
        return unpacked(self._client.read(opened, 0, BYTES))

    def _flush(self, opened: Open) -> None:
        if self._is_dirty and self._value is not None:
            self._client.write(opened, packed(self._value), 0)
        self._value, self._is_dirty = None, False

    def _follow_breaks(self) -> None:
        while not self._is_closed:
            try:
                body = self._client.breaks.next(0.05)
            except Empty:
                continue
            flags, key, _, new = struct.unpack_from("<I16sII", body, 4)
            with self._lock:
                if key != self._key or self._opened is None:
                    continue
                self._flush(self._opened)
                self._state = new
                if flags & 1:
                    self._client.call(Acknowledgement(self._key, new))


def _granted(opened: Open) -> int:
    """The state of the lease in the response to CREATE."""
    for each in opened.contexts or []:
        data = bytes(getattr(each, "pack", lambda: b"")())
        if len(data) >= 20:
            state: int = struct.unpack_from("<I", data, 16)[0]
            return state
    return 0
