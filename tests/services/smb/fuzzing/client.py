"""A client that knows the protocol and breaks it now and then."""

import asyncio
import random
import struct
from collections import Counter
from collections.abc import Callable, Sequence

from kyanite.wire.smb2 import crypto, transform
from kyanite.wire.smb2.body import Data
from kyanite.wire.smb2.ciphers import EncryptionKey, SigningKey
from kyanite.wire.smb2.header import ASYNC, MAGIC, RELATED, RESPONSE, SIGNED, Command, Header, decode
from kyanite.wire.smb2.status import Status
from tests.services.smb.fuzzing import logon
from tests.services.smb.fuzzing.mutations import mutate
from tests.services.smb.fuzzing.requests import (
    DIALECTS,
    REQUESTS,
    SHARE,
    Known,
    negotiate,
    session_setup,
    tree_connect,
)
from tests.services.smb.fuzzing.servers import Server

_BUILDERS = list(REQUESTS)
_WEIGHTS = [weight for _, weight in REQUESTS.values()]
_PIPE_COMMANDS = (Command.WRITE, Command.READ, Command.IOCTL, Command.CREATE)
_PIPE_WEIGHTS = [30 if command in _PIPE_COMMANDS else 1 for command in REQUESTS]
_OPENS_MAX = 50
_ENCRYPT_DATA = 4
_ITERATIONS_MAX = 200
"""How many iterations of the loop the answer to a logon may take; when it was changed, there may be none."""
_LOST_REQUESTS = 5
"""Of a client that is not logged on, or not connected to a share."""
SMB1_NEGOTIATE = b"\xffSMB\x72" + bytes(27) + b"\0" + struct.pack("<H", 11) + b"\2SMB 2.???\0"


class Unexpected(AssertionError):
    """The server sent what no client could understand."""


class FuzzClient:
    """One connection. ``mutation_rate`` is how many of its messages are changed."""

    def __init__(
        self,
        user: str,
        keys: Sequence[bytes],
        server: Callable[["FuzzClient"], Server],
        chance: random.Random,
        mutation_rate: float,
    ) -> None:
        self._user = user
        self._keys = keys
        self._chance = chance
        self._mutation_rate = mutation_rate
        self._known: dict[int, Known] = {}
        """By the ids of trees."""
        self._waiting: list[tuple[int, int]] = []
        """The message ids and async ids of requests that wait, or did."""
        self._tree_ids: dict[int, int] = {}
        """Of the last requests, by their message ids: a response that was waited for does not name its tree."""
        self._has_logged_off = False
        self._validation = b""
        self._message_id = 0
        self._session_id = 0
        self._signing: SigningKey | None = None
        self._encryption: EncryptionKey | None = None
        self._decryption: dict[int, EncryptionKey] = {}
        """By the ids of sessions: an earlier one may still be answered."""
        self._signs = False
        self._encrypts = False
        self._nonce = 0
        self._hash = crypto.NO_HASH
        self._negotiation_hash = crypto.NO_HASH
        self._dialect = 0
        self._cipher = 0
        self._algorithm = 0
        self._responses: list[tuple[Header, bytes]] = []
        self.inputs = 0
        self.is_closed = False
        self.statuses: Counter[tuple[int, int]] = Counter()
        """How often each command was answered with each status."""
        self.server = server(self)

    # What the connection calls: wire.smb2.transport.Transport

    def send(self, message: Sequence[Data], *, at_once: bool = False) -> None:
        data = b"".join(message)
        if data[:4] == transform.MAGIC:
            head = transform.decode(data)
            if head.session_id not in self._decryption:
                raise Unexpected("encrypted without a key")
            data = bytes(self._decryption[head.session_id].decrypt(head, memoryview(data)))
        if data[:4] == b"\xffSMB":
            return
        while data:
            header = decode(data)
            if not header.flags & RESPONSE or data[:4] != MAGIC:
                raise Unexpected("no response")
            end = header.next_command or len(data)
            self._learn(header, data[64:end])
            data = data[end:]

    def close(self) -> None:
        self.is_closed = True

    def pause(self) -> None:
        pass

    def resume(self) -> None:
        pass

    def _learn(self, header: Header, body: bytes) -> None:
        self._responses = [*self._responses[-4:], (header, body)]
        Status(header.status)
        self.statuses[header.command, header.status] += 1
        if header.status == Status.PENDING:
            self._waiting = [*self._waiting[-8:], (header.message_id, header.async_id)]
        tree_id = self._tree_ids.get(header.message_id, 0)
        if header.command == Command.CREATE and header.status == Status.SUCCESS and tree_id in self._known:
            first, second = struct.unpack_from("<QQ", body, 64)
            self._known[tree_id].opens.append((first, second))

    # A conversation

    async def converse(self, length: int) -> None:
        """Log on, connect to a share, and send so many requests; fewer if the server closes the connection."""
        await self._begin()
        for _ in range(length if self._known else _LOST_REQUESTS):
            if self.is_closed or self._has_logged_off:
                return
            await self._request()

    async def lose(self) -> None:
        await self.server.lose()

    async def _begin(self) -> None:
        chance = self._chance
        self._dialect = chance.choice(DIALECTS)
        if chance.random() < 0.1:
            await self._pass_on(bytearray(SMB1_NEGOTIATE))
            self._message_id = 1
        offered = [each for each in DIALECTS if each <= self._dialect]
        guid = chance.randbytes(16)
        self._validation = struct.pack(f"<I16sHH{len(offered)}H", 0x7F, guid, 1, len(offered), *offered)
        await self._send_setup(Command.NEGOTIATE, negotiate(offered, guid))
        found = self._last(Command.NEGOTIATE)
        if found is None or found[0].status != Status.SUCCESS:
            return
        self._read_negotiation(found[1])
        self._negotiation_hash = self._hash
        self._signs = chance.random() < 0.5
        await self._log_on()

    async def _log_on(self, previous: int = 0) -> None:
        """Set up a session, which ends the previous one if its id is given, and connect to shares."""
        self._hash = self._negotiation_hash
        first = session_setup(logon.NEGOTIATE, signs=self._signs, previous=previous)
        await self._send_setup(Command.SESSION_SETUP, first)
        found = self._last(Command.SESSION_SETUP)
        if found is None or found[0].status != Status.MORE_PROCESSING_REQUIRED:
            return
        await self._authenticate(found[0].session_id, found[1], previous)
        found = self._last(Command.SESSION_SETUP)
        if (
            found is None or found[0].status != Status.SUCCESS
        ):  # The end of the previous session may take long.
            return
        for path in (SHARE, SHARE, "IPC$")[: self._chance.randint(1, 3)]:
            await self._send([(Command.TREE_CONNECT, tree_connect(f"\\\\host\\{path}"), 0)])
            found = self._last(Command.TREE_CONNECT)
            if found is not None and found[0].status == Status.SUCCESS:
                validation = b"" if self._dialect == 0x0311 else self._validation
                self._known[found[0].tree_id] = Known(is_pipe=path == "IPC$", validation=validation)

    def _read_negotiation(self, body: bytes) -> None:
        self._dialect = struct.unpack_from("<H", body, 4)[0]
        self._algorithm = crypto.default_signing(self._dialect)
        self._cipher = 1 if self._dialect in (0x0300, 0x0302) else 0
        if self._dialect != 0x0311:
            return
        count, at = struct.unpack_from("<H", body, 6)[0], struct.unpack_from("<I", body, 60)[0] - 64
        for _ in range(count):
            at += -at % 8
            kind, length = struct.unpack_from("<HH", body, at)
            if kind == 2:
                self._cipher = struct.unpack_from("<H", body, at + 10)[0]
            elif kind == 8:
                self._algorithm = struct.unpack_from("<H", body, at + 10)[0]
            at += 8 + length

    async def _authenticate(self, session_id: int, body: bytes, previous: int) -> None:
        self._session_id = session_id
        token, session_key = logon.authenticate(body[8:], self._user, self._chance.choice(self._keys))
        last = session_setup(token, signs=self._signs, previous=previous)
        await self._send_setup(Command.SESSION_SETUP, last, session_key)
        found = self._last(Command.SESSION_SETUP)
        if found is not None and found[0].status == Status.SUCCESS and found[1][2] & _ENCRYPT_DATA:
            self._encrypts = True

    def _use_keys(self, session_key: bytes) -> None:
        keys = crypto.session_keys(self._dialect, session_key, self._hash, self._cipher)
        self._signing = SigningKey(self._algorithm, keys.signing)
        if self._cipher and keys.client_to_server:
            self._encryption = EncryptionKey(self._cipher, keys.client_to_server)
            self._decryption[self._session_id] = EncryptionKey(self._cipher, keys.server_to_client)
            self._encrypts = self._chance.random() < 0.3

    def _last(self, command: int) -> tuple[Header, bytes] | None:
        if self._responses and self._responses[-1][0].command == command:
            return self._responses[-1]
        return None

    async def _send_setup(self, command: int, body: bytes, session_key: bytes | None = None) -> None:
        """A message of the logon. In 3.1.1 its bytes are part of the keys."""
        message = self._message(command, body, 0)
        if self._chance.random() < self._mutation_rate / 4:
            mutate(self._chance, message)
        self._hash = crypto.extend_hash(self._hash, message)
        if session_key is not None:
            self._use_keys(session_key)
        self._responses = []
        await self._pass_on(message)
        await self._until_answered()
        for header, answer in self._responses:
            if session_key is None:
                sent = struct.pack(
                    "<4sHHIHHIIQIIQ16s",
                    MAGIC,
                    64,
                    header.credit_charge,
                    header.status,
                    header.command,
                    header.credits,
                    header.flags,
                    header.next_command,
                    header.message_id,
                    header.process_id,
                    header.tree_id,
                    header.session_id,
                    header.signature,
                )
                self._hash = crypto.extend_hash(self._hash, sent, answer)

    async def _request(self) -> None:
        chance = self._chance
        count = 1 if chance.random() < 0.85 else chance.randint(2, 5)
        tree_id = chance.choice(list(self._known) or [1])
        known = self._known.get(tree_id, Known())
        parts = []
        for command in chance.choices(_BUILDERS, _PIPE_WEIGHTS if known.is_pipe else _WEIGHTS, k=count):
            if not known.opens and chance.random() < 0.8:
                command = Command.CREATE
            elif len(known.opens) > _OPENS_MAX:
                command = Command.CLOSE
            parts.append((command, REQUESTS[command][0](chance, known), tree_id))
        if chance.random() < 0.005:
            await self._log_on_again()
            return
        if chance.random() < 0.005:
            self._has_logged_off = chance.random() < 0.5
            command = Command.LOGOFF if self._has_logged_off else Command.TREE_DISCONNECT
            parts = [(command, b"\4\0\0\0", tree_id)]
            self._known.pop(tree_id, None)
        await self._send(parts)

    async def _log_on_again(self) -> None:
        """The same session proves who it is, or a second one begins, which may end the first."""
        chance = self._chance
        if chance.random() < 0.3:
            previous = chance.choice((0, self._session_id))
            self._session_id = 0
            self._known = {}
            await self._log_on(previous)
            self._has_logged_off = not self._known
            return
        first = session_setup(logon.NEGOTIATE, signs=self._signs)
        if chance.random() < 0.2:
            first = first[:2] + b"\1" + first[3:]  # Binding.
        await self._send_again(first)
        found = self._last(Command.SESSION_SETUP)
        if found is None or found[0].status != Status.MORE_PROCESSING_REQUIRED:
            return
        token, _ = logon.authenticate(found[1][8:], self._user, chance.choice(self._keys))
        await self._send_again(session_setup(token, signs=self._signs))
        found = self._last(Command.SESSION_SETUP)
        self._has_logged_off = found is None or found[0].status != Status.SUCCESS

    async def _send_again(self, body: bytes) -> None:
        self._responses = []
        await self._send([(Command.SESSION_SETUP, body, 0)])
        await self._until_answered()

    async def _until_answered(self) -> None:
        for _ in range(_ITERATIONS_MAX):
            if self.is_closed or self._last(Command.SESSION_SETUP) or self._last(Command.NEGOTIATE):
                return
            await asyncio.sleep(0)

    # Messages

    def _message(self, command: int, body: bytes, tree_id: int, flags: int = 0) -> bytearray:
        chance = self._chance
        message_id, process_id = self._message_id, 0xFEFF
        if command == Command.CANCEL and self._waiting:
            message_id, async_id = chance.choice(self._waiting)
            if chance.random() < 0.6:
                flags, process_id, tree_id = flags | ASYNC, async_id & 0xFFFFFFFF, async_id >> 32
        elif command != Command.CANCEL:
            self._message_id += 1
            self._tree_ids[message_id] = tree_id
        credits_wanted = 8000 if command == Command.SESSION_SETUP else 1
        return bytearray(
            struct.pack(
                "<4sHHIHHIIQIIQ16s",
                MAGIC,
                64,
                1,
                0,
                command,
                credits_wanted,
                flags,
                0,
                message_id,
                process_id,
                tree_id,
                self._session_id,
                bytes(16),
            )
            + body
        )

    async def _send(self, parts: Sequence[tuple[int, bytes, int]]) -> None:
        """One frame: a request, or a chain of them."""
        chance = self._chance
        is_changed = chance.random() < self._mutation_rate
        is_related = chance.random() < 0.7
        changed = chance.randrange(len(parts)) if is_changed else None
        encrypts = self._encryption is not None and (self._encrypts or chance.random() < 0.1)
        frame = bytearray()
        for number, (command, body, tree_id) in enumerate(parts):
            message = self._message(command, body, tree_id, RELATED if number and is_related else 0)
            if number < len(parts) - 1:
                message += bytes(-len(message) % 8)
                message[20:24] = struct.pack("<I", len(message))
            is_unsigned = number == changed and chance.random() < 0.15
            if number == changed and not is_unsigned:
                mutate(chance, message)
            if not encrypts:
                self._sign(message)
            if is_unsigned:
                mutate(chance, message)
            frame += message
        if encrypts:
            frame = self._encrypted(frame)
            if is_changed and chance.random() < 0.02:
                mutate(chance, frame)
        await self._pass_on(frame)

    def _sign(self, message: bytearray) -> None:
        if self._signing is None or len(message) < 64:
            return
        if self._signs or self._dialect == 0x0311 or self._chance.random() < 0.2:
            flags = struct.unpack_from("<I", message, 16)[0] | SIGNED
            message[16:20] = struct.pack("<I", flags)
            message[48:64] = bytes(16)
            command, message_id = (
                struct.unpack_from("<H", message, 12)[0],
                struct.unpack_from("<Q", message, 24)[0],
            )
            role = 2 if command == Command.CANCEL else 0
            message[48:64] = self._signing._signature((bytes(message),), message_id, role)

    def _encrypted(self, frame: bytearray) -> bytearray:
        assert self._encryption is not None
        self._nonce += 1
        nonce = self._nonce.to_bytes(self._encryption.nonce_bytes, "little")
        return bytearray(b"".join(self._encryption.encrypt(self._session_id, nonce, (frame,))))

    async def _pass_on(self, frame: bytearray) -> None:
        self.inputs += 1
        if frame and not self.is_closed:
            await self.server.pass_on(bytearray(frame))
