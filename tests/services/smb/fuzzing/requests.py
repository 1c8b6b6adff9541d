"""Requests as clients send them: any of these may follow any other."""

import random
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kyanite.wire.smb2.header import Command

SHARE = "share"
DIALECTS = (0x0210, 0x0300, 0x0302, 0x0311)
SNAPSHOT_SECOND = 1_790_000_000
"""When the snapshot of the share is made."""
_TOKEN = "@GMT-2026.09.21-13.33.20"
NAMES = (
    *("a", "b.txt", "dir", "dir\\f", "dir\\g", "new", "dir\\sub", "dir\\sub\\x", "Ä.bin", ""),
    *("dir", "", "a", f"{_TOKEN}\\a", f"{_TOKEN}\\dir", _TOKEN, f"dir\\{_TOKEN}"),
)
_ALL_ONES = (1 << 64) - 1
DESCRIPTOR = bytes.fromhex(
    "010004800000000000000000000000001400000002001c000100000000001400ff011f00010100000000000100000000"
)
"""Everyone may do everything."""


@dataclass
class Known:
    """What the client has learnt of a share that it is connected to: it uses this in its requests."""

    opens: list[tuple[int, int]] = field(default_factory=list)
    lease_keys: list[bytes] = field(default_factory=list)
    resume_keys: list[bytes] = field(default_factory=list)
    is_pipe: bool = False
    validation: bytes = b""
    """What FSCTL_VALIDATE_NEGOTIATE_INFO repeats of the negotiation; empty in 3.1.1, where no client sends it."""


Chance = random.Random
Build = Callable[[Chance, Known], bytes]


def _name(chance: Chance) -> bytes:
    return chance.choice(NAMES).encode("utf-16-le")


def _file_id(chance: Chance, known: Known) -> tuple[int, int]:
    if known.opens and chance.random() < 0.97:
        return chance.choice(known.opens[-8:])
    return chance.choice(((_ALL_ONES, _ALL_ONES), (0, 0), (chance.getrandbits(64), chance.getrandbits(64))))


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 8)


def negotiate(dialects: Sequence[int], guid: bytes) -> bytes:
    listed = struct.pack(f"<{len(dialects)}H", *dialects)
    fixed = struct.pack("<HHHHI16s", 36, len(dialects), 1, 0, 0x7F, guid)
    if 0x0311 not in dialects:
        return fixed + bytes(8) + listed
    contexts = [
        (1, struct.pack("<HHH", 1, 32, 1) + bytes(32)),
        (2, struct.pack("<HHHH", 3, 2, 4, 1)),
        (8, struct.pack("<HHHH", 3, 2, 1, 0)),
    ]
    offset = 64 + 36 + len(listed)
    packed = bytes(-offset % 8)
    for kind, data in contexts:
        packed += bytes(-(offset + len(packed)) % 8) + struct.pack("<HHI", kind, len(data), 0) + data
    return fixed + struct.pack("<IHH", offset + -offset % 8, len(contexts), 0) + listed + packed


def session_setup(token: bytes, *, signs: bool, previous: int = 0) -> bytes:
    return struct.pack("<HBBIIHHQ", 25, 0, 2 if signs else 1, 0, 0, 88, len(token), previous) + token


def tree_connect(path: str) -> bytes:
    name = path.encode("utf-16-le")
    return struct.pack("<HHHH", 9, 0, 72, len(name)) + name


def _contexts(chance: Chance, known: Known) -> bytes:
    """A list of create contexts."""
    lease_key = (
        chance.choice(known.lease_keys)
        if known.lease_keys and chance.random() < 0.5
        else chance.randbytes(16)
    )
    if chance.random() < 0.3:
        known.lease_keys = [*known.lease_keys[-4:], lease_key]
    state = chance.choice((0, 1, 3, 5, 7))
    choices = [
        (b"MxAc", b""),
        (b"QFid", b""),
        (b"RqLs", lease_key + struct.pack("<IIQ", state, 0, 0)),
        (b"RqLs", lease_key + struct.pack("<IIQ16sHH", state, 0, 0, bytes(16), 1, 0)),
        (b"DHnQ", bytes(16)),
        (b"DH2Q", struct.pack("<IIQ", 0, 0, 0) + chance.randbytes(16)),
        (b"AlSi", struct.pack("<Q", chance.choice((0, 4096, 1 << 40)))),
        (b"TWrp", struct.pack("<Q", (SNAPSHOT_SECOND + 11_644_473_600) * 10_000_000)),
        (b"SecD", DESCRIPTOR),
        (b"AAPL", bytes(24)),
        (b"DHnC", struct.pack("<QQ", *_file_id(chance, known))),
        (b"DH2C", struct.pack("<QQ16sI", *_file_id(chance, known), bytes(16), 0)),
    ]
    chosen = chance.sample(choices, chance.randint(1, 3))
    packed = b""
    for number, (name, data) in enumerate(chosen):
        item = struct.pack("<HHHHI", 16, len(name), 0, 24 if data else 0, len(data)) + _padded(name) + data
        is_last = number == len(chosen) - 1
        packed += struct.pack("<I", 0 if is_last else len(_padded(bytes(4) + item))) + item
        packed += b"" if is_last else bytes(-len(packed) % 8)
    return packed


def create(chance: Chance, known: Known) -> bytes:
    name = "srvsvc".encode("utf-16-le") if known.is_pipe else _name(chance)
    access = chance.choice((0x120089, 0x12019F, 0x1F01FF, 0x2000000, 0x80000000, 0x10080, 0x81, 0x80))
    options = chance.choice((0, 0, 0x40, 0x1, 0x1000, 0x1001, 0x20, 0x2))
    if options & 0x1000:
        access |= 0x10000
    disposition = chance.choice((0, 1, 1, 2, 3, 3, 4, 5, 5))
    oplock = chance.choice((0, 0, 1, 8, 9, 0xFF))
    contexts = _contexts(chance, known) if oplock == 0xFF or chance.random() < 0.3 else b""
    share = chance.choice((7, 7, 7, 3, 1, 0))
    at = 64 + 56
    behind = _padded(name) if contexts else name
    contexts_at = at + len(behind) if contexts else 0
    return (
        struct.pack(
            "<HBBIQQIIIIIHHII",
            57,
            0,
            oplock,
            2,
            0,
            0,
            access,
            chance.choice(
                (0, 0, 0x80, 0x20, 0x20, 0x10 if options & 1 else 0, 0x2 if chance.random() < 0.1 else 0)
            ),
            share,
            disposition,
            options,
            at,
            len(name),
            contexts_at,
            len(contexts),
        )
        + behind
        + contexts
        + (b"" if name or contexts else b"\0")
    )


def close(chance: Chance, known: Known) -> bytes:
    file_id = _file_id(chance, known)
    if file_id in known.opens and chance.random() < 0.9:
        known.opens.remove(file_id)
    return struct.pack("<HHIQQ", 24, chance.choice((0, 1)), 0, *file_id)


def flush(chance: Chance, known: Known) -> bytes:
    return struct.pack("<HHIQQ", 24, 0, 0, *_file_id(chance, known))


def read(chance: Chance, known: Known) -> bytes:
    length = chance.choice((0, 1, 100, 4096, 65536))
    offset = chance.choice((0, 0, 1, 100, 1 << 40))
    return (
        struct.pack("<HBBIQQQIIIHH", 49, 0x50, 0, length, offset, *_file_id(chance, known), 0, 0, 0, 0, 0)
        + b"\0"
    )


def write(chance: Chance, known: Known) -> bytes:
    data = chance.randbytes(chance.choice((0, 1, 10, 100, 5000, 20_000)))
    if known.is_pipe:
        data = rpc(chance, known)
    offset = chance.choice((0, 0, 1, 100, 70_000))
    fixed = struct.pack("<HHIQQQIIHHI", 49, 112, len(data), offset, *_file_id(chance, known), 0, 0, 0, 0, 0)
    return fixed + (data or b"\0")


def lock(chance: Chance, known: Known) -> bytes:
    count = chance.choice((1, 1, 2, 5))
    flags = chance.choice((0x1, 0x2, 0x4, 0x11, 0x12)) if count == 1 else chance.choice((0x11, 0x12, 0x4))
    elements = b"".join(
        struct.pack(
            "<QQII", chance.choice((0, 10, 100, _ALL_ONES)), chance.choice((0, 1, 10, 1 << 40)), flags, 0
        )
        for _ in range(count)
    )
    return struct.pack("<HHIQQ", 48, count, chance.choice((0, 0x11)), *_file_id(chance, known)) + elements


RPC_BIND = bytes.fromhex(
    "05000b03100000004800000001000000b810b810000000000100000000000100c84f324b7016d30112785a47bf6ee188"
    "03000000045d888aeb1cc9119fe808002b10486002000000"
)


def _rpc_call(operation: int, stub: bytes) -> bytes:
    length = 24 + len(stub)
    return struct.pack("<BBBBIHHIIHH", 5, 0, 0, 3, 0x10, length, 0, 2, len(stub), 0, operation) + stub


RPC_CALLS = (
    _rpc_call(15, struct.pack("<9I", 0, 1, 1, 0x20004, 0, 0, 0xFFFFFFFF, 0x20008, 0)),
    _rpc_call(15, struct.pack("<7I", 0, 0, 0, 0x20004, 0, 0, 0xFFFFFFFF) + bytes(4)),
    _rpc_call(16, struct.pack("<IIII", 0, 6, 0, 6) + "share\0".encode("utf-16-le") + struct.pack("<I", 1)),
    _rpc_call(99, b""),
)


def rpc(chance: Chance, _known: Known) -> bytes:
    return chance.choice((RPC_BIND, *RPC_CALLS))


def ioctl(chance: Chance, known: Known) -> bytes:
    first, second = _file_id(chance, known), _file_id(chance, known)
    resume_key = struct.pack("<QQQ", *second, 0)
    chunks = struct.pack("<24sIIQQII", resume_key, 1, 0, 0, 0, 100, 0)
    code, data = chance.choice(
        (
            (0x00140204, known.validation),
            (0x00060194, b"\4\0\\\0a\0\0\0"),
            (0x0011C017, rpc(chance, known)),
            (0x00140078, b""),
            (0x001440F2, chunks),
            (0x001480F2, chunks),
            (0x00144064, b""),
            (0x001401FC, b""),
            (0x000900A8, b""),
            (0x000900C4, b"\1"),
            (0x0009003C, b""),
            (0x0009C040, b"\1\0"),
            (0x000980C8, struct.pack("<QQ", 0, 100)),
            (0x000940CF, struct.pack("<QQ", 0, 1 << 20)),
            (chance.getrandbits(32), chance.randbytes(16)),
        )
    )
    if known.is_pipe and chance.random() < 0.7:
        code, data = 0x0011C017, rpc(chance, known)
    if code == 0x00140204 and not data:  # In 3.1.1 it closes the connection.
        code = 0x00140078
    file_id = (_ALL_ONES, _ALL_ONES) if code in (0x00060194, 0x001401FC, 0x00140204) else first
    fixed = struct.pack(
        "<HHIQQIIIIIIII", 57, 0, code, *file_id, 120 if data else 0, len(data), 0, 0, 0, 4096, 1, 0
    )
    return fixed + (data or b"\0")


def query_directory(chance: Chance, known: Known) -> bytes:
    pattern = chance.choice(("*", "a", "*.txt", '<"*', "nothing")).encode("utf-16-le")
    kind = chance.choice((1, 2, 3, 12, 37, 38, 60, 63))
    flags = chance.choice((0, 0, 1, 2, 0x10, 3))
    length = chance.choice((100, 1000, 65536))
    return (
        struct.pack("<HBBIQQHHI", 33, kind, flags, 0, *_file_id(chance, known), 96, len(pattern), length)
        + pattern
    )


def change_notify(chance: Chance, known: Known) -> bytes:
    length = chance.choice((0, 100, 1000, 65536))
    return struct.pack("<HHIQQII", 32, chance.choice((0, 1)), length, *_file_id(chance, known), 0xFFF, 0)


def query_info(chance: Chance, known: Known) -> bytes:
    kind, level = chance.choice(
        [(1, each) for each in (4, 5, 6, 7, 8, 14, 15, 16, 17, 18, 21, 22, 28, 34, 35, 48, 59)]
        + [(2, each) for each in (1, 3, 4, 5, 6, 7, 8, 11)]
        + [(3, 0), (4, 0)]
    )
    length = chance.choice((4, 100, 1000, 65536))
    fixed = struct.pack("<HBBIHHIIIQQ", 41, kind, level, length, 0, 0, 0, 0x7, 0, *_file_id(chance, known))
    return fixed + b"\0"


def set_info(chance: Chance, known: Known) -> bytes:
    name = _name(chance)
    kind, level, data = chance.choice(
        (
            (1, 4, struct.pack("<QQQQII", 0, 0, 133_000_000_000_000_000, _ALL_ONES, 0x20, 0)),
            (1, 10, struct.pack("<B7xQI", chance.choice((0, 1)), 0, len(name)) + name),
            (1, 65, struct.pack("<I4xQI", chance.choice((0, 1)), 0, len(name)) + name),
            (1, 13, bytes((chance.choice((0, 1)),))),
            (1, 64, struct.pack("<I", chance.choice((0, 1)))),
            (1, 14, bytes(8)),
            (1, 16, bytes(4)),
            (1, 19, struct.pack("<Q", chance.choice((0, 100, 1 << 20)))),
            (1, 20, struct.pack("<Q", chance.choice((0, 100, 1 << 20)))),
            (1, 15, bytes(8)),
            (1, 11, struct.pack("<B7xQI", 0, 0, len(name)) + name),
            (
                3,
                0,
                bytes.fromhex(
                    "010004800000000000000000000000001400000002001c000100000000001400ff011f00010100000000000100000000"
                ),
            ),
            (2, 6, bytes(48)),
        )
    )
    return struct.pack("<HBBIHHIQQ", 33, kind, level, len(data), 96, 0, 0x4, *_file_id(chance, known)) + data


def oplock_break(chance: Chance, known: Known) -> bytes:
    if known.lease_keys and chance.random() < 0.5:
        key = chance.choice(known.lease_keys)
        return struct.pack("<HHI16sIQ", 36, 0, 0, key, chance.choice((0, 1, 3)), 0)
    return struct.pack("<HBBIQQ", 24, chance.choice((0, 1)), 0, 0, *_file_id(chance, known))


def _four(_chance: Chance, _known: Known) -> bytes:
    return b"\4\0\0\0"


REQUESTS: dict[int, tuple[Build, int]] = {
    Command.CREATE: (create, 30),
    Command.CLOSE: (close, 12),
    Command.FLUSH: (flush, 3),
    Command.READ: (read, 8),
    Command.WRITE: (write, 8),
    Command.LOCK: (lock, 6),
    Command.IOCTL: (ioctl, 8),
    Command.CANCEL: (_four, 3),
    Command.ECHO: (_four, 1),
    Command.QUERY_DIRECTORY: (query_directory, 6),
    Command.CHANGE_NOTIFY: (change_notify, 5),
    Command.QUERY_INFO: (query_info, 8),
    Command.SET_INFO: (set_info, 8),
    Command.OPLOCK_BREAK: (oplock_break, 3),
}
"""What builds the body of each request, and how often."""
