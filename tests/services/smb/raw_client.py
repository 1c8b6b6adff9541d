"""A client that sends hand-made messages to a connection in memory, and reads what comes back.

It computes what it sends with pyspnego and ``cryptography``, and not with the code under test: signatures, keys and the
pre-authentication hash. Encryption is the exception.
"""

import asyncio
import base64
import hashlib
import hmac
import struct
from collections.abc import Sequence
from typing import NamedTuple

import spnego
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.cmac import CMAC

from kyanite.services.smb.connections.connection import Connection
from kyanite.wire.smb2 import crypto, transform
from kyanite.wire.smb2.body import Data
from kyanite.wire.smb2.ciphers import EncryptionKey
from kyanite.wire.smb2.header import Command
from kyanite.wire.smb2.status import Status
from kyanite.wire.smb2.transport import Connect
from tests.services.harness import ACCOUNT

HEADER = struct.Struct("<4sHHIHHIIQIIQ16s")
SIGNED, RELATED, ASYNC = 8, 4, 2
GUID = bytes(range(16))
PASSWORD = base64.b64encode(ACCOUNT.keys[0]).decode()


class Reply(NamedTuple):
    """A response. ``raw`` has its padding, and is what was signed."""

    command: int
    status: Status
    credits: int
    flags: int
    message_id: int
    process_id: int
    tree_id: int
    session_id: int
    signature: bytes
    raw: bytes

    @property
    def body(self) -> bytes:
        return self.raw[64:]

    @property
    def async_id(self) -> int:
        return self.tree_id << 32 | self.process_id


class FakeTransport:
    def __init__(self) -> None:
        self.sent: asyncio.Queue[bytes] = asyncio.Queue()
        self.is_closed = False
        self.is_paused = False

    def send(self, message: Sequence[Data], *, at_once: bool = False) -> None:
        self.sent.put_nowait(b"".join(message))

    def close(self) -> None:
        self.is_closed = True

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False


def split(message: bytes) -> list[Reply]:
    """The responses of a compound."""
    replies = []
    while True:
        fields = HEADER.unpack_from(message)
        following = fields[7]
        raw = message[:following] if following else message
        replies.append(
            Reply(
                fields[4],
                Status(fields[3]),
                fields[5],
                fields[6],
                fields[8],
                fields[9],
                fields[10],
                fields[11],
                fields[12],
                raw,
            )
        )
        if not following:
            return replies
        message = message[following:]


class RawClient:
    def __init__(self, connect: Connect, address: str = "192.0.2.7") -> None:
        self.transport = FakeTransport()
        connection = connect(self.transport, address, 50000)
        assert isinstance(connection, Connection)
        self.connection = connection
        self.next_id = 0
        self.session_id = 0
        self.tree_id = 0
        self.dialect = 0
        self.hash = bytes(64)
        self.session_hash = bytes(64)
        self.signing_key = b""
        self.signing_algorithm = 1
        self.cipher = 0
        self.encryption: EncryptionKey | None = None
        self.decryption: EncryptionKey | None = None
        self._nonce = 0

    # Messages

    def message(
        self,
        command: int,
        body: bytes,
        *,
        message_id: int | None = None,
        charge: int = 1,
        credits: int = 1,
        flags: int = 0,
        following: int = 0,
        tree_id: int | None = None,
        session_id: int | None = None,
        process_id: int = 0xFEFF,
        channel_sequence: int = 0,
        magic: bytes = b"\xfeSMB",
        size: int = 64,
        signs: bool = False,
        signature: bytes = bytes(16),
    ) -> bytes:
        if message_id is None:
            message_id = self.next_id
            if command != Command.CANCEL:
                self.next_id += max(charge, 1)
        packed = HEADER.pack(
            magic,
            size,
            charge,
            channel_sequence,
            command,
            credits,
            flags | (SIGNED if signs else 0),
            following,
            message_id,
            process_id,
            self.tree_id if tree_id is None else tree_id,
            self.session_id if session_id is None else session_id,
            signature,
        )
        whole = packed + body
        return self.sign(whole, message_id, command) if signs else whole

    def sign(self, message: bytes, message_id: int, command: int = 0) -> bytes:
        role = 2 if command == Command.CANCEL else 0
        return message[:48] + self.signature(message, message_id, role) + message[64:]

    def signature(self, message: bytes, message_id: int, role: int) -> bytes:
        zeroed = message[:48] + bytes(16) + message[64:]
        if self.signing_algorithm == 0:
            return hmac.digest(self.signing_key, zeroed, "sha256")[:16]
        if self.signing_algorithm == 1:
            cmac = CMAC(AES(self.signing_key))
            cmac.update(zeroed)
            return cmac.finalize()
        return AESGCM(self.signing_key).encrypt(struct.pack("<QI", message_id, role), b"", zeroed)

    def is_signed(self, reply: Reply) -> bool:
        if not reply.flags & SIGNED:
            return False
        return reply.signature == self.signature(reply.raw, reply.message_id, 1)

    def encrypted(self, message: bytes, session_id: int | None = None) -> bytes:
        assert self.encryption is not None
        self._nonce += 1
        nonce = self._nonce.to_bytes(self.encryption.nonce_bytes, "little")
        session_id = self.session_id if session_id is None else session_id
        return b"".join(self.encryption.encrypt(session_id, nonce, [message]))

    def decrypted(self, message: bytes) -> bytes:
        assert self.decryption is not None
        return bytes(self.decryption.decrypt(transform.decode(message), memoryview(message)))

    def give(self, message: bytes) -> None:
        self.connection.received(bytearray(message))

    async def next(self) -> list[Reply]:
        async with asyncio.timeout(10):
            return split(await self.transport.sent.get())

    async def request(self, command: int, body: bytes, **fields: object) -> Reply:
        self.give(self.message(command, body, **fields))  # type: ignore[arg-type]
        (reply,) = await self.next()
        return reply

    @property
    def is_closed(self) -> bool:
        return self.transport.is_closed

    async def leave(self) -> None:
        self.connection.lost()
        await self.connection.finished()

    # Conversations

    def negotiate_body(
        self,
        *dialects: int,
        ciphers: Sequence[int] = (2, 1),
        signing: Sequence[int] = (2, 1),
        capabilities: int = 0x7F,
        hashes: Sequence[int] = (1,),
        security_mode: int = 1,
        more_contexts: Sequence[tuple[int, bytes]] = (),
    ) -> bytes:
        contexts = [(1, struct.pack("<HH", len(hashes), 4) + _ids(hashes) + b"salt")]
        if ciphers:
            contexts.append((2, struct.pack("<H", len(ciphers)) + _ids(ciphers)))
        if signing:
            contexts.append((8, struct.pack("<H", len(signing)) + _ids(signing)))
        contexts += more_contexts
        listed = _ids(dialects)
        at, count, packed = 0, 0, b""
        if 0x0311 in dialects:
            end = 64 + 36 + len(listed)
            at, count = end + -end % 8, len(contexts)
            packed = bytes(at - end)
            for kind, data in contexts:
                packed += bytes(-len(packed + listed + bytes(36)) % 8)
                packed += struct.pack("<HHI", kind, len(data), 0) + data
        fixed = struct.pack(
            "<HHHHI16sIHH", 36, len(dialects), security_mode, 0, capabilities, GUID, at, count, 0
        )
        return fixed + listed + packed

    async def negotiate(self, *dialects: int, **options: object) -> Reply:
        message = self.message(Command.NEGOTIATE, self.negotiate_body(*dialects, **options))  # type: ignore[arg-type]
        self.give(message)
        (reply,) = await self.next()
        if reply.status is Status.SUCCESS:
            (self.dialect,) = struct.unpack_from("<H", reply.body, 4)
            if self.dialect == 0x0311:
                self.hash = _hash(_hash(bytes(64), message), reply.raw)
                self._read_contexts(reply)
            else:
                self.signing_algorithm = 1 if self.dialect >= 0x0300 else 0
                self.cipher = 1 if struct.unpack_from("<I", reply.body, 24)[0] & 0x40 else 0
        return reply

    def _read_contexts(self, reply: Reply) -> None:
        (count,) = struct.unpack_from("<H", reply.body, 6)
        (at,) = struct.unpack_from("<I", reply.body, 60)
        for _ in range(count):
            at += -at % 8
            kind, length = struct.unpack_from("<HH", reply.raw, at)
            data = reply.raw[at + 8 : at + 8 + length]
            if kind == 2:
                (self.cipher,) = struct.unpack_from("<H", data, 2)
            if kind == 8:
                (self.signing_algorithm,) = struct.unpack_from("<H", data, 2)
            at += 8 + length

    def setup_body(self, token: bytes, *, security_mode: int = 1, flags: int = 0, previous: int = 0) -> bytes:
        return struct.pack("<HBBIIHHQ", 25, flags, security_mode, 1, 0, 88, len(token), previous) + token

    async def log_on(
        self,
        user: str = ACCOUNT.name,
        password: str = PASSWORD,
        *,
        domain: str = "AZURE",
        raw: bool = False,
        security_mode: int = 1,
        previous: int = 0,
        again: bool = False,
        credits: int = 1,
        signs: bool = False,
    ) -> Reply:
        """Set up a session, or the present one again."""
        context = spnego.client(f"{domain}\\{user}", password, protocol="ntlm" if raw else "negotiate")
        if not again:
            self.session_id = self.tree_id = 0
        hashed = self.hash
        reply: Reply | None = None
        token = context.step() if raw else context.step(None)
        for _ in range(3):
            body = self.setup_body(token or b"", security_mode=security_mode, previous=previous)
            message = self.message(Command.SESSION_SETUP, body, credits=credits, signs=signs)
            hashed = _hash(hashed, message)
            self.give(message)
            (reply,) = await self.next()
            self.session_id = reply.session_id
            if reply.status is not Status.MORE_PROCESSING_REQUIRED:
                break
            hashed = _hash(hashed, reply.raw)
            token = context.step(_token(reply))
        assert reply is not None
        if reply.status is Status.SUCCESS and not again:
            self.session_hash = hashed
            self._use_keys(context.session_key)
        return reply

    def _use_keys(self, key: bytes) -> None:
        keys = crypto.session_keys(self.dialect, key, self.session_hash, self.cipher or 1)
        self.signing_key = keys.signing
        if self.cipher:
            self.encryption = EncryptionKey(self.cipher, keys.client_to_server)
            self.decryption = EncryptionKey(self.cipher, keys.server_to_client)

    def first_setup_body(self) -> bytes:
        token = spnego.client("user", "password", protocol="ntlm").step()
        assert token is not None
        return self.setup_body(token)

    async def open_root(self) -> bytes:
        """The id of a new open of the root directory."""
        reply = await self.request(Command.CREATE, create_body(""))
        assert reply.status is Status.SUCCESS
        return reply.body[64:80]

    async def connect_tree(self, share: str = "share", **fields: object) -> Reply:
        fields.setdefault("signs", True)
        reply = await self.request(Command.TREE_CONNECT, tree_body(share), tree_id=0, **fields)
        if reply.status is Status.SUCCESS:
            self.tree_id = reply.tree_id
        return reply

    async def echo(self, **fields: object) -> Reply:
        return await self.request(Command.ECHO, EMPTY, **fields)


EMPTY = struct.pack("<HH", 4, 0)


def tree_body(share: str) -> bytes:
    path = f"\\\\server\\{share}".encode("utf-16-le")
    return struct.pack("<HHHH", 9, 0, 72, len(path)) + path


def create_body(
    name: str, *, access: int = 0x81, disposition: int = 1, options: int = 0, share: int = 7
) -> bytes:
    encoded = name.encode("utf-16-le")
    fixed = struct.pack(
        "<HBBIQQIIIIIHHII", 57, 0, 0, 2, 0, 0, access, 0, share, disposition, options, 120, len(encoded), 0, 0
    )
    return fixed + (encoded or b"\0")


def _token(reply: Reply) -> bytes:
    at, length = struct.unpack_from("<HH", reply.body, 4)
    return reply.raw[at : at + length]


def _ids(numbers: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(numbers)}H", *numbers)


def _hash(before: bytes, message: bytes) -> bytes:
    return hashlib.sha512(before + message).digest()
