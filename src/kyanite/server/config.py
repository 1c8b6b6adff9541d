"""The configuration of a server, read and checked before anything is opened.

The command line (``cli.py``) passes texts and numbers; the result is a ``Config`` without contradictions. What is wrong
is one ``BadUsage``. Keys are secrets: no message ever holds one.
"""

import base64
import binascii
import ipaddress
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from kyanite.server.accounts.settings import NO_CHANGE, SettingsChange
from kyanite.server.failures import BadUsage
from kyanite.server.identity.config import OFF, IdentityConfig
from kyanite.server.service_table import SERVICES, offered
from kyanite.server.stamps.stamp import MAIN, Stamp
from kyanite.server.store.api import EMBEDDED_STORE, StoreKind

MOST_WORKERS_BY_DEFAULT = 8

DEVELOPMENT_ACCOUNT = "devstoreaccount1"
# The key that the emulators of the service have always used and that every client library knows. It is no secret.
DEVELOPMENT_KEY = base64.b64decode(
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

_ACCOUNT_NAME = re.compile(r"[a-z0-9]{3,24}")
_HOST_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


class AccountKeys(msgspec.Struct, frozen=True):
    """An account as it is configured: its name and its keys (decoded)."""

    name: str
    keys: tuple[bytes, ...]


KEYS = "keys"
"""What the keys are called among the names of what is stated."""


class StatedAccount(msgspec.Struct, frozen=True):
    """What the operator states about an account when the server is started. It is in force whatever is stored."""

    name: str
    keys: tuple[bytes, ...] = ()
    """Empty if they are in the store."""
    settings: SettingsChange = NO_CHANGE
    stated_by: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Where the keys and each setting were stated: "--account", "KYANITE_ACCOUNTS", "the file x.toml"."""
    stamp: str = MAIN
    """Where the account lives."""


class Tls(msgspec.Struct, frozen=True):
    cert: Path
    key: Path


class ConsoleConfig(msgspec.Struct, frozen=True):
    """Where the console is, and by which names browsers may reach it."""

    host: str
    port: int
    is_stated: bool
    """Whether the operator chose the port. If not, a server whose port is taken goes without a console."""
    names: tuple[str, ...] = ()
    """Besides its address and the names of this machine."""

    @property
    def needs_sign_in(self) -> bool:
        return not is_loopback(self.host)


class Config(msgspec.Struct, frozen=True, kw_only=True):
    location: Path | None
    """The store's folder; None for a temporary one."""
    host: str
    ports: Mapping[str, int]
    """The services to offer and the port of each; 0 is any free one."""
    workers: int
    accounts: tuple[StatedAccount, ...]
    """Those that are stated. Others may be in the store."""
    allow_development_key: bool = False
    """Also if only this machine can reach the host."""
    key_file: Path | None = None
    """What stored keys are encrypted with; None for a file of the store."""
    tls: Tls | None = None
    admin_port: int | None = None
    console: ConsoleConfig | None = None
    """None for a server without a console."""
    log_level: str = "info"
    log_requests: bool = False
    log_format: str = "auto"
    """``json``, ``text``, or ``auto`` for what fits where the log goes."""
    stop_seconds: float = 8.0
    """How long a stop waits for requests in flight: less than the ten seconds that container runtimes give."""
    body_memory_mib: int = 256
    """How much memory the bodies of requests and responses may take in a worker."""
    recheck_minutes: int = 10
    """How long a worker sends stored bytes that it has checked without checking them again; 0 is not at all."""
    scrub_mib_per_second: int = 8
    """How fast the scrub reads what is stored; 0 for no scrub."""
    store_kind: StoreKind = EMBEDDED_STORE
    """Of the main stamp."""
    stamps: tuple[Stamp, ...] = ()
    """Those that are stated besides the main one."""
    node_timeout_seconds: float = 15.0
    """After so long without a heartbeat the other nodes of the store declare a process dead."""
    drain_seconds: float = 0.0
    """How long a stop lets load balancers notice it before it closes anything."""
    smb_requires_encryption: bool = False
    smb_is_durable: bool = True
    """Whether a WRITE is answered when it is on disk; else that is promised by FLUSH and CLOSE only."""
    identity: IdentityConfig = OFF
    """Whose bearer tokens are accepted, and what they allow."""
    identity_port: int = 0
    """Of the built-in issuer."""
    managed_identity_port: int = 0
    testing: bool = False
    """Whether the clock of the server can be moved."""


def parse_account(text: str) -> AccountKeys:
    """Read ``NAME:KEY`` or ``NAME:KEY:KEY2``."""
    name, *keys = text.split(":")
    if not is_account_name(name):
        raise BadUsage(
            "An account is NAME:KEY or NAME:KEY:KEY2, with a name of 3 to 24 lower-case letters and digits."
        )
    if not 1 <= len(keys) <= 2:
        raise BadUsage(f"Account {name} needs one key or two, as NAME:KEY or NAME:KEY:KEY2.")
    decoded = [parse_key(key) for key in keys]
    if None in decoded:
        raise BadUsage(f"A key of account {name} is not base64.")
    return AccountKeys(name, tuple(key for key in decoded if key is not None))


def is_account_name(text: str) -> bool:
    return _ACCOUNT_NAME.fullmatch(text) is not None


def parse_key(text: str) -> bytes | None:
    """The bytes of a key, or None if the text is not base64."""
    try:
        return base64.b64decode(text, validate=True) or None
    except (binascii.Error, ValueError):
        return None


def choose_accounts(
    given: Sequence[AccountKeys],
    from_file: Sequence[StatedAccount] = (),
    *,
    stated_by: str = "--account",
    host: str,
    allow_development_key: bool,
) -> tuple[StatedAccount, ...]:
    """The accounts that are stated. Keys that an option gives count before those of the file.

    The well-known key of the development account is for loopback, unless allowed.
    """
    names = [account.name for account in given]
    for name in names:
        if names.count(name) > 1:
            raise BadUsage(f"Account {name} is given twice.")
    accounts = {account.name: account for account in from_file}
    for each in given:
        known = accounts.pop(each.name, StatedAccount(each.name))
        by = {**known.stated_by, KEYS: stated_by}
        accounts[each.name] = msgspec.structs.replace(known, keys=each.keys, stated_by=by)
    ordered = sorted(accounts.values(), key=lambda account: account.name not in names)
    well_known = [account.name for account in ordered if DEVELOPMENT_KEY in account.keys]
    if well_known and not allow_development_key and not is_loopback(host):
        raise BadUsage(well_known_key(well_known[0], host))
    return tuple(ordered)


def well_known_key(account: str, host: str) -> str:
    return (
        f"Account {account} has the well-known development key, which would open it to everyone who can reach "
        f"{host}: set a key of its own with --account, or use --allow-development-key."
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the host. Of names, only ``localhost`` is known to mean that."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def choose_services(text: str | None) -> tuple[str, ...]:
    """The services named, separated by commas; without a text all that exist."""
    if text is None:
        return offered()
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise BadUsage("--services names no service.")
    for name in names:
        if name not in SERVICES:
            raise BadUsage(f"There is no service {name!r}: choose from {', '.join(SERVICES)}.")
        if not SERVICES[name].is_built:
            raise BadUsage(f"The {name} service is not part of this version yet.")
    return names


def choose_ports(
    services: Sequence[str], ports: Mapping[str, int], others: Mapping[str, int | None]
) -> dict[str, int]:
    """The port of every chosen service; no two may share one, nor one with the ``others``."""
    chosen = {name: ports[name] for name in services}
    names: dict[int, str] = {}
    for name, port in [*chosen.items(), *((name, port or 0) for name, port in others.items())]:
        if port and port in names:
            raise BadUsage(f"Port {port} is used twice, by {names[port]} and by {name}.")
        names[port] = name
    return chosen


def choose_workers(given: int | None, *, in_memory: bool) -> int:
    """The number given, or one worker per core and at most eight; one if the store is in that worker's memory."""
    if in_memory:
        if given is not None and given > 1:
            raise BadUsage("--in-memory keeps everything in one process, so it takes one worker only.")
        return 1
    return given or min(MOST_WORKERS_BY_DEFAULT, cores())


def choose_tls(cert: Path | None, key: Path | None) -> Tls | None:
    if cert is None and key is None:
        return None
    if cert is None or key is None:
        raise BadUsage("TLS needs both --cert and --key.")
    return Tls(cert, key)


def choose_admin_port(given: int | None, *, testing: bool, host: str) -> int | None:
    """The port given. A testing server always has one, since its clock is moved there, and only on this machine."""
    if testing and not is_loopback(host):
        raise BadUsage(
            f"--testing lets every caller move the clock, so it cannot be used with --host {host}."
        )
    return 0 if testing and given is None else given


def choose_console(
    host: str, port: int | None, names: str | None, *, is_stated: bool
) -> ConsoleConfig | None:
    """Where the console is; None if no port is wanted."""
    chosen = tuple(name.strip().lower() for name in (names or "").split(",") if name.strip())
    for name in chosen:
        if _HOST_NAME.fullmatch(name) is None:
            raise BadUsage(f"--console-names has {name!r}, which is no host name.")
    return None if port is None else ConsoleConfig(host, port, is_stated, chosen)


def cores() -> int:
    """The cores that this process may use, where the system knows."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
