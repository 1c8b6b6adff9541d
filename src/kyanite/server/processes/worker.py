"""A worker: one process with one event loop that serves HTTP and SMB on sockets it shares with the other workers.

It opens the store after the fork, builds the services, and serves until the supervisor stops it. Then it accepts no
more connections, finishes the requests in flight within a bound, and closes the store.
"""

import asyncio
import gc
import socket
import ssl
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import uvloop

from kyanite.engine.clock import wall_clock
from kyanite.model import accounts
from kyanite.server.accounts.directory import AccountDirectory
from kyanite.server.accounts.removal import removal_step
from kyanite.server.accounts.sealed_keys import KeyFile
from kyanite.server.accounts.start import apply_stated
from kyanite.server.config import Config, is_loopback
from kyanite.server.dispatch import Dispatcher
from kyanite.server.fair_accept import FairServer
from kyanite.server.fair_smb import FairSmbServer
from kyanite.server.guids import FreshGuids
from kyanite.server.http import response_head
from kyanite.server.http.limits import Limits
from kyanite.server.management.command import Management
from kyanite.server.management.command_server import CommandServer
from kyanite.server.management.commands import COMMANDS
from kyanite.server.memory_budget import MemoryBudget
from kyanite.server.observability.metrics import RequestMeter
from kyanite.server.observability.observer import observer
from kyanite.server.observability.published_metrics import PublishedMetrics
from kyanite.server.observability.smb_observer import smb_observer
from kyanite.server.processes.descriptor_limit import connections_max
from kyanite.server.processes.process import ProcessContext, until_stopped
from kyanite.server.processes.process_table import Slot
from kyanite.server.service_table import SERVICES
from kyanite.server.smb.limits import Limits as SmbLimits
from kyanite.server.sockets import names_of
from kyanite.server.store import maintenance
from kyanite.server.store.api import Clock, Store, StoreFactory, StoreKind
from kyanite.services.rest.environment import Environment, Identity
from kyanite.services.smb.environment import SmbEnvironment
from kyanite.values import unix_seconds
from kyanite.wire.http import Handler

_COLLECTED_EVERY_OBJECTS = 20_000


@dataclass(frozen=True, slots=True)
class Worker:
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
    server_guid: bytes
    plain_too: bool
    """Whether clients may choose plain HTTP where there is TLS."""
    secret: bytes
    """What all workers know, and nobody else: it is never stored."""
    delegation_secret: bytes = b""
    """What user delegation keys depend on besides the store; empty where there are none."""

    def __call__(self, workers: Mapping[str, Slot], context: ProcessContext) -> None:
        """``workers`` are the slots of all workers by name, this one's among them."""
        others = [slot for name, slot in workers.items() if name != context.slot.name]
        uvloop.run(self._serve(workers, others, context))

    async def _serve(
        self, workers: Mapping[str, Slot], others: Sequence[Slot], context: ProcessContext
    ) -> None:
        if self.config.testing:
            response_head.use_clock(lambda: unix_seconds(self.clock()))
        store = self.store_factory.open(self.clock)
        main = self._main(store)
        directory = await self._directory(main, context.slot)
        served = directory.accounts
        ports = {
            at.getsockname()[1]: name
            for name, at in self.listeners.items()
            if SERVICES[name].load is not None
        }
        dispatcher = Dispatcher(self._handlers(served, ports), ports)
        meter = None if self.config.admin_port is None else RequestMeter()
        server = FairServer(
            dispatcher,
            limits=Limits(
                connections=connections_max(), memory_bytes=self.config.body_memory_mib * 1024 * 1024
            ),
            own=context.slot,
            others=others,
            on_completed=observer(dispatcher, meter, log_requests=self.config.log_requests),
        )
        directory.on_removed.append(server.abort_requests_of)
        smb = self._smb(directory, others, context, meter, server.budget)
        scrub = None
        if context.slot.name == self.maintainer and self.config.scrub_mib_per_second:
            scrub = maintenance.scrub_of(
                store, self.config.scrub_mib_per_second, lambda: server.stats.requests_in_flight
            )
        published = None
        if meter is not None:
            smb_stats = None if smb is None else smb.stats
            figures = None if scrub is None else scrub.figures
            published = PublishedMetrics(
                context.slot, meter, server.stats, store.counters, smb_stats, figures
            )
        background = [
            asyncio.create_task(context.beat(None if published is None else published.publish)),
            asyncio.create_task(directory.follow()),
        ]
        if context.slot.name == self.maintainer:
            steps = [*maintenance.steps_of(store), removal_step(store.engine, workers)]
            steps += [] if scrub is None else [scrub.step]
            background += [asyncio.create_task(maintenance.repeat(step)) for step in steps]
        commands = None
        if context.slot.name == self.maintainer:
            management = Management(main, served, self.clock, directory, workers)
            commands = await CommandServer.start(self.management, COMMANDS, management)
        for name, listener in self.listeners.items():
            if SERVICES[name].load is not None:
                await server.accept_on(listener, self.tls, plain_too=self.plain_too)
            elif smb is not None:
                smb.accept_on(listener)
        # What exists now stays, so the collector skips it and the pages stay shared with the other processes. New
        # objects are seldom in a cycle, so the collector runs every few hundred requests only.
        gc.collect()
        gc.freeze()
        gc.set_threshold(_COLLECTED_EVERY_OBJECTS)
        context.ready()
        await until_stopped()
        serving = (server, smb, commands)
        stopping = [each.stop(self.config.stop_seconds) for each in serving if each is not None]
        await asyncio.gather(*stopping)
        for task in background:
            task.cancel()
        await asyncio.wait(background)
        await store.close()

    def _main(self, store: Store) -> accounts.Store:
        """The store as the model knows it."""
        recheck_seconds = self.config.recheck_minutes * 60.0
        return accounts.Store(store.engine, store.extents, store.membership, recheck_seconds)

    async def _directory(self, main: accounts.Store, slot: Slot) -> AccountDirectory:
        config = self.config
        if config.store_kind is StoreKind.IN_MEMORY:
            await apply_stated(main.engine, config.accounts)
        directory = AccountDirectory(
            main,
            config.accounts,
            self.key_file,
            host=config.host,
            allow_development_key=config.allow_development_key or is_loopback(config.host),
            slot=slot,
        )
        await directory.load()
        slot.first_account = next(iter(directory.accounts), "")
        return directory

    def _smb(
        self,
        directory: AccountDirectory,
        others: Sequence[Slot],
        context: ProcessContext,
        meter: RequestMeter | None,
        budget: MemoryBudget,
    ) -> FairSmbServer | None:
        for name in self.listeners:
            if (load := SERVICES[name].load_smb) is not None:
                environment = SmbEnvironment(
                    directory.accounts,
                    self.clock,
                    self.server_guid,
                    secret=self.secret,
                    requires_encryption=self.config.smb_requires_encryption,
                    is_durable=self.config.smb_is_durable,
                    on_completed=smb_observer(meter, log_requests=self.config.log_requests),
                    memory=budget,
                    on_accounts_removed=directory.on_removed,
                )
                limits = SmbLimits(connections=connections_max())
                return FairSmbServer(
                    load()(environment), limits=limits, budget=budget, own=context.slot, others=others
                )
        return None

    def _identity(self, names: Collection[str], ports: Collection[int]) -> Identity | None:
        if not self.config.identity.is_on:
            return None
        # Most servers have no issuers, so what checks signatures of tokens is not even imported there.
        from kyanite.server.identity.verifier import TrustedIdentity

        schemes = ("https", "http") if self.plain_too else ("https",) if self.tls else ("http",)
        own_urls = {f"{scheme}://{name}:{port}" for scheme in schemes for name in names for port in ports}
        identity = TrustedIdentity(self.config.identity, own_urls, self.delegation_secret)
        identity.start()
        return identity

    def _handlers(
        self, served: Mapping[str, accounts.Account], ports: Mapping[int, str]
    ) -> dict[str, Handler]:
        names = {self.config.host}.union(*(names_of(listener) for listener in self.listeners.values()))
        environment = Environment(
            accounts=served,
            clock=self.clock,
            wall_clock=wall_clock,
            fresh_guid=FreshGuids(),
            services_by_port=ports,
            names=names,
            identity=self._identity(names, ports),
        )
        return {name: load()(environment) for name in self.listeners if (load := SERVICES[name].load)}
