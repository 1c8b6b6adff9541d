"""``kyanite serve``: from a configuration to a supervised server.

The order matters. What can fail with one sentence comes first: the certificate, the store's lock and format, the ports.
Then everything that the workers need is imported, once, the store is upgraded if it has to be, and the workers start.
"""

import gc
import hashlib
import json
import logging
import os
import socket
import sys
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import msgspec

from kyanite.engine.clock import wall_clock
from kyanite.server.accounts import sealed_keys
from kyanite.server.accounts.sealed_keys import KeyFile
from kyanite.server.config import Config, cores
from kyanite.server.console.listening import open_console
from kyanite.server.failures import Failure
from kyanite.server.form import short_form
from kyanite.server.identity.config import Development
from kyanite.server.management import token, unix_socket
from kyanite.server.management.client import call_within
from kyanite.server.management.http_api import HttpApi
from kyanite.server.nodes.secrets import Secrets
from kyanite.server.observability import logs
from kyanite.server.processes.admin_process import AdminProcess
from kyanite.server.processes.descriptor_limit import raise_files_limit
from kyanite.server.processes.freed_memory import give_back_what_the_start_needed
from kyanite.server.processes.preparation import Preparation, preparing
from kyanite.server.processes.process import Role
from kyanite.server.processes.process_table import ProcessTable, Slot
from kyanite.server.processes.supervisor import Supervisor
from kyanite.server.processes.worker import Worker
from kyanite.server.service_table import SERVICES
from kyanite.server.site import ServedAccount, ServerDescription, Site
from kyanite.server.sockets import address_of, open_listener
from kyanite.server.store.factory import factory_of
from kyanite.server.store.format import check_folder, make_folder
from kyanite.server.store.lock import StoreLock, take_store_lock
from kyanite.server.tls import tls_context

if TYPE_CHECKING:
    from kyanite.server.issuer.builtin import BuiltinIssuer
    from kyanite.server.issuer.certificates import MadeCertificate
    from kyanite.server.testing.handler import Testing

_WORKER = "worker {}"
_ADMIN = "admin"
_ISSUER = "issuer"
_SECRET_BYTES = 32
_DESCRIBE_SECONDS = 5.0
_log = logging.getLogger("kyanite.server")


def serve(config: Config) -> None:
    """Serve until a signal asks to stop. Raises a Failure when that cannot be done or has to end."""
    with ExitStack() as at_end:
        tls = tls_context(config.tls) if config.tls else None
        folder = _folder(config, at_end)
        lock = take_store_lock(folder)
        at_end.callback(lock.release)
        check_folder(folder)
        listeners = {
            name: at_end.enter_context(open_listener(config.host, port, f"the {name} service"))
            for name, port in config.ports.items()
        }
        admin = None
        if config.admin_port is not None:
            admin = at_end.enter_context(open_listener(config.host, config.admin_port, "the admin port"))
        console = None if config.console is None else open_console(config.console)
        if console is not None:
            at_end.enter_context(console)
        at_end.callback(unix_socket.remove_socket, folder)
        management = at_end.enter_context(unix_socket.open_socket(folder))
        factory = factory_of(config.store_kind, folder, dead_after_seconds=config.node_timeout_seconds)
        testing = _testing() if config.testing else None
        clock = wall_clock if testing is None else testing.clock
        made = None
        if tls is None and config.identity.development is not Development.OFF:
            made = _made_certificate(folder)
            tls = tls_context(made.tls)
        issuer = None
        if config.identity.development is Development.BUILTIN:
            # Imported here, since a server without an issuer needs nothing of it.
            from kyanite.server.issuer.builtin import open_issuer

            assert tls is not None
            issuer = open_issuer(config, folder, tls, clock, at_end)
            config = msgspec.structs.replace(config, identity=issuer.identity)
        more = {} if issuer is None else issuer.endpoints
        if made is not None:
            more["identity_ca"] = str(made.authority.resolve())
        used = config.tls or (made.tls if made is not None else None)
        scheme = "https" if config.tls or issuer else "http"
        if console is not None:
            host, port = address_of(console)
            more["console"] = f"{scheme}://{host}:{port}/"
        site = msgspec.structs.replace(
            _site(config, scheme, listeners, admin, more, folder),
            certificate=None if used is None else used.cert,
        )
        worker = Worker(
            config,
            factory,
            clock,
            listeners,
            tls,
            KeyFile(config.key_file or folder / sealed_keys.NAME, may_make=config.key_file is None),
            management,
            maintainer=_WORKER.format(1),
            plain_too=made is not None,
            secrets=Secrets(
                _server_guid(config), os.urandom(_SECRET_BYTES), _delegation_secret(config, folder)
            ),
            site=site,
            console=console,
            testing=testing,
        )
        process_table, roles = _roles(config, worker, admin, folder, issuer)
        _prepare(config, Preparation(factory, folder, clock, config.accounts, config.stamps), roles, lock)
        if config.console is not None and console is None:
            _log.warning(
                "no console: another program has its port, and --console-port chooses another",
                extra={"port": config.console.port},
            )
        first = process_table.slots[worker.maintainer]
        supervisor = Supervisor(
            roles,
            process_table,
            stop_seconds=config.stop_seconds,
            drain_seconds=config.drain_seconds,
            log_level=config.log_level,
            announce=partial(_announce, site, first, config.log_format),
            keep_as_worker=lock.keep_as_worker,
            store_watch=factory.watch(),
        )
        supervisor.run()


def _testing() -> "Testing":
    """Imported here, since a server that is not for tests needs nothing of it."""
    from kyanite.server.testing.opening import make_testing

    return make_testing()


def _made_certificate(folder: Path) -> "MadeCertificate":
    """Clients send tokens over TLS only, so a server for them has it, whoever forgot to give it a certificate."""
    from kyanite.server.issuer import certificates, private_files

    return certificates.load_or_make(private_files.make_identity_folder(folder), datetime.now(UTC))


def _delegation_secret(config: Config, folder: Path) -> bytes:
    if not config.identity.is_on:
        return b""
    from kyanite.server.identity import delegation_file

    return delegation_file.load_or_make(folder, config.key_file)


def _server_guid(config: Config) -> bytes:
    """What SMB clients know the server by: that of a store on disk stays, whoever serves it."""
    if config.location is None:
        return os.urandom(16)
    return hashlib.sha256(b"kyanite " + os.fsencode(config.location.resolve())).digest()[:16]


def _folder(config: Config, at_end: ExitStack) -> Path:
    """The store's folder. A store in memory has one too, for bulk bytes, which is removed with the server."""
    if config.location is not None:
        make_folder(config.location)
        return config.location
    import shutil
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="kyanite-"))
    at_end.callback(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _roles(
    config: Config,
    worker: Worker,
    admin: socket.socket | None,
    folder: Path,
    issuer: "BuiltinIssuer | None",
) -> tuple[ProcessTable, list[Role]]:
    names = [_WORKER.format(number) for number in range(1, config.workers + 1)]
    process_table = ProcessTable([*names, *([_ADMIN] if admin else []), *([_ISSUER] if issuer else [])])
    for name in names[cores() :]:
        process_table.slots[name].is_spare = True
    slots = {name: process_table.slots[name] for name in names}
    shared = (*worker.listeners.values(), *([] if worker.console is None else [worker.console]))
    restart = not config.store_kind.is_in_memory
    roles = [
        Role(
            name,
            partial(worker, slots),
            (*shared, worker.management) if name == worker.maintainer else shared,
            may_restart=restart,
        )
        for name in names
    ]
    if admin is not None:
        api = HttpApi(folder, token.load_or_make(folder))
        process = AdminProcess(admin, process_table.slots, frozenset(names), api)
        if worker.testing is not None:
            from kyanite.server.testing.opening import testing_api

            process = msgspec.structs.replace(process, testing=testing_api(worker.testing, worker.site))
        roles.append(Role(_ADMIN, process, (admin,), uses_store=False))
    if issuer is not None:
        listeners = (issuer.process.listener, issuer.process.managed_identity)
        roles.append(Role(_ISSUER, issuer.process, listeners, uses_store=False))
    return process_table, roles


def _prepare(config: Config, preparation: Preparation, roles: list[Role], lock: StoreLock) -> None:
    """Prepare the store, and do once what every process would otherwise do for itself."""
    raise_files_limit()
    logs.choose_format(config.log_format)
    logs.configure(config.log_level, "supervisor")

    def close_inherited() -> None:
        lock.keep_as_worker()
        for listener in {listener for role in roles for listener in role.listeners}:
            listener.close()

    with ExitStack() as meanwhile:
        if not config.store_kind.is_in_memory:
            meanwhile.enter_context(preparing(preparation, close_inherited, config.log_level))
        _import_services(config)


def _import_services(config: Config) -> None:
    """But for SMB, which a worker imports when a client comes."""
    for name in config.ports:
        if (load := SERVICES[name].load) is not None:
            load()
    # What was imported stays. Next to nothing of it is garbage, so nothing is collected before.
    gc.freeze()
    gc.enable()


def _site(
    config: Config,
    scheme: str,
    listeners: Mapping[str, socket.socket],
    admin: socket.socket | None,
    more: Mapping[str, str],
    folder: Path,
) -> Site:
    services = {}
    for name, listener in listeners.items():
        host, port = address_of(listener)
        is_smb = SERVICES[name].load_smb is not None
        services[name] = f"{'smb' if is_smb else scheme}://{host}:{port}"
    others = dict(more)
    if admin is not None:
        host, port = address_of(admin)
        others = {"admin": f"http://{host}:{port}", **others}
    return Site(folder, services, others, is_in_memory=config.store_kind.is_in_memory)


def _announce(site: Site, first: Slot, log_format: str) -> None:
    """Say that the server is ready: a greeting to people, and one line to programs. The supervisor now waits."""
    description = _describe(site, first)
    names = [account.name for account in description.accounts]
    of_first = {name: description.endpoint(name, first.first_account) for name in site.services}
    endpoints = {**of_first, **site.others}
    management = str(site.folder / unix_socket.NAME)
    is_watched = log_format != "json" and _is_terminal(sys.stdout)
    details = {} if is_watched else {"endpoints": endpoints, "management": management}
    _log.info("serving", extra={"form": short_form(), **details})
    # Standard output may be closed; that is no reason not to serve.
    with suppress(OSError):
        if is_watched:
            # Imported here, since it takes a moment and programs never see it.
            from kyanite.server.terminal.greeting import greet

            greet(description)
        else:
            print("ready", json.dumps({**endpoints, "accounts": names}), flush=True)
    give_back_what_the_start_needed()


def _is_terminal(stream: TextIO | None) -> bool:
    """Whether people look at it. It may have been closed before the start."""
    return stream is not None and not stream.closed and stream.isatty()


def _describe(site: Site, first: Slot) -> ServerDescription:
    """What the worker with the accounts says. If it has just died, there is its first account at least."""
    try:
        described = call_within(_DESCRIBE_SECONDS, site.folder, "server describe", {})
        return msgspec.convert(described, ServerDescription)
    except Failure as failure:
        _log.warning("accounts unknown", extra={"why": failure.sentence})
        accounts = [ServedAccount(first.first_account)] if first.first_account else []
        location = str(site.folder.absolute())
        return ServerDescription(
            dict(site.services), dict(site.others), accounts, location, site.is_in_memory
        )
