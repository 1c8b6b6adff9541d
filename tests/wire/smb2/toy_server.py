"""A server of one client and one file, made of nothing but the codecs. Its state is the few fields below."""

import socket
from collections.abc import Callable, Sequence

from kyanite.wire import ntlm, ntlm_keys, spnego
from kyanite.wire.ntlm_keys import LogonMessages
from kyanite.wire.smb2 import (
    close,
    compound,
    create,
    create_contexts,
    crypto,
    error,
    frame,
    fsctl,
    header,
    ioctl,
    negotiate,
    query_directory,
    read_write,
    session,
    transform,
    tree,
)
from kyanite.wire.smb2.body import Data, FileId, encode_output
from kyanite.wire.smb2.ciphers import EncryptionKey, SigningKey
from kyanite.wire.smb2.close import ClosedFile
from kyanite.wire.smb2.create import CreateAction, CreateResponse
from kyanite.wire.smb2.filetime import FileTimes
from kyanite.wire.smb2.frame import Kind
from kyanite.wire.smb2.header import Command, Header
from kyanite.wire.smb2.info import directory, file, messages
from kyanite.wire.smb2.info.directory import DirectoryEntry
from kyanite.wire.smb2.info.file import FileInformation
from kyanite.wire.smb2.negotiate import Dialect, NegotiateResponse
from kyanite.wire.smb2.negotiate_contexts import ResponseContexts
from kyanite.wire.smb2.status import Status
from kyanite.wire.smb2.tree import ShareType, TreeConnectResponse

GUID = b"a server's guid."
CHALLENGE = b"8 bytes!"
FILE_ID = FileId(1, 2)
SESSION_ID = 0x1234
TIMES = FileTimes(*[116444736000000000] * 4)
MEGABYTE = 1 << 20

Answer = tuple[int, Sequence[Data]]


class ToyServer:
    def __init__(self, password: str) -> None:
        self._password = password
        self._hash = crypto.NO_HASH
        self._dialect = 0
        self._tokens: list[bytes] = []
        self._mechanisms = b""
        self._signing: SigningKey | None = None
        self._incoming: EncryptionKey | None = None
        self._outgoing: EncryptionKey | None = None
        self._nonce = 0
        self._algorithm: int | None = None
        self._cipher = 0
        self.content = bytearray()
        self.kinds: set[Kind] = set()
        self._answers: dict[int, Callable[[memoryview], Answer]] = {
            Command.NEGOTIATE: self._negotiate,
            Command.SESSION_SETUP: self._setup,
            Command.LOGOFF: lambda _: (Status.SUCCESS, [session.EMPTY]),
            Command.TREE_CONNECT: self._connect,
            Command.TREE_DISCONNECT: lambda _: (Status.SUCCESS, [session.EMPTY]),
            Command.CREATE: self._create,
            Command.CLOSE: self._close,
            Command.FLUSH: lambda _: (Status.SUCCESS, [session.EMPTY]),
            Command.READ: self._read,
            Command.WRITE: self._write,
            Command.IOCTL: self._ioctl,
            Command.QUERY_DIRECTORY: self._list,
            Command.QUERY_INFO: self._query,
        }

    def serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream:
            while prefix := stream.read(4):
                length = frame.decode_prefix(prefix, 9 * MEGABYTE)
                assert length is not None
                for buffers in self._handle(stream.read(length)):
                    connection.sendall(b"".join(frame.frame(buffers)))

    def _handle(self, received: bytes) -> list[list[Data]]:
        kind = frame.kind_of(received)
        self.kinds.add(kind)
        if kind is Kind.ENCRYPTED:
            assert self._incoming is not None
            received = bytes(self._incoming.decrypt(transform.decode(received), memoryview(received)))
        parts = compound.split(memoryview(received))
        responses = []
        for request, message in parts:
            if self._signing is not None and request.flags & header.SIGNED:
                assert self._signing.is_signed(request, message)
            if request.command in (Command.NEGOTIATE, Command.SESSION_SETUP):
                self._hash = crypto.extend_hash(self._hash, message)
            status, body = self._answers[request.command](message)
            flags = header.RESPONSE | request.flags & header.RELATED
            if self._signing is not None and kind is not Kind.ENCRYPTED:
                flags |= header.SIGNED
            response = Header(
                request.command,
                request.message_id,
                request.credit_charge,
                status,
                max(request.credits, 1),
                flags,
                process_id=request.process_id,
                tree_id=7,
                session_id=SESSION_ID,
            )
            responses.append((response, body))
        joined = compound.join(responses)
        for (response, _), buffers in zip(responses, joined, strict=True):
            self._finish(response, buffers)
        if kind is Kind.ENCRYPTED:
            assert self._outgoing is not None
            self._nonce += 1
            nonce = self._nonce.to_bytes(self._outgoing.nonce_bytes, "little")
            return [
                self._outgoing.encrypt(SESSION_ID, nonce, [data for buffers in joined for data in buffers])
            ]
        return [[data for buffers in joined for data in buffers]]

    def _finish(self, response: Header, buffers: list[Data]) -> None:
        if response.flags & header.SIGNED and self._signing is not None:
            head = buffers[0]
            assert isinstance(head, bytearray)
            head[header.SIGNATURE] = self._signing.sign(response, buffers)
        if response.command == Command.NEGOTIATE or response.status == Status.MORE_PROCESSING_REQUIRED:
            self._hash = crypto.extend_hash(self._hash, *buffers)

    def _negotiate(self, message: memoryview) -> Answer:
        request = negotiate.decode(message)
        self._dialect = max(request.dialects)
        self._cipher, contexts, capabilities = (
            crypto.CipherId.AES_128_CCM,
            None,
            negotiate.CAPABILITY_LARGE_MTU,
        )
        if self._dialect == Dialect.SMB_3_1_1:
            negotiate.check_hash(request.contexts)
            assert request.contexts is not None
            self._cipher = (request.contexts.ciphers or (0,))[0]
            self._algorithm = (request.contexts.signing_algorithms or (None,))[0]
            contexts = ResponseContexts(bytes(32), self._cipher, self._algorithm)
        elif self._dialect >= Dialect.SMB_3_0:
            capabilities |= negotiate.CAPABILITY_ENCRYPTION
        self._negotiated = (capabilities, request)
        response = NegotiateResponse(
            negotiate.SIGNING_ENABLED,
            self._dialect,
            GUID,
            capabilities,
            MEGABYTE,
            MEGABYTE,
            MEGABYTE,
            TIMES.change,
            spnego.encode_init(),
            contexts,
        )
        return Status.SUCCESS, [negotiate.encode(response)]

    def _setup(self, message: memoryview) -> Answer:
        token = spnego.decode(session.decode_setup(message).token)
        assert token.token is not None
        self._tokens.append(token.token)
        if isinstance(token, spnego.NegTokenInit):
            self._mechanisms = token.mechanism_list
        if len(self._tokens) == 1:
            challenge = ntlm.encode_challenge(
                flags=ntlm.challenge_flags(ntlm.decode_negotiate(token.token).flags),
                server_challenge=CHALLENGE,
                target_name="SERVER",
                target_info=ntlm.encode_target_info(
                    computer="SERVER", domain="SERVER", dns_computer="server", dns_domain="", now=TIMES.change
                ),
            )
            self._tokens.append(challenge)
            if self._mechanisms:
                challenge = spnego.encode_resp(
                    spnego.NegState.ACCEPT_INCOMPLETE, names_ntlmssp=True, token=challenge
                )
            return Status.MORE_PROCESSING_REQUIRED, [session.encode_setup(0, challenge)]
        found = ntlm.decode_authenticate(token.token)
        logon = LogonMessages(self._tokens[0], self._tokens[1], self._tokens[2], CHALLENGE)
        key = ntlm_keys.session_key(logon, found, ntlm_keys.nt_hash(self._password))
        if key is None:
            return Status.LOGON_FAILURE, [error.EMPTY]
        self._use(key)
        if isinstance(token, spnego.RawToken):
            return Status.SUCCESS, [session.encode_setup(0, b"")]
        assert token.mic in (None, ntlm_keys.client_list_mic(key, found.flags, self._mechanisms))
        mic = ntlm_keys.server_list_mic(key, found.flags, self._mechanisms) if token.mic else None
        return Status.SUCCESS, [
            session.encode_setup(0, spnego.encode_resp(spnego.NegState.ACCEPT_COMPLETED, mic=mic))
        ]

    def _use(self, key: bytes) -> None:
        keys = crypto.session_keys(self._dialect, key, self._hash, self._cipher)
        algorithm = crypto.default_signing(self._dialect) if self._algorithm is None else self._algorithm
        self._signing = SigningKey(algorithm, keys.signing)
        if keys.client_to_server:
            self._incoming = EncryptionKey(self._cipher, keys.client_to_server)
            self._outgoing = EncryptionKey(self._cipher, keys.server_to_client)

    def _connect(self, message: memoryview) -> Answer:
        assert tree.decode_connect(message).share == "share"
        return Status.SUCCESS, [tree.encode_connect(TreeConnectResponse(ShareType.DISK, 0x001F01FF))]

    def _create(self, message: memoryview) -> Answer:
        request = create.decode(message)
        assert request.name in ("", "file")
        contexts = []
        if request.contexts.wants_maximal_access:
            contexts.append(create_contexts.maximal_access(Status.SUCCESS, 0x001F01FF))
        if request.contexts.lease is not None:
            contexts.append(create_contexts.lease(request.contexts.lease))
        response = CreateResponse(
            request.oplock_level, CreateAction.OPENED, TIMES, 4096, len(self.content), 0x20, FILE_ID
        )
        return Status.SUCCESS, [create.encode(response, contexts)]

    def _close(self, message: memoryview) -> Answer:
        request = close.decode_close(message)
        closed = ClosedFile(TIMES, 4096, len(self.content), 0x20) if request.wants_attributes else None
        return Status.SUCCESS, [close.encode_close(closed)]

    def _read(self, message: memoryview) -> Answer:
        request = read_write.decode_read(message)
        data = bytes(self.content[request.offset : request.offset + request.length])
        return Status.SUCCESS, [read_write.encode_read(len(data)), data]

    def _write(self, message: memoryview) -> Answer:
        request = read_write.decode_write(message)
        self.content[request.offset : request.offset + len(request.data)] = request.data
        return Status.SUCCESS, [read_write.encode_write(len(request.data))]

    def _ioctl(self, message: memoryview) -> Answer:
        request = ioctl.decode(message)
        assert request.code == fsctl.Fsctl.VALIDATE_NEGOTIATE_INFO
        capabilities, negotiated = self._negotiated
        found = fsctl.decode_validate_negotiate(request.input)
        assert found.dialects == negotiated.dialects
        assert found.client_guid == negotiated.client_guid
        output = fsctl.encode_validate_negotiate(
            capabilities=capabilities, server_guid=GUID, security_mode=1, dialect=self._dialect
        )
        return Status.SUCCESS, [ioctl.encode(request.code, request.file_id, output)]

    def _list(self, message: memoryview) -> Answer:
        request = query_directory.decode(message)
        entry = DirectoryEntry("file", *TIMES, len(self.content), 4096, 0x20, 9)
        layout = directory.layout_of(request.information_class)
        packed = directory.pack(layout, [entry, entry._replace(name="other")], request.output_bytes).data
        return Status.SUCCESS, [encode_output(packed)]

    def _query(self, message: memoryview) -> Answer:
        request = messages.decode_query(message)
        info = FileInformation(
            TIMES, 0x20, 4096, len(self.content), 1, False, False, 9, 1, 0x1F01FF, 0, 0, "file"
        )
        data = file.encode(request.information_class, info)
        fitted = messages.fit(data, file.fixed_bytes_of(request.information_class), request.output_bytes)
        return Status.BUFFER_OVERFLOW if fitted.is_cut else Status.SUCCESS, [encode_output(fitted.data)]
