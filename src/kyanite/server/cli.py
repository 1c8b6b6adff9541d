"""The command line: ``kyanite serve``, ``verify``, ``token``, and the commands that a running server carries out.

Every option is an environment variable as well. A failure is one sentence on standard error and an exit code: 2 for
bad options, 1 for the rest.
"""

import signal
import sys
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from kyanite.server import config as configuration
from kyanite.server.config import AccountKeys, Config, StatedAccount, parse_account
from kyanite.server.config_file import NO_FILE, ConfigFile, read_config_file
from kyanite.server.failures import BadUsage, Failure
from kyanite.server.identity.config import Development, IdentityConfig, check_loopback, parse_identity
from kyanite.server.issuer.token_cli import token
from kyanite.server.management.account_cli import account
from kyanite.server.management.container_cli import container
from kyanite.server.management.identity_cli import identity
from kyanite.server.observability.logs import LEVELS
from kyanite.server.options import DecoratedCommand, location_option, option
from kyanite.server.service_table import SERVICES
from kyanite.server.store.api import StoreKind, choose_kind
from kyanite.server.store.format import is_store

_PORT = click.IntRange(0, 65535)
_FILE = click.Path(path_type=Path)


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


def _print_version(context: click.Context, _option: click.Parameter, is_wanted: bool) -> None:
    if is_wanted and not context.resilient_parsing:
        from importlib.metadata import version

        from kyanite.server.form import form

        click.echo(f"kyanite, version {version('kyanite')} ({form()})")
        context.exit()


@click.group(help="A self-hosted storage server that speaks Azure Storage's own protocols.")
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version.",
)
def kyanite() -> None:
    pass


def _read_config(context: click.Context, _option: click.Parameter, path: Path | None) -> ConfigFile:
    """The values of the file become defaults, so options and the environment win over it."""
    if path is None:
        return NO_FILE
    known = [each for each in context.command.params if isinstance(each, click.Option)]
    options = [each for each in known if each.name not in ("config", "accounts")]
    file = read_config_file(path, options, context)
    context.default_map = dict(file.server)
    return file


@kyanite.command(help="Serve until SIGTERM or SIGINT. Port 0 takes a free one.")
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
    help="Let tests move the clock through the admin port. For new stores and on loopback only.",
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
@option("--engine", metavar="URL", help=f"Where metadata is kept.  [default: {StoreKind.EMBEDDED.value}]")
@option("--extents", metavar="URL", help="Where content is kept.  [default: local]")
@option("--log-level", type=click.Choice(LEVELS), default="info", show_default=True, help="What to log.")
@option("--log-requests", is_flag=True, help="Log a line for every request.")
@option(
    "--stop-seconds",
    type=click.FloatRange(0, 3600),
    default=8.0,
    show_default=True,
    help="How long a stop waits for requests in flight.",
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
    from kyanite.server.serve import serve as run

    run(config)


@kyanite.command(
    help="Read everything in a stopped store and check it. A store of an older format is upgraded first."
)
@location_option
@option("--json", variable="as_json", is_flag=True, help="Print each finding as a line of JSON.")
def verify(location: Path, as_json: bool) -> None:
    from kyanite.server.store.verify import verify as run

    run(location, as_json=as_json)


kyanite.add_command(account)
kyanite.add_command(identity)
kyanite.add_command(container)
kyanite.add_command(token)


def _config(context: click.Context, options: dict[str, Any]) -> Config:
    in_memory: bool = options["in_memory"]
    store_kind = choose_kind(options["engine"], options["extents"], in_memory=in_memory)
    stated = (ParameterSource.COMMANDLINE, ParameterSource.DEFAULT_MAP)
    if in_memory and context.get_parameter_source("location") in stated:
        raise BadUsage("--in-memory stores nothing on disk, so it takes no --location.")
    services = configuration.choose_services(options["services"])
    ports = {name: options[f"{name}_port"] for name in SERVICES}
    admin_port = configuration.choose_admin_port(
        options["admin_port"], testing=options["testing"], host=options["host"]
    )
    identity_config = _identity(options)
    other_ports = {"admin": admin_port}
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
        log_level=options["log_level"],
        log_requests=options["log_requests"],
        stop_seconds=options["stop_seconds"],
        body_memory_mib=options["body_memory_mib"],
        recheck_minutes=options["recheck_minutes"],
        scrub_mib_per_second=options["scrub_mib_per_second"],
        store_kind=store_kind,
        smb_requires_encryption=options["smb_encryption"] == "required",
        smb_is_durable=options["smb_durability"] == "strict",
        identity=identity_config,
        identity_port=options["identity_port"],
        managed_identity_port=options["managed_identity_port"],
        testing=options["testing"],
    )


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
    # There may be accounts in a store that is there already.
    is_new = options["in_memory"] or not is_store(options["location"])
    if not accounts and may_be_open and is_new:
        raise BadUsage(configuration.well_known_key(configuration.DEVELOPMENT_ACCOUNT, host))
    return accounts


def _identity(options: dict[str, Any]) -> IdentityConfig:
    file: ConfigFile = options["config"]
    config = parse_identity(file.identity, options["dev_identity"], file.folder)
    check_loopback(config, host=options["host"], is_loopback=configuration.is_loopback(options["host"]))
    return config


def main() -> None:
    """Run the command line and end the process with its exit code."""
    try:
        code = kyanite.main(prog_name="kyanite", standalone_mode=False)
    except click.ClickException as misuse:
        # Without a command the message is the help text, which is more than a sentence.
        text = misuse.format_message()
        click.echo(text if "\n" in text else f"kyanite: {text}", err=True)
        code = misuse.exit_code
    except click.Abort:
        code = 1
    except OSError as error:
        click.echo(
            f"kyanite: {error.strerror or error}{f': {error.filename}' if error.filename else ''}.", err=True
        )
        code = 1
    except Failure as failure:
        click.echo(f"kyanite: {failure.sentence}", err=True)
        code = failure.exit_code
    sys.exit(code)


if __name__ == "__main__":
    main()
