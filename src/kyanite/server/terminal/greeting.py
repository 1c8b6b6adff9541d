"""What ``kyanite serve`` says on a terminal when it is ready: where everything is, and what to type next."""

import shlex
import sys
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from kyanite.server.config import DEVELOPMENT_KEY
from kyanite.server.options import DEFAULT_LOCATION
from kyanite.server.site import ServedAccount, ServerDescription
from kyanite.server.terminal.connection_strings import connection_string

_ACCOUNTS_MAX = 4
_TITLES = {"admin": "Admin", "console": "Console", "identity": "Issuer", "identity_ca": "Authority"}


def greet(server: ServerDescription, console: Console | None = None) -> None:
    console = console or Console(file=sys.stdout, highlight=False)
    location = _location_option(server)
    console.print("[bold]Kyanite is ready.[/] [dim]Ctrl+C stops it.[/]")
    for account in server.accounts[:_ACCOUNTS_MAX]:
        console.print()
        console.print(f"[bold cyan]{escape(account.name)}[/]")
        console.print(Padding(_endpoints(server, account.name), (0, 0, 0, 2)))
        # Never wrapped: it is there to be copied.
        console.print(
            "  [dim]connect[/]  " + escape(_how_to_connect(server, account, location)), soft_wrap=True
        )
    if (more := len(server.accounts) - _ACCOUNTS_MAX) > 0:
        accounts = "account" if more == 1 else "accounts"
        line = f"\n[dim]and {more} more {accounts}: kyanite account list{escape(location)}[/]"
        console.print(line, soft_wrap=True)
    if not server.accounts:
        console.print(
            f"\nThere is no account yet: kyanite account add NAME{escape(location)}", soft_wrap=True
        )
    console.print()
    for name, url in server.others.items():
        console.print(
            f"{_TITLES.get(name, name.replace('_', ' ').capitalize()):<9}  {escape(url)}", soft_wrap=True
        )
    data = "memory, gone when it stops" if server.is_in_memory else server.location
    console.print(f"{'Data':<9}  {escape(data)}", soft_wrap=True)
    if server.is_in_memory:
        console.print(
            f"{'Commands':<9}  export KYANITE_LOCATION={escape(shlex.quote(server.location))}", soft_wrap=True
        )
    console.print()


def _endpoints(server: ServerDescription, account: str) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True, min_width=len("connect"))
    table.add_column(overflow="fold")
    for service in server.services:
        url = server.endpoint(service, account)
        table.add_row(service, escape(f"{url}SHARE  (user {account})" if service == "smb" else url))
    return table


def _how_to_connect(server: ServerDescription, account: ServedAccount, location: str) -> str:
    """A key is printed only if it is no secret: for others there is a command."""
    if account.has_development_key:
        return connection_string(server, account.name, DEVELOPMENT_KEY)
    return f"kyanite connection-string {account.name}{location}"


def _location_option(server: ServerDescription) -> str:
    """What a command needs to find this server from the same folder; nothing if that is what it assumes."""
    if server.is_in_memory or Path(server.location) == DEFAULT_LOCATION.absolute():
        return ""
    return f" --location {shlex.quote(server.location)}"
