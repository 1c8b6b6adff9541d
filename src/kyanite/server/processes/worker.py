"""A worker: one process with one event loop that serves HTTP and SMB on sockets it shares with the other workers.

It opens the store after the fork, builds the services, and serves until the supervisor stops it. Then it accepts no
more connections, finishes the requests in flight within a bound, and closes the store.
"""

import asyncio
import gc
import socket
import ssl
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import uvloop

from kyanite.engine.api import Engine, EngineError
from kyanite.engine.clock import wall_clock
from kyanite.model import accounts, store_format
from kyanite.model.requests.refusals import Refusals
from kyanite.server.accounts.directory import AccountDirectory
from kyanite.server.accounts.sealed_keys import KeyFile
from kyanite.server.accounts.start import apply_stated
from kyanite.server.config import Config, StatedAccount, is_loopback
from kyanite.server.console.handler import CONSOLE, LazyConsole
from kyanite.server.dispatch import Dispatcher
from kyanite.server.failures import Failure
from kyanite.server.fair_accept import FairServer
from kyanite.server.fair_smb import FairSmbServer
from kyanite.server.guids import FreshGuids
from kyanite.server.http import response_head
from kyanite.server.http.limits import Limits
from kyanite.server.management.command import Management
from kyanite.server.management.command_server import CommandServer
from kyanite.server.management.commands import COMMANDS
from kyanite.server.memory_budget import MemoryBudget
from kyanite.server.nodes import secrets as nodes_secrets
from kyanite.server.nodes.node import Node
from kyanite.server.nodes.secrets import Secrets
from kyanite.server.observability.metrics import RequestMeter
from kyanite.server.observability.observer import log_malformed, observer
from kyanite.server.observability.published_metrics import PublishedMetrics
from kyanite.server.observability.requests_of_worker import RequestsOfWorker
from kyanite.server.processes.descriptor_limit import connections_max
from kyanite.server.processes.freed_memory import FreedMemory
from kyanite.server.processes.process import ProcessContext, until_stopped
from kyanite.server.processes.process_table import Slot
from kyanite.server.service_table import SERVICES
from kyanite.server.site import Site
from kyanite.server.smb.limits import Limits as SmbLimits
from kyanite.server.sockets import names_of
from kyanite.server.stamps.served import ServedStamp, ServedStamps, StampSettings
from kyanite.server.stamps.stamp import MAIN
from kyanite.server.stamps.work import StampWork
from kyanite.server.store.api import Clock, Store
from kyanite.server.store.factory import StoreFactory
from kyanite.services.rest.environment import Environment, Identity
from kyanite.values import unix_seconds
from kyanite.wire.http import Handler

if TYPE_CHECKING:
    from kyanite.server.testing.handler import Testing
    from kyanite.wire.smb2.transport import Connect

_COLLECTED_EVERY_OBJECTS = 20_000
_ANSWER_SECONDS = 1.0


class Worker(msgspec.Struct, frozen=True):
    """What one worker needs to begin; calling it runs the worker."""

    config: Config
    store_factory: StoreFactory
    clock: Clock
    listeners: Mapping[str, socket.socket]
    tls: ssl.SSLContext | None
    key_file: KeyFile
    management: socket.socket
    """On which the maintainer takes management commands."""
    maintainer: str
    """The name of the worker that does the maintenance for all."""
    plain_too: bool
    """Whether clients may choose plain HTTP where there is TLS."""
    secrets: Secrets
    """What all workers of this node know, and nobody else. Several nodes of a store share others instead."""
    site: Site
    console: socket.socket | None = None
    """On which all workers serve the console."""
    testing: "Testing | None" = None
    """What the processes of a testing server share."""

    def __call__(self, workers: Mapping[str, Slot], context: ProcessContext) -> None:
        """``workers`` are the slots of all workers by name, this one's among them."""
        others = [slot for name, slot in workers.items() if name != context.slot.name]
        uvloop.run(self._serve(workers, others, context))

    async def _serve(
        self, workers: Mapping[str, Slot], others: Sequence[Slot], context: ProcessContext
    ) -> None:
        if self.config.testing:
            response_head.use_clock(lambda: unix_seconds(self.clock()))
        store = self.store_factory.open(self.clock, context.slot.name)
        secrets, stamps = await self._begin(store, context.slot)
        directory = stamps.main.directory
        served = stamps.accounts
        requests = RequestsOfWorker.begin(store, workers, self.clock)
        dispatcher, console = self._dispatcher(served, secrets, requests)
        meter = None if self.config.admin_port is None else RequestMeter()
        server = FairServer(
            self._tested(dispatcher),
            limits=Limits(
                connections=connections_max(), memory_bytes=self.config.body_memory_mib * 1024 * 1024
            ),
            own=context.slot,
            others=others,
            on_completed=observer(dispatcher, meter, log_requests=self.config.log_requests),
        )
        requests.show(
            server, dispatcher, log_malformed(dispatcher.ports) if self.config.log_requests else None
        )
        directory.on_removed.append(server.abort_requests_of)
        smb = self._smb(served, directory, secrets, others, context, meter, server.budget, requests)
        is_maintainer = context.slot.name == self.maintainer
        management = Management(
            stamps,
            self.clock,
            workers,
            None if store.node is None else store.node.late,
            self.site,
            requests.questions,
        )
        speed = self.config.scrub_mib_per_second
        work = StampWork(management, is_maintainer, speed, lambda: server.stats.requests_in_flight)
        published = None
        smb_stats = None if smb is None else smb.stats
        if meter is not None:
            published = PublishedMetrics(context.slot, meter, server.stats, work.figures, smb_stats)

        freed_memory = FreedMemory()

        def each_beat() -> None:
            messages = 0 if smb_stats is None else smb_stats.messages_total
            freed_memory.beat(server.stats.requests_total + messages)
            if context.slot.is_draining:
                server.drain()
            if published is not None:
                published.publish()

        background = [
            asyncio.create_task(context.beat(each_beat)),
            asyncio.create_task(stamps.follow()),
            *requests.tasks(),
        ]
        for stamp in stamps.stamps:
            work.begin(stamp)
        stamps.on_opened = work.begin
        commands = None
        if is_maintainer:
            commands = await CommandServer.start(self.management, COMMANDS, management)
        await self._accept(server, smb)
        _freeze_garbage()
        if self.config.admin_port is not None:
            background.append(asyncio.create_task(_note_answers(store.engine, context.slot)))
        context.ready()
        await until_stopped()
        if console is not None:
            console.end_streams()
        serving = (server, smb, commands)
        stopping = [each.stop(self.config.stop_seconds) for each in serving if each is not None]
        await asyncio.gather(*stopping)
        await _cancel([*background, *work.tasks])
        await stamps.close()
        await store.close()

    async def _accept(self, server: FairServer, smb: FairSmbServer | None) -> None:
        """Accept connections on every listener."""
        for name, listener in self.listeners.items():
            if SERVICES[name].load is not None:
                await server.accept_on(listener, self.tls, plain_too=self.plain_too)
            elif smb is not None:
                smb.accept_on(listener)
        if self.console is not None:
            await server.accept_on(self.console, self.tls, plain_too=self.plain_too)

    def _tested(self, dispatcher: Dispatcher) -> Handler:
        """The dispatcher; on a testing server with faults and a recorder around it."""
        if self.testing is None:
            return dispatcher
        from kyanite.server.testing.handler import TestingHandler

        return TestingHandler(dispatcher, self.testing)

    def _model_store(self, store: Store) -> accounts.Store:
        """The store as the model knows it."""
        recheck_seconds = self.config.recheck_minutes * 60.0
        return accounts.Store(store.engine, store.extents, store.membership, recheck_seconds)

    async def _begin(self, store: Store, slot: Slot) -> tuple[Secrets, ServedStamps]:
        try:
            return await self._shared_secrets(store.node), await self._stamps(store, slot)
        except Failure:
            await store.close()  # Other nodes need not wait for this process.
            raise

    async def _shared_secrets(self, node: Node | None) -> Secrets:
        if node is None:
            return self.secrets
        shared = await node.shared_secret(self.secrets.sessions)
        is_given = self.config.key_file is not None or not self.config.identity.is_on
        return nodes_secrets.of_nodes(shared, self.secrets.delegation if is_given else None)

    async def _stamps(self, store: Store, slot: Slot) -> ServedStamps:
        """All stamps, with the accounts that are on them."""
        config = self.config
        main = self._model_store(store)
        if config.store_kind.is_in_memory:
            await apply_stated(main.engine, config.accounts)
        settings = StampSettings(
            location=self.store_factory.folder,
            stated=config.stamps,
            accounts=config.accounts,
            clock=self.clock,
            dead_after_seconds=config.node_timeout_seconds,
            process=slot.name,
            prepares=slot.name == self.maintainer,
        )
        make = partial(
            AccountDirectory,
            key_file=self.key_file,
            host=config.host,
            allow_development_key=config.allow_development_key or is_loopback(config.host),
        )

        def of_stamp(of: accounts.Store, stated: Sequence[StatedAccount]) -> AccountDirectory:
            made = make(of, stated, slot=None, has_default=False, on_changed=stamps.merge)
            made.on_removed = directory.on_removed
            return made

        stamps = ServedStamps(settings, self._model_store, of_stamp)
        directory = make(
            main,
            [account for account in config.accounts if account.stamp == MAIN],
            slot=slot,
            confirm=None if store.node is None else store.node.confirm,
            has_default=not config.accounts,
            on_changed=stamps.merge,
            read_others=stamps.read_others,
        )
        stamps.stamps.append(ServedStamp(MAIN, store, main, directory))
        await directory.load()
        slot.first_account = next(iter(stamps.accounts), "")
        return stamps

    def _smb(
        self,
        served: Mapping[str, accounts.Account],
        directory: AccountDirectory,
        secrets: Secrets,
        others: Sequence[Slot],
        context: ProcessContext,
        meter: RequestMeter | None,
        budget: MemoryBudget,
        requests: RequestsOfWorker,
    ) -> FairSmbServer | None:
        load = next((row.load_smb for name in self.listeners if (row := SERVICES[name]).load_smb), None)
        if load is None:
            return None

        def build() -> "Connect":
            from kyanite.server.observability.smb_observer import smb_observer
            from kyanite.services.smb.environment import SmbEnvironment

            environment = SmbEnvironment(
                served,
                self.clock,
                secrets.server_guid,
                secret=secrets.sessions,
                requires_encryption=self.config.smb_requires_encryption,
                is_durable=self.config.smb_is_durable,
                on_completed=smb_observer(meter, log_requests=self.config.log_requests),
                memory=budget,
                on_accounts_removed=directory.on_removed,
                refusals=requests.refusals,
            )
            requests.show_smb(environment)
            return load()(environment)

        limits = SmbLimits(connections=connections_max())
        return FairSmbServer(load, build, limits=limits, budget=budget, own=context.slot, others=others)

    def _identity(self, names: Collection[str], ports: Collection[int], secrets: Secrets) -> Identity | None:
        if not self.config.identity.is_on:
            return None
        # Most servers have no issuers, so what checks signatures of tokens is not even imported there.
        from kyanite.server.identity.verifier import TrustedIdentity

        schemes = ("https", "http") if self.plain_too else ("https",) if self.tls else ("http",)
        own_urls = {f"{scheme}://{name}:{port}" for scheme in schemes for name in names for port in ports}
        identity = TrustedIdentity(self.config.identity, own_urls, secrets.delegation)
        identity.start()
        return identity

    def _handlers(
        self,
        served: Mapping[str, accounts.Account],
        ports: Mapping[int, str],
        secrets: Secrets,
        refusals: Refusals,
    ) -> tuple[dict[str, Handler], Environment]:
        names = {self.config.host}.union(*(names_of(listener) for listener in self.listeners.values()))
        environment = Environment(
            accounts=served,
            clock=self.clock,
            wall_clock=wall_clock,
            fresh_guid=FreshGuids(),
            services_by_port=ports,
            names=names,
            identity=self._identity(names, ports, secrets),
            refusals=refusals,
        )
        handlers = {name: load()(environment) for name in self.listeners if (load := SERVICES[name].load)}
        return handlers, environment

    def _dispatcher(
        self, served: Mapping[str, accounts.Account], secrets: Secrets, requests: RequestsOfWorker
    ) -> tuple[Dispatcher, LazyConsole | None]:
        ports = {
            at.getsockname()[1]: name
            for name, at in self.listeners.items()
            if SERVICES[name].load is not None
        }
        handlers, environment = self._handlers(served, ports, secrets, requests.refusals)
        console = self._console(environment, handlers, secrets, requests)
        if console is None:
            return Dispatcher(handlers, ports), None
        return Dispatcher({**handlers, CONSOLE: console}, {**ports, console.port: CONSOLE}), console

    def _console(
        self,
        environment: Environment,
        handlers: Mapping[str, Handler],
        secrets: Secrets,
        requests: RequestsOfWorker,
    ) -> LazyConsole | None:
        if self.console is None or self.config.console is None:
            return None
        return LazyConsole(
            self.config,
            self.config.console,
            self.console,
            environment,
            handlers=handlers,
            listeners=self.listeners,
            secret=secrets.sessions,
            requests=requests,
        )


def _freeze_garbage() -> None:
    """What exists now stays, so the collector skips it and the pages stay shared with the other processes. New objects
    are seldom in a cycle, so the collector runs every few hundred requests only."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECTED_EVERY_OBJECTS)


async def _cancel(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def _note_answers(engine: Engine, slot: Slot) -> None:
    """Note in the process table when the store answers, for those that ask whether the server is ready."""
    while True:
        with suppress(EngineError):
            await engine.read(store_format.load)
            slot.store_answered_ns = time.monotonic_ns()
        await asyncio.sleep(_ANSWER_SECONDS)
