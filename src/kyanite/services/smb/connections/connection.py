"""One client: its messages in, responses out (MS-SMB2 §3.3.5.1, §3.3.5.2).

Each frame is a chain of requests, which is run immediately; only a chain that has to wait becomes a task. Chains run
side by side, and their responses are sent in the order in which they are ready.
"""

import asyncio
from collections.abc import Sequence
from functools import partial

from kyanite import eager
from kyanite.services.smb.close import close_opens
from kyanite.services.smb.connections.chains import Chain
from kyanite.services.smb.connections.credits import CreditWindow
from kyanite.services.smb.connections.in_flight import ROOM_AGAIN_SECONDS, ROOM_SECONDS, InFlight
from kyanite.services.smb.connections.part_request import PartRequest
from kyanite.services.smb.environment import SmbEnvironment
from kyanite.services.smb.sessions import negotiation
from kyanite.services.smb.sessions.logon_delays import LogonDelays
from kyanite.services.smb.sessions.registry import SessionRegistry
from kyanite.services.smb.state import ClientState, Session, TreeConnect
from kyanite.wire.malformed import Malformed
from kyanite.wire.smb2 import compound, frame, header, negotiate, transform
from kyanite.wire.smb2.body import Data, invalid
from kyanite.wire.smb2.compound import Part
from kyanite.wire.smb2.frame import BEYOND_PAYLOAD_BYTES, UNAUTHENTICATED_BYTES, Kind
from kyanite.wire.smb2.header import BREAK_MESSAGE_ID, RESPONSE, Command, Header
from kyanite.wire.smb2.negotiate import Dialect
from kyanite.wire.smb2.status import Status
from kyanite.wire.smb2.transport import Transport

_LEASE_BREAK_SIZE = 44


class Connection:
    def __init__(
        self,
        environment: SmbEnvironment,
        transport: Transport,
        address: str,
        port: int,
        *,
        registry: SessionRegistry,
        delays: LogonDelays,
        in_flight: InFlight,
    ) -> None:
        self._environment = environment
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self.state = ClientState(address, port)
        self.registry = registry
        self.delays = delays
        self.window = CreditWindow()
        self.waiting: dict[int, PartRequest] = {}
        self._chains: dict[Chain, asyncio.Task[None]] = {}
        """Those that had to wait for anything."""
        self._chains_by_id: dict[int, Chain] = {}
        """The same by the message ids of their requests, for CANCEL."""
        self._in_flight = in_flight
        self._in_flight_bytes = 0
        """Of this connection."""
        self._is_paused = False
        self._is_lost = False
        self._has_begun = False
        self._last_async_id = 0
        self._cleaning_up: asyncio.Task[None] | None = None

    # Called by the front end.

    @property
    def longest_message(self) -> int:
        if self.state.sessions:
            return negotiation.MAX_PAYLOAD_BYTES + BEYOND_PAYLOAD_BYTES
        return UNAUTHENTICATED_BYTES

    @property
    def is_authenticated(self) -> bool:
        return bool(self.state.sessions)

    def received(self, message: bytearray) -> None:
        if self._is_lost:
            return
        try:
            self._receive(memoryview(message))
        except Malformed:
            self.close()

    def lost(self) -> None:
        self._is_lost = True
        self._cleaning_up = self._loop.create_task(self._clean_up())

    async def finished(self) -> None:
        if self._cleaning_up is not None:
            await self._cleaning_up

    # Receiving

    def _receive(self, message: memoryview) -> None:
        encrypted_by = None
        if message[:4] != header.MAGIC:
            kind = frame.kind_of(message)
            if kind is Kind.SMB1:
                self._receive_smb1(message)
                return
            if kind is not Kind.ENCRYPTED:
                raise invalid()
            encrypted_by, message = self._decrypted(message)
        self._has_begun = True
        parts = compound.split(message)
        if (self.state.negotiated is None) != (parts[0].header.command == Command.NEGOTIATE):
            raise invalid()
        self._use_credits(parts)
        self._start(Chain(self, self._environment, parts, encrypted_by, len(message)))

    def _use_credits(self, parts: Sequence[Part]) -> None:
        """Check and use up the message ids of all requests."""
        for each, _ in parts:
            if each.command != Command.CANCEL and not self.window.use(
                each.message_id, each.credit_charge or 1
            ):
                raise invalid()

    def _decrypted(self, message: memoryview) -> tuple[Session, memoryview]:
        head = transform.decode(message)
        session = self.state.sessions.get(head.session_id)
        if session is None or session.security is None:
            raise invalid()
        text = session.security.decrypt(head, message)
        if text is None:
            raise invalid()
        return session, memoryview(text)

    def _receive_smb1(self, message: memoryview) -> None:
        """A client that speaks SMB1 as well may begin with it (§3.3.5.3)."""
        if self._has_begun:
            raise invalid()
        self._has_begun = True
        if not frame.decode_smb1_negotiate(message).offers_smb2:
            self.transmit([frame.encode_smb1_no_dialect()])
            self.close()
            return
        self.window.use(0, 1)
        granted = self.window.grant(1, 1)
        body = negotiate.encode(negotiation.choose_any(self._environment))
        self.transmit([header.encode(Header(Command.NEGOTIATE, 0, credits=granted, flags=RESPONSE)), body])

    def _start(self, chain: Chain) -> None:
        has_room = self._in_flight.has_room(chain.cost_bytes)
        task = eager.start(chain.run() if has_room else self._run_with_room(chain), self._loop)
        if task is None:
            self._keep(chain, 0)
            return
        self._chains[chain] = task
        for each in chain.message_ids:
            self._chains_by_id[each] = chain
        task.add_done_callback(partial(self._ended, chain))
        if has_room and (chain.request is None or not chain.request.async_id):
            self._count(chain)

    async def _run_with_room(self, chain: Chain) -> None:
        """Wait until others need less memory. A client that is gone, or waits too long, is refused."""
        ends_at = self._loop.time() + ROOM_SECONDS
        self._set_paused(True)
        while not self._in_flight.has_room(chain.cost_bytes) and not chain.is_refused:
            await asyncio.sleep(ROOM_AGAIN_SECONDS)
            chain.is_refused = self._is_lost or self._loop.time() > ends_at
        self._set_paused(False)
        if not chain.is_refused:
            self._count(chain)
        await chain.run()

    def _ended(self, chain: Chain, task: "asyncio.Task[None]") -> None:
        del self._chains[chain]
        for each in chain.message_ids:
            del self._chains_by_id[each]
        self._discount(chain)
        self._keep(chain, 0)
        if not task.cancelled():
            task.result()

    def _count(self, chain: Chain) -> None:
        if chain.is_counted:
            return
        chain.is_counted = True
        self._in_flight_bytes += chain.cost_bytes
        self._keep(chain, chain.cost_bytes)
        if self._in_flight_bytes > self._in_flight.limit_bytes:
            self._set_paused(True)

    def _discount(self, chain: Chain) -> None:
        if not chain.is_counted:
            return
        chain.is_counted = False
        self._in_flight_bytes -= chain.cost_bytes
        self._keep(chain, chain.message_bytes)
        if self._in_flight_bytes <= self._in_flight.limit_bytes // 2:
            self._set_paused(False)

    def _keep(self, chain: Chain, size: int) -> None:
        """The chain takes so much memory from now on."""
        self._in_flight.add(size - chain.kept_bytes)
        chain.kept_bytes = size

    def _set_paused(self, is_paused: bool) -> None:
        if self._is_paused == is_paused:
            return
        self._is_paused = is_paused
        if is_paused:
            self._transport.pause()
        else:
            self._transport.resume()

    # Called by chains and requests.

    def new_async_id(self) -> int:
        self._last_async_id += 1
        return self._last_async_id

    def suspended(self, chain: Chain, request: PartRequest) -> None:
        """A request waits for other clients: that may take long, so it no longer counts as in flight."""
        self.waiting[request.async_id] = request
        self._discount(chain)
        self._keep(chain, chain.message_bytes)

    def resumed(self, chain: Chain, request: PartRequest) -> None:
        self.waiting.pop(request.async_id, None)
        self._count(chain)

    def running(self, message_id: int) -> PartRequest | None:
        """The request in progress that has this message id."""
        chain = self._chains_by_id.get(message_id)
        request = None if chain is None else chain.request
        return request if request is not None and request.header.message_id == message_id else None

    def transmit(self, buffers: Sequence[Data]) -> None:
        if not self._is_lost:
            self._transport.send(buffers)

    def close(self) -> None:
        if not self._is_lost:
            self._transport.close()

    # What handlers use: request.Client.

    @property
    def dialect(self) -> Dialect:
        return Dialect.SMB_2_1 if self.state.negotiated is None else self.state.negotiated.dialect

    @property
    def client_guid(self) -> bytes:
        return bytes(16) if self.state.negotiated is None else self.state.negotiated.offer.client_guid

    @property
    def client_endpoint(self) -> str:
        address = self.state.address
        return f"[{address}]:{self.state.port}" if ":" in address else f"{address}:{self.state.port}"

    def is_alive(self) -> bool:
        return not self._is_lost

    def notify(self, session: Session | None, body: bytes) -> None:
        """A lease belongs to the client and not to a session, so its break names none (§3.3.4.7)."""
        is_of_lease = int.from_bytes(body[:2], "little") == _LEASE_BREAK_SIZE
        session_id = 0 if session is None or is_of_lease else session.id
        head = Header(Command.OPLOCK_BREAK, BREAK_MESSAGE_ID, flags=RESPONSE, session_id=session_id)
        buffers: list[Data] = [header.encode(head), body]
        security = None if session is None else session.security
        if session is not None and security is not None and security.is_encrypting:
            buffers = security.encrypt(session.id, buffers)
        # Before the response to whoever has caused it, which may wait to leave together with others.
        if not self._is_lost:
            self._transport.send(buffers, at_once=True)

    # Ending

    async def end_session(self, session: Session) -> None:
        self.state.sessions.pop(session.id, None)
        self.state.logons.pop(session.id, None)
        for each in list(session.trees.values()):
            await self.end_tree(session, each, keeps_durable=True)
        await self.registry.remove(session)

    async def end_tree(self, session: Session, tree: TreeConnect, *, keeps_durable: bool = False) -> None:
        session.trees.pop(tree.id, None)
        await self._until_idle(tree)
        await close_opens(list(tree.opens.values()), keeps_durable=keeps_durable)

    async def _until_idle(self, tree: TreeConnect) -> None:
        """End the requests for a share that wait, and let finish the others: a CREATE among them may still make an
        open."""
        own = asyncio.current_task()
        tasks = []
        for chain, task in self._chains.items():
            if task is not own and chain.request is not None and chain.request.found_tree is tree:
                chain.request.interrupt_at_close()
                tasks.append(task)
        if tasks:
            await asyncio.wait(tasks)

    async def _clean_up(self) -> None:
        """The client is gone: end what waits, let finish what does not, and close what it had open."""
        for chain in self._chains:
            if chain.request is not None:
                chain.request.interrupt(Status.CANCELLED)
        if self._chains:
            await asyncio.wait(list(self._chains.values()))
        for session in list(self.state.sessions.values()):
            await self.end_session(session)
        self.state.logons.clear()
