"""``kyanite serve``: its options, and the configuration that they make together with the environment and a file."""

import gc
import signal
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from kyanite.server import config as configuration
from kyanite.server.config import AccountKeys, Config, StatedAccount, parse_account
from kyanite.server.config_file import NO_FILE, ConfigFile, read_config_file
from kyanite.server.console.options import console_of, console_options
from kyanite.server.failures import BadUsage
from kyanite.server.identity.config import Development, IdentityConfig, check_loopback, parse_identity
from kyanite.server.observability.logs import FORMATS, LEVELS
from kyanite.server.options import DecoratedCommand, location_option, option
from kyanite.server.service_table import SERVICES
from kyanite.server.stamps.stamp import Stamp
from kyanite.server.store.api import EMBEDDED, LOCAL, choose_kind
from kyanite.server.store.format import is_store
from kyanite.server.terminal.help_sections import SectionedCommand, examples

_PORT = click.IntRange(0, 65535)
_FILE = click.Path(path_type=Path)

_SECTIONS = {
    "Where data is": ("config", "location", "in_memory", "engine", "extents"),
    "Services and ports": (
        "host",
        "services",
        *(f"{name}_port" for name in SERVICES),
        "admin_port",
        "console_port",
        "console_host",
        "console_names",
        "cert",
        "key",
        "smb_encryption",
        "smb_durability",
    ),
    "Accounts and identity": (
        "accounts",
        "allow_development_key",
        "key_file",
        "dev_identity",
        "identity_port",
        "managed_identity_port",
    ),
    "What is logged": ("log_format", "log_level", "log_requests"),
    "How it runs": (
        "workers",
        "body_memory_mib",
        "stop_seconds",
        "drain_seconds",
        "node_timeout",
        "recheck_minutes",
        "scrub_mib_per_second",
    ),
}
_EXAMPLES = examples(
    "kyanite serve                                      the development account, data in kyanite-data",
    "kyanite serve --in-memory --services blob,queue    two services, nothing on disk",
    "kyanite serve --location /srv/store --config kyanite.toml",
)


def _parse_accounts(
    _context: click.Context, _option: click.Parameter, texts: tuple[str, ...]
) -> tuple[AccountKeys, ...]:
    """Several accounts are several options, or one environment variable with semicolons."""
    return tuple(
        parse_account(text.strip()) for several in texts for text in several.split(";") if text.strip()
    )


def _port_options(command: DecoratedCommand) -> DecoratedCommand:
    for row in reversed(SERVICES.values()):
        port_option = option(
            f"--{row.name}-port",
            type=_PORT,
            default=row.default_port,
            show_default=True,
            help=f"Port of {row.name}.",
        )
        command = port_option(command)
    return command


def _read_config(context: click.Context, _option: click.Parameter, path: Path | None) -> ConfigFile:
    """The values of the file become defaults, so options and the environment win over it."""
    if path is None:
        return NO_FILE
    known = [each for each in context.command.params if isinstance(each, click.Option)]
    options = [each for each in known if each.name not in ("config", "accounts")]
    file = read_config_file(path, options, context)
    context.default_map = dict(file.server)
    return file


@click.command(
    cls=SectionedCommand,
    sections=_SECTIONS,
    help="Serve until SIGTERM or SIGINT. Port 0 takes a free one.",
    epilog=_EXAMPLES,
)
@option(
    "--config",
    type=_FILE,
    is_eager=True,
    callback=_read_config,
    help="Configuration file, TOML: options, accounts, identity (docs/accounts.md).",
)
@location_option
@option("--host", default="127.0.0.1", show_default=True, help="Address to serve on.")
@_port_options
@option("--workers", type=click.IntRange(1, 64), help="Worker processes.  [default: one per core, at most 8]")
@option(
    "--services",
    metavar="NAME,…",
    help=f"Services to offer, of {','.join(SERVICES)}.  [default: all]",
)
@option(
    "--account",
    variable="accounts",
    callback=_parse_accounts,
    multiple=True,
    metavar="NAME:KEY[:KEY2]",
    help="An account and its keys; may be repeated.  [default: the development account]",
)
@option("--allow-development-key", is_flag=True, help="Accept the well-known key from other machines.")
@option(
    "--key-file",
    type=_FILE,
    help="Key that account keys in the store are encrypted with.  [default: a file of the store]",
)
@option("--in-memory", is_flag=True, help="Store nothing on disk; takes one worker.")
@option("--cert", type=_FILE, help="Certificate chain for TLS, PEM.")
@option("--key", type=_FILE, help="Private key of the certificate, PEM.")
@option("--admin-port", type=_PORT, help="Port of /healthz and /metrics.  [default: none]")
@console_options
@option(
    "--dev-identity",
    type=click.Choice(("any", "builtin")),
    help="For development, on loopback only: accept any well-formed bearer token, or those of a built-in issuer.",
)
@option(
    "--identity-port",
    type=_PORT,
    default=10020,
    show_default=True,
    help="Port of the built-in issuer, TLS.",
)
@option(
    "--managed-identity-port",
    type=_PORT,
    default=10021,
    show_default=True,
    help="Port of the managed identity endpoints of the built-in issuer, plain HTTP.",
)
@option(
    "--testing",
    is_flag=True,
    help="Let tests move the clock, ask for faults and read requests through the admin port. For new stores and on "
    "loopback only.",
)
@option(
    "--smb-encryption",
    type=click.Choice(("offered", "required")),
    default="offered",
    show_default=True,
    help="Whether SMB clients may encrypt, or must.",
)
@option(
    "--smb-durability",
    type=click.Choice(("strict", "flush")),
    default="strict",
    show_default=True,
    help="Whether an SMB write is on disk when it is answered, or at the latest when the client flushes or closes.",
)
@option("--engine", metavar="URL", help=f"Where metadata is kept.  [default: {EMBEDDED}]")
@option("--extents", metavar="URL", help=f"Where content is kept.  [default: {LOCAL}]")
@option("--log-level", type=click.Choice(LEVELS), default="info", show_default=True, help="What to log.")
@option(
    "--log-format",
    type=click.Choice(FORMATS),
    default="auto",
    show_default=True,
    help="Lines of JSON, or lines for people. By default people read what goes to a terminal.",
)
@option("--log-requests", is_flag=True, help="Log a line for every request.")
@option(
    "--stop-seconds",
    type=click.FloatRange(0, 3600),
    default=8.0,
    show_default=True,
    help="How long a stop waits for requests in flight.",
)
@option(
    "--drain-seconds",
    type=click.FloatRange(0, 3600),
    default=0.0,
    show_default=True,
    help="How long a server that is told to stop serves on before that, not ready, so that load balancers leave it.",
)
@option(
    "--node-timeout",
    type=click.FloatRange(2, 600),
    default=15.0,
    show_default=True,
    help="Seconds without a heartbeat after which other nodes of the store release what this one holds.",
)
@option(
    "--body-memory-mib",
    type=click.IntRange(16, 1 << 20),
    default=256,
    show_default=True,
    help="Memory for requests and responses in a worker. Beyond it HTTP answers 503 and SMB waits.",
)
@option(
    "--recheck-minutes",
    type=click.IntRange(0, 10_080),
    default=10,
    show_default=True,
    help="How long a worker may send stored bytes that it has checked without checking them again.",
)
@option(
    "--scrub-mib-per-second",
    type=click.IntRange(0, 1 << 20),
    default=8,
    show_default=True,
    help="How fast the server reads what is stored, once a day, to find damage; 0 to leave that out.",
)
@click.pass_context
def serve(context: click.Context, /, **options: Any) -> None:
    config = _config(context, options)
    # Until the supervisor has its own handlers there is nothing to finish. The imports take a moment.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: sys.exit(0))
    # Modules are no garbage: looking for some while they are imported takes a tenth of the start.
    gc.disable()
    from kyanite.server.serve import serve as run

    run(config)


def _config(context: click.Context, options: dict[str, Any]) -> Config:
    in_memory: bool = options["in_memory"]
    store_kind = choose_kind(options["engine"], options["extents"], in_memory=in_memory)
    stated = (ParameterSource.COMMANDLINE, ParameterSource.DEFAULT_MAP)
    if in_memory and context.get_parameter_source("location") in stated:
        raise BadUsage("--in-memory stores nothing on disk, so it takes no --location.")
    services = configuration.choose_services(options["services"])
    _check_wanted_services(context, services, options)
    ports = {name: options[f"{name}_port"] for name in SERVICES}
    admin_port = configuration.choose_admin_port(
        options["admin_port"], testing=options["testing"], host=options["host"]
    )
    identity_config = _identity(options)
    console = console_of(context, options)
    other_ports = {"admin": admin_port}
    if console is not None and console.is_stated and console.host == options["host"]:
        other_ports["console"] = console.port
    if identity_config.development is Development.BUILTIN:
        other_ports |= {
            "identity": options["identity_port"],
            "managed identity": options["managed_identity_port"],
        }
    return Config(
        location=None if in_memory else options["location"],
        host=options["host"],
        ports=configuration.choose_ports(services, ports, other_ports),
        workers=configuration.choose_workers(options["workers"], in_memory=in_memory),
        accounts=_accounts(context, options),
        allow_development_key=options["allow_development_key"],
        key_file=options["key_file"],
        tls=configuration.choose_tls(options["cert"], options["key"]),
        admin_port=admin_port,
        console=console,
        log_level=options["log_level"],
        log_requests=options["log_requests"],
        log_format=options["log_format"],
        stop_seconds=options["stop_seconds"],
        drain_seconds=options["drain_seconds"],
        node_timeout_seconds=options["node_timeout"],
        body_memory_mib=options["body_memory_mib"],
        recheck_minutes=options["recheck_minutes"],
        scrub_mib_per_second=options["scrub_mib_per_second"],
        store_kind=store_kind,
        stamps=_stamps(options, in_memory=in_memory),
        smb_requires_encryption=options["smb_encryption"] == "required",
        smb_is_durable=options["smb_durability"] == "strict",
        identity=identity_config,
        identity_port=options["identity_port"],
        managed_identity_port=options["managed_identity_port"],
        testing=options["testing"],
    )


_SMB_OPTIONS = ("smb_encryption", "smb_durability")
_ISSUER_OPTIONS = ("identity_port", "managed_identity_port")


def _check_wanted_services(context: click.Context, services: Sequence[str], options: dict[str, Any]) -> None:
    """A port for a service, or how it is to work, is a wish to have it: if it is not offered, that is an error."""
    given = {
        name for name in options if context.get_parameter_source(name) not in (None, ParameterSource.DEFAULT)
    }
    for row in SERVICES.values():
        wanted = {f"{row.name}_port", *(_SMB_OPTIONS if row.load_smb else ())} & given
        if not wanted or row.name in services:
            continue
        why = "--services leaves it out" if row.is_built else "this version does not have it yet"
        raise BadUsage(f"{_spelt(wanted)} is for the {row.name} service, but {why}.")
    wanted = given.intersection(_ISSUER_OPTIONS)
    if wanted and _identity(options).development is not Development.BUILTIN:
        raise BadUsage(f"{_spelt(wanted)} is for the built-in issuer, which needs --dev-identity builtin.")


def _spelt(names: Iterable[str]) -> str:
    return f"--{min(names).replace('_', '-')}"


def _stamps(options: dict[str, Any], *, in_memory: bool) -> tuple[Stamp, ...]:
    stamps: tuple[Stamp, ...] = options["config"].stamps
    if stamps and in_memory:
        raise BadUsage("--in-memory has one store, so the configuration file may not state more stamps.")
    return stamps


def _accounts(context: click.Context, options: dict[str, Any]) -> tuple[StatedAccount, ...]:
    host, allow_development_key = options["host"], options["allow_development_key"]
    is_from_command_line = context.get_parameter_source("accounts") is ParameterSource.COMMANDLINE
    accounts = configuration.choose_accounts(
        options["accounts"],
        options["config"].accounts,
        stated_by="--account" if is_from_command_line else "KYANITE_ACCOUNTS",
        host=host,
        allow_development_key=allow_development_key,
    )
    may_be_open = not allow_development_key and not configuration.is_loopback(host)
    # There may be accounts in a store that is there already, or in a database. Workers look again.
    is_elsewhere = options["engine"] not in (None, EMBEDDED)
    is_new = options["in_memory"] or not (is_elsewhere or is_store(options["location"]))
    if not accounts and may_be_open and is_new:
        raise BadUsage(configuration.well_known_key(configuration.DEVELOPMENT_ACCOUNT, host))
    return accounts


def _identity(options: dict[str, Any]) -> IdentityConfig:
    file: ConfigFile = options["config"]
    config = parse_identity(file.identity, options["dev_identity"], file.folder)
    check_loopback(config, host=options["host"], is_loopback=configuration.is_loopback(options["host"]))
    return config
