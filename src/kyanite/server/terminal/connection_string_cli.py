"""``kyanite connection-string``: what clients take to reach an account of the running server."""

from pathlib import Path

import click

from kyanite.server.failures import BadUsage
from kyanite.server.options import location_option
from kyanite.server.terminal import completing
from kyanite.server.terminal.help_sections import examples
from kyanite.server.terminal.running_server import RunningServer, account_key_option

_SERVICES = ("blob", "queue", "table", "file", "dfs")


@click.command(
    "connection-string",
    help="Print a connection string for ACCOUNT, by default the only or first one. The server that runs on --location "
    "says where it is and, unless there is an --account-key or a --sas, the key. A server with --in-memory prints "
    "its location (KYANITE_LOCATION) when it starts.",
    epilog=examples(
        'export AZURE_STORAGE_CONNECTION_STRING="$(kyanite connection-string)"',
        "kyanite connection-string mystore --service blob --service queue",
        "kyanite connection-string mystore --style host --host store.example.org",
        'kyanite connection-string mystore --sas "$(kyanite sas account mystore --permissions rl)"',
    ),
)
@click.argument("account", default="", shell_complete=completing.accounts)
@click.option(
    "--service",
    "services",
    type=click.Choice(_SERVICES),
    multiple=True,
    help="Only this one; may be repeated.",
)
@click.option(
    "--style",
    type=click.Choice(("path", "host")),
    default="path",
    show_default=True,
    help="Where URLs have the account: http://HOST/ACCOUNT or http://ACCOUNT.SERVICE.HOST.",
)
@click.option(
    "--host", metavar="NAME", help="Of host style.  [default: localhost, which has all names below it]"
)
@click.option("--sas", metavar="TOKEN", help="A shared access signature instead of the key.")
@click.option("--key-number", type=click.IntRange(1, 2), default=1, show_default=True, help="Which key.")
@account_key_option
@location_option
def connection_string(
    account: str,
    services: tuple[str, ...],
    style: str,
    host: str | None,
    sas: str | None,
    key_number: int,
    account_key: str | None,
    location: Path,
) -> None:
    from kyanite.server.terminal import connection_strings

    if host is not None and style == "path":
        raise BadUsage("--host is for --style host.")
    server = RunningServer(location, account_key)
    if not account:
        accounts = server.description.accounts
        if not accounts:
            raise BadUsage("The server has no account yet: 'kyanite account add NAME' adds one.")
        account = accounts[0].name
    server.check_account(account)
    text = connection_strings.connection_string(
        server.description,
        account,
        None if sas else server.key(account, key_number),
        services=services,
        host=(host or "localhost") if style == "host" else None,
        sas=sas.removeprefix("?") if sas else None,
    )
    click.echo(text)
