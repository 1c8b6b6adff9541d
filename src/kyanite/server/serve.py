"""``kyanite serve``: from a configuration to a supervised server.

The order matters. What can fail with one sentence comes first: the certificate, the store's lock and format, the ports.
Then everything that the workers need is imported, once, the store is upgraded if it has to be, and the workers start.
"""

import gc
import hashlib
import json
import logging
import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from kyanite.engine.clock import wall_clock
from kyanite.server.accounts import sealed_keys
from kyanite.server.accounts.sealed_keys import KeyFile
from kyanite.server.clock import TestingClock
from kyanite.server.config import Config
from kyanite.server.form import form
from kyanite.server.identity.config import Development
from kyanite.server.management import token, unix_socket
from kyanite.server.management.http_api import HttpApi
from kyanite.server.observability import logs
from kyanite.server.processes.admin_process import AdminProcess
from kyanite.server.processes.descriptor_limit import raise_files_limit
from kyanite.server.processes.preparation import Preparation, preparing
from kyanite.server.processes.process import Role
from kyanite.server.processes.process_table import ProcessTable, Slot
from kyanite.server.processes.supervisor import Supervisor
from kyanite.server.processes.worker import Worker
from kyanite.server.service_table import SERVICES
from kyanite.server.sockets import address_of, open_listener
from kyanite.server.store.api import StoreKind
from kyanite.server.store.factory import factory_of
from kyanite.server.store.format import check_folder, make_folder
from kyanite.server.store.lock import StoreLock, take_store_lock
from kyanite.server.tls import tls_context

if TYPE_CHECKING:
    from kyanite.server.issuer.builtin import BuiltinIssuer
    from kyanite.server.issuer.certificates import MadeCertificate

_WORKER = "worker {}"
_ADMIN = "admin"
_ISSUER = "issuer"
_SECRET_BYTES = 32
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
        at_end.callback(unix_socket.remove_socket, folder)
        management = at_end.enter_context(unix_socket.open_socket(folder))
        factory = factory_of(config.store_kind, folder)
        clock = TestingClock() if config.testing else wall_clock
        made = None
        if tls is None and config.identity.development is not Development.OFF:
            made = _made_certificate(folder)
            tls = tls_context(made.tls)
        issuer = None
        if config.identity.development is Development.BUILTIN:
            # Imported here, since a server without an issuer needs nothing of it.
            from kyanite.server.issuer.builtin import open_issuer

            assert tls is not None
            issuer = open_issuer(config, folder, tls, at_end)
            config = replace(config, identity=issuer.identity)
        worker = Worker(
            config,
            factory,
            clock,
            listeners,
            tls,
            KeyFile(config.key_file or folder / sealed_keys.NAME, may_make=config.key_file is None),
            management,
            maintainer=_WORKER.format(1),
            server_guid=_server_guid(config),
            plain_too=made is not None,
            secret=os.urandom(_SECRET_BYTES),
            delegation_secret=_delegation_secret(config, folder),
        )
        process_table, roles = _roles(config, worker, admin, folder, issuer)
        _prepare(config, Preparation(factory, folder, clock, config.accounts), roles, lock)
        more = {} if issuer is None else issuer.endpoints
        if made is not None:
            more["identity_ca"] = str(made.authority.resolve())
        first = process_table.slots[worker.maintainer]
        scheme = "https" if config.tls or issuer else "http"
        endpoints = partial(_endpoints, scheme, listeners, admin, first, more)
        supervisor = Supervisor(
            roles,
            process_table,
            stop_seconds=config.stop_seconds,
            log_level=config.log_level,
            announce=partial(_announce, endpoints, folder),
            keep_as_worker=lock.keep_as_worker,
            store_watch=factory.watch(),
        )
        supervisor.run()


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
    slots = {name: process_table.slots[name] for name in names}
    shared = tuple(worker.listeners.values())
    restart = config.store_kind is not StoreKind.IN_MEMORY
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
        clock = worker.clock if isinstance(worker.clock, TestingClock) else None
        api = HttpApi(folder, token.load_or_make(folder))
        process = AdminProcess(admin, process_table.slots, frozenset(names), api, clock)
        roles.append(Role(_ADMIN, process, (admin,), uses_store=False))
    if issuer is not None:
        listeners = (issuer.process.listener, issuer.process.managed_identity)
        roles.append(Role(_ISSUER, issuer.process, listeners, uses_store=False))
    return process_table, roles


def _prepare(config: Config, preparation: Preparation, roles: list[Role], lock: StoreLock) -> None:
    """Prepare the store, and do once what every process would otherwise do for itself."""
    raise_files_limit()
    logs.configure(config.log_level, "supervisor")

    def close_inherited() -> None:
        lock.keep_as_worker()
        for listener in {listener for role in roles for listener in role.listeners}:
            listener.close()

    with ExitStack() as meanwhile:
        if config.store_kind is not StoreKind.IN_MEMORY:
            meanwhile.enter_context(preparing(preparation, close_inherited, config.log_level))
        _import_services(config)


def _import_services(config: Config) -> None:
    for name in config.ports:
        for load in (SERVICES[name].load, SERVICES[name].load_smb):
            if load is not None:
                load()
    gc.collect()
    gc.freeze()


def _endpoints(
    scheme: str,
    listeners: dict[str, socket.socket],
    admin: socket.socket | None,
    worker: Slot,
    more: Mapping[str, str],
) -> dict[str, str]:
    """Where each service is reached, for the first account, and the admin port."""
    endpoints = {}
    for name, listener in listeners.items():
        host, port = address_of(listener)
        is_smb = SERVICES[name].load_smb is not None
        endpoints[name] = (
            f"smb://{host}:{port}/" if is_smb else f"{scheme}://{host}:{port}/{worker.first_account}"
        )
    if admin is not None:
        host, port = address_of(admin)
        endpoints["admin"] = f"http://{host}:{port}"
    return {**endpoints, **more}


def _announce(find_endpoints: Callable[[], dict[str, str]], folder: Path) -> None:
    endpoints = find_endpoints()
    management = str(folder / unix_socket.NAME)
    _log.info("serving", extra={"form": form(), "endpoints": endpoints, "management": management})
    # Standard output may be closed; that is no reason not to serve.
    with suppress(OSError):
        print("ready", json.dumps(endpoints), flush=True)
