"""An SMB client for lanes and crowds: 3.0.2 without signatures, so that it costs little beside what it measures."""

import base64
import socket
import struct
from collections.abc import Sequence

from tests.services.smb.fuzzing import logon
from tests.services.smb.fuzzing.requests import negotiate, session_setup, tree_connect

from bench.load.lane import RECEIVE_BYTES, Lane, Request, Work
from bench.load.site import ACCOUNT, KEY

_HEADER = struct.Struct("<4sHHIHHIIQIIQ16s")
_DIALECT = 0x0302
_CREDITS = 8000
_PENDING = 0x103
_MORE_PROCESSING = 0xC0000016
_RELATED = 4
ANY = b""
"""Expected when every status will do."""
NEGOTIATE, SESSION_SETUP, TREE_CONNECT = 0, 1, 3
CREATE, CLOSE, READ, LOCK, ECHO, QUERY_DIRECTORY, CHANGE_NOTIFY = 5, 6, 8, 10, 13, 14, 15


class SmbSession:
    """The ids of one connection. Its messages are frames, ready to send."""

    def __init__(self) -> None:
        self._message_id = 0
        self._session_id = 0
        self._tree_id = 0

    def frame(self, command: int, body: bytes, *, charge: int = 1) -> bytes:
        return _framed(self._message(command, body, charge))

    def compound(self, messages: Sequence[tuple[int, bytes]]) -> bytes:
        """Requests in one frame; all but the first are related to the one before."""
        packed = b""
        for number, (command, body) in enumerate(messages):
            body += bytes(-len(body) % 8)
            is_last = number == len(messages) - 1
            flags = _RELATED if number else 0
            packed += self._message(command, body, 1, flags, 0 if is_last else 64 + len(body))
        return _framed(packed)

    def _message(self, command: int, body: bytes, charge: int, flags: int = 0, following: int = 0) -> bytes:
        message_id, self._message_id = self._message_id, self._message_id + charge
        fields = (
            command,
            _CREDITS,
            flags,
            following,
            message_id,
            0xFEFF,
            self._tree_id,
            self._session_id,
            bytes(16),
        )
        return _HEADER.pack(b"\xfeSMB", 64, charge, 0, *fields) + body

    def log_on(self, share: str) -> Work:
        """The first requests of a connection."""
        yield Request(self.frame(NEGOTIATE, negotiate([_DIALECT], bytes(16))), success())
        first = self.frame(SESSION_SETUP, session_setup(logon.NEGOTIATE, signs=False))
        answer = yield Request(first, struct.pack("<I", _MORE_PROCESSING))
        self._session_id = struct.unpack_from("<Q", answer, 4 + 40)[0]
        token, _ = logon.authenticate(answer[4 + 64 + 8 :], ACCOUNT, base64.b64decode(KEY))
        yield Request(self.frame(SESSION_SETUP, session_setup(token, signs=False)), success())
        answer = yield Request(self.frame(TREE_CONNECT, tree_connect(f"\\\\host\\{share}")), success())
        self._tree_id = struct.unpack_from("<I", answer, 4 + 36)[0]


def _framed(message: bytes) -> bytes:
    return len(message).to_bytes(4, "big") + message


def success() -> bytes:
    return bytes(4)


def status_of(answer: bytes) -> int:
    return int.from_bytes(answer[12:16], "little")


def file_id_of(answer: bytes) -> bytes:
    """What a CREATE has opened."""
    return answer[4 + 64 + 64 : 4 + 64 + 80]


def create(name: str, *, of_directory: bool = False, disposition: int = 1, access: int = 0x12019F) -> bytes:
    encoded = name.encode("utf-16-le")
    options = 1 if of_directory else 0x40
    fields = (access, 0, 7, disposition, options, 120, len(encoded), 0, 0)
    return struct.pack("<HBBIQQIIIIIHHII", 57, 0, 0, 2, 0, 0, *fields) + (encoded or b"\0")


def close(file_id: bytes) -> bytes:
    return struct.pack("<HHI", 24, 0, 0) + file_id


def read(file_id: bytes, length: int, offset: int = 0) -> bytes:
    return struct.pack("<HBBIQ16sIIIHH", 49, 0x50, 0, length, offset, file_id, 0, 0, 0, 0, 0) + b"\0"


def query_directory(file_id: bytes, pattern: str = "*", *, length: int = 65_536, flags: int = 1) -> bytes:
    """Restarts the scan, unless the flags say otherwise. Class 37, as Windows and Linux ask for."""
    encoded = pattern.encode("utf-16-le")
    return struct.pack("<HBBI16sHHI", 33, 37, flags, 0, file_id, 96, len(encoded), length) + encoded


def change_notify(file_id: bytes) -> bytes:
    return struct.pack("<HHI16sII", 32, 1, 4096, file_id, 0xFFF, 0)


def lock(file_id: bytes, ranges: Sequence[tuple[int, int]], flags: int) -> bytes:
    packed = b"".join(struct.pack("<QQII", *each, flags, 0) for each in ranges)
    return struct.pack("<HHI", 48, len(ranges), 0) + file_id + packed


class SmbLane(Lane):
    """A request may be several frames, and then its answer has as many: ``missing`` counts them. Interim responses are
    passed over. What the work is sent is the last frame."""

    __slots__ = ()

    def begin(self) -> None:
        self.missing = _frames_in(self.due.data)
        super().begin()

    def receive(self) -> bool:
        data = self.socket.recv(RECEIVE_BYTES)
        if not data:
            raise ConnectionError("the server closed the connection")
        self.start += data
        while len(self.start) >= 4:
            end = 4 + int.from_bytes(self.start[1:4], "big")
            if len(self.start) < end:
                return False
            self.missing -= status_of(self.start) != _PENDING
            if not self.missing:
                return True
            self.start = self.start[end:]
        return False

    def is_expected(self, answer: bytes) -> bool:
        return self.due.expected in (ANY, answer[12:16])


def _frames_in(data: bytes) -> int:
    count = at = 0
    while at < len(data):
        at += 4 + int.from_bytes(data[at + 1 : at + 4], "big")
        count += 1
    return count


def converse(connected: socket.socket, work: Work) -> None:
    """Do all of the work on a blocking socket."""
    request = next(work, None)
    while request is not None:
        connected.sendall(request.data)
        answer = b""
        while not answer or status_of(answer) == _PENDING:
            answer = _received(connected)
        if request.expected not in (ANY, answer[12:16]):
            raise RuntimeError(f"status {status_of(answer):#x}")
        try:
            request = work.send(answer)
        except StopIteration:
            return


def _received(connected: socket.socket) -> bytes:
    data = b""
    wanted = 4
    while len(data) < wanted:
        more = connected.recv(wanted - len(data))
        if not more:
            raise ConnectionError("the server closed the connection")
        data += more
        if len(data) == 4:
            wanted = 4 + int.from_bytes(data[1:4], "big")
    return data
